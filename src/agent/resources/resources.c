/* SPDX-License-Identifier: Apache-2.0 */
/* resources.c - cores, memory and accelerators of this node, and their allocation */
#include "agent/resources/resources.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "agent/resources/offer.h"
#include "alloc/system_reserved.h"
#include "base/fs.h"
#include "base/memory.h"

#define CPUS_MAX 4096
#define MEM_ALIGN (INT64_C(16) << 20)

struct resources_found {
    struct alloc_device *devices;
    size_t count;
    char (*ids)[8]; /* of the cores */
    struct alloc_slot *slots;
    size_t slot_count;
    const char **exclusive;             /* names, a NULL after each set */
    const char *const **exclusive_sets; /* NULL-terminated */
    size_t first_accelerator;           /* those before are cores and memory */
    int64_t *offered;                   /* of each accelerator, in their order */
    struct offer offer;
};

static void resources_found_done(struct resources_found *found)
{
    free(found->devices);
    free(found->ids);
    free(found->slots);
    free(found->exclusive);
    free(found->exclusive_sets);
    free(found->offered);
}

/* A number in a file of the cgroup file system; 0 if there is none. */
static int64_t resources_read_limit(const char *path)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (fs_read(AT_FDCWD, path, 4096, &text, NULL) < 0 || text.data[0] < '0' || text.data[0] > '9')
        return 0;
    return strtoll(text.data, NULL, 10);
}

/* The path of this process in cgroup version 2, "" if unknown. */
static void resources_own_cgroup(struct strbuf *out)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *line;

    if (fs_read(AT_FDCWD, "/proc/self/cgroup", 65536, &text, NULL) < 0)
        return;
    line = strstr(text.data, "0::/");
    if (line)
        strbuf_add(out, line + 3, strcspn(line + 3, "\n"));
}

int64_t resources_host_memory(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf group = STRBUF_INIT;
    struct sysinfo info = { 0 };
    int64_t total = sysinfo(&info) == 0 ? (int64_t)info.totalram * info.mem_unit : 0;

    resources_own_cgroup(&group);
    /* the least limit of the group and those above it */
    for (;;) {
        AQ_CLEANUP(aq_freep) char *path = aq_format("/sys/fs/cgroup%s/memory.max", group.data);
        int64_t limit = resources_read_limit(path);
        const char *slash = strrchr(group.data, '/');

        if (limit > 0 && limit < total)
            total = limit;
        if (!slash)
            return total;
        strbuf_truncate(&group, (size_t)(slash - group.data));
    }
}

/* The NUMA node of a core; -1 if the machine does not say. */
static int resources_find_node(int core)
{
    char path[64];
    struct dirent *entry;
    int node = -1;
    DIR *dir;

    (void)snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d", core);
    dir = opendir(path);
    while (dir && node < 0 && (entry = readdir(dir)))
        if (sscanf(entry->d_name, "node%d", &node) != 1)
            node = -1;
    if (dir)
        (void)closedir(dir);
    return node;
}

