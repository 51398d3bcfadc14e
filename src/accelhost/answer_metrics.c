/* SPDX-License-Identifier: Apache-2.0 */
/* answer_metrics.c - reads the metrics in what a plugin answers */
#include "accelhost/answer_internal.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/metric.h"

void measurement_done(struct measurement *m)
{
    arena_done(&m->arena);
    *m = (struct measurement){ .items = NULL };
}

/* In other words than answer_text(): what is wrong costs only this metric. */
static const char *answer_metrics_read_key(const json_t *from, const char *kind)
{
    const char *key = json_string_value(json_object_get(from, "key"));
    size_t len = strlen(kind);

    return key && metric_key_is_valid(key) && strncmp(key, kind, len) == 0 && key[len] == '_'
               ? key
               : NULL;
}

static bool answer_metrics_read_numbers(const json_t *from, struct accel_metric *ret)
{
    const json_t *value = json_object_get(from, "value");
    const json_t *capacity = json_object_get(from, "capacity");

    ret->unit = json_integer_value(json_object_get(from, "unit"));
    ret->stats = json_integer_value(json_object_get(from, "stats"));
    ret->value = json_number_value(value);
    ret->capacity = capacity ? json_number_value(capacity) : -1;
    return json_is_number(value) && (!capacity || json_is_number(capacity)) && ret->unit >= 0
           && ret->unit < METRIC_UNITS && ret->stats >= 0 && !(ret->stats & ~METRIC_STATS_ALL);
}

/* Whose it is: false if nobody's. */
static bool answer_metrics_read_owner(const json_t *from, const struct uuid *targets,
                                      size_t target_count, struct accel_metric *ret)
{
    const json_t *target = json_object_get(from, "target"),
                 *device = json_object_get(from, "device");
    json_int_t index = json_integer_value(target);

    if (device
        && (!json_is_string(device)
            || !device_id_is_valid(json_string_value(device), json_string_length(device))))
        return false;
    if (!target)
        return true;
    if (!json_is_integer(target) || index < 0 || (size_t)index >= target_count)
        return false;
    ret->is_of_kernel = true;
    ret->kernel_id = targets[index];
    return true;
}

/* Metrics of one owner together: the node, devices, kernels. */
static int answer_metrics_by_owner(const void *left, const void *right)
{
    const struct accel_metric *a = left, *b = right;
    int order = (int)a->is_of_kernel - (int)b->is_of_kernel;

    if (order == 0 && a->is_of_kernel)
        order = memcmp(a->kernel_id.bytes, b->kernel_id.bytes, sizeof(a->kernel_id.bytes));
    if (order == 0)
        order = strcmp(a->device ? a->device : "", b->device ? b->device : "");
    return order ? order : strcmp(a->key, b->key);
}

/* A part of a byte is a plugin's mistake; clients read bytes as integers. */
static void answer_metrics_round(struct accel_metric *item, struct aq_error *ret_complaint)
{
    if (item->unit != METRIC_BYTES
        || (item->value == rint(item->value) && item->capacity == rint(item->capacity)))
        return;
    item->value = rint(item->value);
    item->capacity = rint(item->capacity);
    if (!ret_complaint->code)
        (void)aq_fail(ret_complaint, EINVAL,
                      "metric '%s' has parts of a byte: its value and capacity are rounded",
                      item->key);
}

int answer_read_metrics(const json_t *result, const char *kind, const struct uuid *targets,
                        size_t target_count, struct measurement *ret,
                        struct aq_error *ret_complaint, struct aq_error *err)
{
    struct measurement m = { .items = NULL };
    struct answer_reader in = { .what = "metrics", .name = kind, .arena = &m.arena, .err = err };
    const json_t *list;
    size_t count = answer_list(&in, result, "metrics", ACCEL_METRICS_MAX, &list);

    m.items = arena_array(&m.arena, count + 1, sizeof(*m.items));
    for (size_t i = 0; in.r == 0 && i < count; i++) {
        const json_t *from = json_array_get(list, i);
        const char *key = answer_metrics_read_key(from, kind);
        struct accel_metric *item = &m.items[m.count];

        *item = (struct accel_metric){ .key = NULL };
        if (!key || !answer_metrics_read_numbers(from, item)
            || !answer_metrics_read_owner(from, targets, target_count, item)) {
            if (!ret_complaint->code)
                (void)aq_fail(ret_complaint, EINVAL,
                              "metric '%.63s' cannot be used: its key, "
                              "device, target, unit or a number is wrong",
                              key ? key : "without a name of this plugin");
            continue;
        }
        in.from = from;
        item->key = arena_strdup(&m.arena, key);
        item->device = item->is_of_kernel ? NULL : answer_text(&in, "device", ANSWER_TEXT_MAX);
        answer_metrics_round(item, ret_complaint);
        m.count++;
    }
    if (in.r == 0 && m.count)
        qsort(m.items, m.count, sizeof(*m.items), answer_metrics_by_owner);
    if (in.r < 0)
        measurement_done(&m);
    else
        *ret = m;
    return in.r;
}
