/* SPDX-License-Identifier: Apache-2.0 */
/* usage_sums.c - what containers were given and used */
#include "manager/usage/usage_sums.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "model/session_spec.h"

static bool usage_sums_is_kind(const char *slot, const char *other)
{
    size_t len = slot_name_device_len(slot);

    return slot_name_device_len(other) == len && memcmp(slot, other, len) == 0;
}

static void usage_sums_add_kind(struct usage_sums *sums, const char *slot)
{
    for (size_t i = 0; i < sums->kind_count; i++)
        if (usage_sums_is_kind(sums->kinds[i], slot))
            return;
    if (sums->kind_count < USAGE_KINDS_MAX)
        sums->kinds[sums->kind_count++] = slot;
}

void usage_sums_give(struct usage_sums *sums, const struct slots *given)
{
    for (size_t i = 0; i < given->count; i++) {
        const struct slot *slot = &given->items[i];

        if (strcmp(slot->name, "cpu") == 0) {
            sums->cpu_allocated = (double)slot->amount / (double)AMOUNT_ONE;
        } else if (strcmp(slot->name, "mem") == 0) {
            sums->mem_allocated = slot->amount;
        } else if (slot_name_is_accelerator(slot->name)) {
            sums->gpu_allocated += (double)slot->amount / (double)AMOUNT_ONE;
            usage_sums_add_kind(sums, slot->name);
        }
    }
}

static double usage_sums_stat(const json_t *stats, const char *metric, const char *member)
{
    const char *text = json_string_value(json_object_get(json_object_get(stats, metric), member));

    return text ? strtod(text, NULL) : 0;
}

void usage_sums_use(struct usage_sums *sums, const char *last_stat, const char *spec_text)
{
    json_auto_t *stats = last_stat ? json_load_string(last_stat, 0) : NULL;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct session_spec spec;

    sums->cpu_used = usage_sums_stat(stats, "cpu_used", "current");
    sums->mem_used = (int64_t)usage_sums_stat(stats, "mem", "capacity");
    sums->disk_used = (int64_t)usage_sums_stat(stats, "io_scratch_size", "stats.max");
    sums->io_read = (int64_t)usage_sums_stat(stats, "io_read", "current");
    sums->io_write = (int64_t)usage_sums_stat(stats, "io_write", "current");
    sums->gpu_mem_allocated = (int64_t)usage_sums_stat(stats, "cuda_mem", "capacity");
    sums->shared_memory = 0;
    if (session_spec_parse(spec_text, &arena, &spec, NULL) == 0)
        (void)session_spec_shmem(&spec, &sums->shared_memory, NULL);
}

void usage_sums_add(struct usage_sums *to, const struct usage_sums *from)
{
    to->cpu_allocated += from->cpu_allocated;
    to->cpu_used += from->cpu_used;
    to->gpu_allocated += from->gpu_allocated;
    to->mem_allocated += from->mem_allocated;
    to->mem_used += from->mem_used;
    to->shared_memory += from->shared_memory;
    to->disk_used += from->disk_used;
    to->io_read += from->io_read;
    to->io_write += from->io_write;
    to->gpu_mem_allocated += from->gpu_mem_allocated;
    for (size_t i = 0; i < from->kind_count; i++)
        usage_sums_add_kind(to, from->kinds[i]);
}

static void usage_sums_write_number(struct jsonw *w, const char *key, double value)
{
    jsonw_key(w, key);
    jsonw_double(w, value);
}

void usage_sums_write(const struct usage_sums *sums, const char *prefix, struct jsonw *w)
{
    const struct {
        const char *key;
        double value;
        bool is_exact; /* a whole number */
    } members[] = {
        { "cpu_allocated", sums->cpu_allocated, false },
        { "cpu_used", sums->cpu_used, false },
        { "mem_allocated", (double)sums->mem_allocated, true },
        { "mem_used", (double)sums->mem_used, true },
        { "shared_memory", (double)sums->shared_memory, true },
        { "disk_allocated", 0, true },
        { "disk_used", (double)sums->disk_used, true },
        { "io_read", (double)sums->io_read, true },
        { "io_write", (double)sums->io_write, true },
        { "smp", sums->cpu_allocated, false },
        { "gpu_mem_allocated", (double)sums->gpu_mem_allocated, true },
        { "gpu_allocated", sums->gpu_allocated, false },
    };
    char key[48];

    for (size_t i = 0; i < AQ_COUNT(members); i++) {
        (void)snprintf(key, sizeof(key), "%s%s", prefix, members[i].key);
        if (members[i].is_exact)
            jsonw_member_int(w, key, (int64_t)members[i].value);
        else
            usage_sums_write_number(w, key, members[i].value);
    }
    (void)snprintf(key, sizeof(key), "%sdevice_type", prefix);
    jsonw_key(w, key);
    jsonw_array_begin(w);
    for (size_t i = 0; i < sums->kind_count; i++)
        jsonw_strn(w, sums->kinds[i], slot_name_device_len(sums->kinds[i]));
    jsonw_array_end(w);
}