static int resources_add_cores(const struct resources *res, struct resources_found *found,
                               const struct settings *settings, struct aq_error *err)
{
    const char *cpu = slot_name_intern("cpu", 3);
    cpu_set_t allowed;

    CPU_ZERO(&allowed);
    if (settings->cpus == 0 && sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return aq_fail_errno(err, "find the usable cores");
    for (int i = 0; i < CPUS_MAX; i++) {
        if ((settings->cpus ? i >= settings->cpus : i >= CPU_SETSIZE || !CPU_ISSET(i, &allowed))
            || !offer_has_core(&found->offer, i))
            continue;
        (void)snprintf(found->ids[i], sizeof(found->ids[i]), "%d", i);
        found->devices[found->count++] = (struct alloc_device){
            .id = found->ids[i],
            .slot_name = cpu,
            .capacity = settings->cpu_factor * AMOUNT_ONE,
            .numa_node = res->has_real_cores ? resources_find_node(i) : -1,
        };
    }
    return 0;
}

static int64_t resources_sum_of(const struct resources_found *found, const char *slot_name)
{
    int64_t sum = 0;

    for (size_t i = 0; i < found->count; i++)
        if (found->devices[i].slot_name == slot_name)
            sum += found->devices[i].capacity;
    return sum;
}

static int resources_find_devices(struct resources *res, struct resources_found *found,
                                  const struct settings *settings, struct aq_error *err)
{
    const char *cpu = slot_name_intern("cpu", 3);
    const char *mem = slot_name_intern("mem", 3);
    int64_t bytes = settings->memory_bytes ? settings->memory_bytes : resources_host_memory();
    int r;

    /* more than there are: they are nowhere */
    res->has_real_cores = settings->cpus <= sysconf(_SC_NPROCESSORS_CONF);
    r = resources_add_cores(res, found, settings, err);
    if (r < 0)
        return r;
    if (bytes > INT64_MAX / settings->memory_factor)
        return aq_fail_field(err, EINVAL, "resource.mem", "resource.mem is too large");
    found->devices[found->count++] = (struct alloc_device){
        .id = "root",
        .slot_name = mem,
        .capacity = bytes * settings->memory_factor,
        .numa_node = -1,
    };
    res->reserved_cpu = resources_sum_of(found, cpu);
    res->reserved_memory = resources_sum_of(found, mem);
    r = alloc_reserve(found->devices, &found->count, cpu, settings->reserved_cpu * AMOUNT_ONE, 0,
                      err);
    if (r < 0)
        return (void)aq_error_wrap(err, "resource.reserved-cpu"), r;
    r = alloc_reserve(found->devices, &found->count, mem, settings->reserved_memory_bytes,
                      MEM_ALIGN, err);
    res->reserved_cpu -= resources_sum_of(found, cpu);
    res->reserved_memory -= resources_sum_of(found, mem);
    return r < 0 ? (void)aq_error_wrap(err, "resource.reserved-mem"), r : 0;
}

/* ---- accelerators ---- */

/* Slots whose plugin wants them apart, in one set each. */
static void resources_add_exclusive(struct resources_found *found,
                                    const struct accel_plugin *plugin, size_t *used, size_t *sets)
{
    for (size_t i = 0; i < plugin->slot_count; i++) {
        const char *word = plugin->slots[i].exclusive;
        bool is_first = word != NULL;

        for (size_t k = 0; is_first && k < i; k++)
            is_first = !plugin->slots[k].exclusive || strcmp(plugin->slots[k].exclusive, word) != 0;
        if (!is_first)
            continue;
        found->exclusive_sets[(*sets)++] = &found->exclusive[*used];
        for (size_t k = i; k < plugin->slot_count; k++)
            if (plugin->slots[k].exclusive && strcmp(plugin->slots[k].exclusive, word) == 0)
                found->exclusive[(*used)++] = plugin->slots[k].name;
        found->exclusive[(*used)++] = NULL;
    }
}

static int resources_add_types(struct resources *res, const struct accel_plugin *plugin,
                               struct aq_error *err)
{
    for (size_t i = 0; i < plugin->slot_count; i++) {
        struct slot_types *merged = slot_types_merge(res->types, plugin->slots[i].name,
                                                     plugin->slots[i].type, err);

        if (!merged)
            return err ? -err->code : -EINVAL;
        slot_types_unref(res->types);
        res->types = merged;
    }
    return 0;
}

static void resources_make_room(struct resources_found *found, const struct accel *accel)
{
    size_t slots = 2, devices = found->count;
    const struct accel_plugin *plugin;

    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++) {
        slots += plugin->slot_count;
        devices += plugin->device_count;
    }
    found->devices = aq_realloc(found->devices, (devices + 1) * sizeof(*found->devices));
    found->slots = aq_alloc_array(slots, sizeof(*found->slots));
    found->exclusive = aq_alloc_array(2 * slots + 1, sizeof(*found->exclusive));
    found->exclusive_sets = aq_alloc_array(slots + 1, sizeof(*found->exclusive_sets));
}

