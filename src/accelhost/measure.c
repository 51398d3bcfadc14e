/* SPDX-License-Identifier: Apache-2.0 */
/* What accelerators measure. A plugin is asked only when it has answered the
 * question before, so that one that hangs holds up nothing but itself.
 */
#include <errno.h>
#include <string.h>

#include "accel/protocol.h"
#include "accelhost/accel_internal.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

void plugin_drop_metrics(struct plugin *p)
{
    measurement_done(&p->measured);
    free(AQ_TAKE(p->targets));
    free(AQ_TAKE(p->complaint));
    p->target_count = p->target_cap = 0;
}

/* Once for each that is new: they come every few seconds. */
static void measure_complain(struct plugin *p, const struct aq_error *why)
{
    if (!why->code || (p->complaint && strcmp(p->complaint, why->text) == 0))
        return;
    log_warning("accelerator plugin '%s': %s", p->plugin_choice.name, why->text);
    free(p->complaint);
    p->complaint = aq_strdup(why->text);
}

static bool measure_on_measured(void *data, const json_t *result, struct aq_error *err)
{
    struct plugin *p = data;
    const char *key = p->description.plugin.key;
    struct aq_error complaint = { 0 };
    struct measurement fresh;

    p->measuring = NULL;
    if (!result) {
        measure_complain(p, err);
        return true;
    }
    if (answer_read_metrics(result, key ? key : "", p->targets, p->target_count, &fresh, &complaint,
                            err)
        < 0)
        return false;
    measure_complain(p, &complaint);
    measurement_done(&p->measured);
    p->measured = fresh;
    p->measured_usec = clock_monotonic_usec();
    return true;
}

static bool measure_is_of(const char *slot_name, const char *key, size_t len)
{
    return strncmp(slot_name, key, len) == 0 && slot_name[len] == '.';
}

static bool measure_has_any(const struct alloc_grant *grant, const char *key, size_t len)
{
    for (size_t i = 0; i < grant->count; i++)
        if (measure_is_of(grant->items[i].slot_name, key, len))
            return true;
    return false;
}

static void measure_write_target(const struct accel_target *target, const char *key, size_t len,
                                 struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_key(w, "grants");
    jsonw_array_begin(w);
    for (size_t i = 0; i < target->grant->count; i++) {
        const struct grant_item *item = &target->grant->items[i];

        if (!measure_is_of(item->slot_name, key, len))
            continue;
        jsonw_array_begin(w);
        jsonw_str(w, item->slot_name);
        jsonw_str(w, item->device_id);
        jsonw_int(w, item->amount);
        jsonw_array_end(w);
    }
    jsonw_array_end(w);
    jsonw_key(w, "pids");
    jsonw_array_begin(w);
    for (size_t i = 0; i < target->pid_count; i++)
        jsonw_int(w, target->pids[i]);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void measure_ask(struct plugin *p, const struct accel_target *targets, size_t count)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    const char *key = p->description.plugin.key;
    size_t len = strlen(key);

    p->target_count = 0;
    strbuf_adds(&text, "\"call\":\"" ACCEL_MEASURE "\",\"targets\":");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++) {
        if (!measure_has_any(targets[i].grant, key, len))
            continue;
        vec_grow(&p->targets, &p->target_cap, p->target_count + 1, sizeof(*p->targets));
        p->targets[p->target_count++] = targets[i].kernel_id;
        measure_write_target(&targets[i], key, len, &w);
    }
    jsonw_array_end(&w);
    p->measuring = helper_ask(p->helper, text.data, measure_on_measured, p);
}

void accel_measure(struct accel *accel, const struct accel_target *targets, size_t count)
{
    for (size_t i = 0; i < accel->count; i++) {
        struct plugin *p = &accel->plugins[i];

        if (p->helper && !p->measuring && p->description.plugin.key && !p->error
            && p->description.plugin.device_count)
            measure_ask(p, targets, count);
    }
}

const struct accel_metric *accel_metrics(const struct accel *accel, size_t i, size_t *ret_count,
                                         int64_t *ret_usec)
{
    const struct plugin *p = &accel->plugins[i];

    *ret_count = p->measured.count;
    *ret_usec = p->measured_usec;
    return p->measured.items;
}