static void resources_add_plugin(struct resources_found *found, const struct accel_plugin *plugin)
{
    for (size_t i = 0; i < plugin->slot_count; i++)
        found->slots[found->slot_count++] = (struct alloc_slot){
            .name = plugin->slots[i].name,
            .type = plugin->slots[i].type,
            .quantum = plugin->slots[i].quantum,
            .strategy = ALLOC_EVENLY
        };
    for (size_t i = 0; i < plugin->device_count; i++) {
        const struct accel_device *device = &plugin->devices[i];

        found->devices[found->count++] = (struct alloc_device){ .id = device->id,
                                                                .slot_name = device->slot_name,
                                                                .capacity = device->amount,
                                                                .numa_node = device->numa_node,
                                                                .quantum = device->quantum };
    }
}

static int resources_add_slots(struct resources *res, struct resources_found *found,
                               const struct accel *accel, struct aq_error *err)
{
    const struct accel_plugin *plugin;
    size_t used = 0, sets = 0;
    int r = 0;

    resources_make_room(found, accel);
    found->slots[0] = (struct alloc_slot){ .name = slot_name_intern("cpu", 3),
                                           .type = SLOT_COUNT,
                                           .strategy = ALLOC_EVENLY };
    found->slots[1] = (struct alloc_slot){ .name = slot_name_intern("mem", 3),
                                           .type = SLOT_BYTES,
                                           .strategy = ALLOC_FILL };
    found->slot_count = 2;
    found->first_accelerator = found->count;
    for (size_t i = 0; r == 0 && accel && (plugin = accel_plugin(accel, i)); i++) {
        r = resources_add_types(res, plugin, err);
        resources_add_plugin(found, plugin);
        resources_add_exclusive(found, plugin, &used, &sets);
    }
    return r;
}

/* ---- what of it is ours ---- */

static bool resources_has_device(const struct resources *res, const struct alloc_device *device)
{
    for (size_t i = 0; i < res->device_count; i++)
        if (res->devices[i].slot_name == device->slot_name
            && strcmp(res->devices[i].id, device->id) == 0)
            return true;
    return false;
}

/* Note what is offered of each accelerator; 'only' is what others leave to us, or NULL. */
static void resources_note_offer(struct resources *res, struct resources_found *found,
                                 const struct accel *accel, const struct resources *only)
{
    const struct accel_plugin *plugin;
    size_t n = 0;

    res->devices = aq_alloc_array(found->count - found->first_accelerator + 1,
                                  sizeof(*res->devices));
    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++)
        for (size_t k = 0; k < plugin->device_count; k++, n++) {
            struct alloc_device *device = &found->devices[found->first_accelerator + n];

            if (only && !resources_has_device(only, device))
                device->capacity = 0;
            found->offered[n] = device->capacity;
            if (device->capacity == 0)
                continue;
            res->devices[res->device_count++] = (struct claim_device){
                .slot_name = device->slot_name,
                .id = arena_strdup(&res->arena, device->id),
                .amount = device->capacity,
                .whole = plugin->devices[k].amount
            };
        }
}

/* What is not ours or out of order is left out: what is held of it stays noted
 * in the map.
 */
static void resources_drop_others(struct resources_found *found, const struct accel *accel)
{
    const struct accel_plugin *plugin;
    size_t from = found->first_accelerator, kept = 0;

    for (size_t i = 0; i < from; i++)
        if (found->devices[i].capacity > 0)
            found->devices[kept++] = found->devices[i];
    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++)
        for (size_t k = 0; k < plugin->device_count; k++, from++) {
            const struct accel_device *device = &plugin->devices[k];

            if (device->status != ACCEL_OFFLINE && device->status != ACCEL_UNAVAILABLE
                && (found->devices[from].capacity > 0 || device->amount == 0))
                found->devices[kept++] = found->devices[from];
        }
    found->count = kept;
}

static int resources_reserve_memory(struct resources_found *found, const struct accel *accel,
                                    struct aq_error *err)
{
    struct alloc_device *device = &found->devices[found->first_accelerator];
    const struct accel_plugin *plugin;
    int r = 0;

    for (size_t i = 0; accel && (plugin = accel_plugin(accel, i)); i++)
        for (size_t k = 0; r == 0 && k < plugin->device_count; k++, device++)
            r = offer_reserve(&found->offer, found->slots, found->slot_count,
                              plugin->devices[k].memory_bytes, device, err);
    return r;
}

static int resources_divide(struct resources *res, struct resources_found *found,
                            const struct accel *accel, const struct resources *only,
                            struct aq_error *err)
{
    int r = resources_reserve_memory(found, accel, err);

    if (r == 0)
        r = offer_apply(&found->offer, found->slots, found->slot_count, MEM_ALIGN, found->devices,
                        found->count, err);
    found->offered = aq_alloc_array(found->count + 1, sizeof(*found->offered));
    if (r < 0)
        return r;
    resources_note_offer(res, found, accel, only);
    resources_drop_others(found, accel);
    if (resources_sum_of(found, slot_name_intern("cpu", 3)) == 0
        || resources_sum_of(found, slot_name_intern("mem", 3)) == 0)
        return aq_fail_field(err, EINVAL, "resource.part",
                             "resource.part, cores and mem leave this agent no core or no memory");
    return 0;
}

static int resources_make_map(struct resources *res, const struct resources_found *found,
                              const struct settings *settings, struct aq_error *err)
{
    const struct conf_list *kinds = &settings->allocation_order;
    AQ_CLEANUP(aq_freep) const char **order = aq_alloc_array(kinds->count + 1, sizeof(*order));

    for (size_t i = 0; i < kinds->count; i++)
        order[i] = kinds->items[i];
    return alloc_map_new(
        &(struct alloc_config){ .slots = found->slots,
                                .slot_count = found->slot_count,
                                .devices = found->devices,
                                .device_count = found->count,
                                .allocation_order = order,
                                .exclusive = found->exclusive_sets,
                                .affinity = strcmp(settings->affinity, "single-node") == 0
                                                ? ALLOC_SINGLE_NODE
                                                : ALLOC_INTERLEAVED },
        &res->map, err);
}

int resources_init(struct resources *res, const struct settings *settings,
                   const struct accel *accel, const struct resources *former, bool only_former,
                   struct aq_error *err)
{
    struct resources_found found = { .devices = aq_alloc_array(CPUS_MAX + 1,
                                                               sizeof(struct alloc_device)),
                                     .ids = aq_alloc_array(CPUS_MAX, sizeof(*found.ids)) };
    int r = offer_read(settings, &found.offer, err);

    *res = (struct resources){ .types = former ? slot_types_ref(former->types) : slot_types_new(),
                               .is_shared = found.offer.mode == OFFER_SHARED };
    if (r == 0)
        r = resources_find_devices(res, &found, settings, err);
    if (r == 0)
        r = resources_add_slots(res, &found, accel, err);
    if (r == 0)
        r = resources_divide(res, &found, accel, only_former ? former : NULL, err);
    if (r == 0)
        r = resources_make_map(res, &found, settings, err);
    if (r == 0)
        r = resources_describe(res, accel, found.offered, err);
    resources_found_done(&found);
    if (r < 0)
        resources_done(res);
    return r;
}

void resources_done(struct resources *res)
{
    alloc_map_free(res->map);
    slot_types_unref(res->types);
    free(res->slots_json);
    free(res->devices_json);
    free(res->plugins_json);
    free(res->devices);
    arena_done(&res->arena);
    *res = (struct resources){ .map = NULL };
}
