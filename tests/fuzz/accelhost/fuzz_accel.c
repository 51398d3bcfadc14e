/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin's process answers: taken whole or rejected with a reason. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "accelhost/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_description(const json_t *result)
{
    struct description d;
    struct aq_error err = { 0 };

    if (answer_read_description(result, &d, &err) < 0) {
        if (!err.text[0])
            __builtin_trap();
        return;
    }
    for (size_t i = 0; i < d.plugin.device_count; i++) {
        const struct accel_device *device = &d.plugin.devices[i];

        if (!device_id_is_valid(device->id, strlen(device->id)) || !device->slot_name
            || device->amount < 0)
            __builtin_trap();
    }
    description_done(&d);
}

static void check_attachment(const json_t *result)
{
    struct accel_attachment attachment = { .devices = NULL };
    struct aq_error err = { 0 };

    if (answer_read_attachment(result, "npu", &attachment, &err) < 0) {
        if (!err.text[0])
            __builtin_trap();
    } else {
        for (size_t i = 0; i < attachment.device_count; i++)
            if (attachment.devices[i].target[0] != '/'
                || strstr(attachment.devices[i].target, "/../"))
                __builtin_trap();
    }
    accel_attachment_done(&attachment);
}

static void check_metrics(const json_t *result)
{
    const struct uuid targets[2] = { { .bytes = { 1 } }, { .bytes = { 2 } } };
    struct aq_error complaint = { 0 }, err = { 0 };
    struct measurement m;

    if (answer_read_metrics(result, "npu", targets, 2, &m, &complaint, &err) < 0) {
        if (!err.text[0])
            __builtin_trap();
        return;
    }
    for (size_t i = 0; i < m.count; i++)
        if (strncmp(m.items[i].key, "npu_", 4) != 0 || !isfinite(m.items[i].value)
            || (m.items[i].is_of_kernel && m.items[i].device))
            __builtin_trap();
    measurement_done(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct aq_error why = { 0 }, err = { 0 };
    json_t *result = NULL;
    int64_t id;

    if (answer_parse((const char *)data, size, &id, &result, &why, &err) < 0) {
        if (!err.text[0])
            __builtin_trap();
        return 0;
    }
    if (result) {
        check_description(result);
        check_attachment(result);
        check_metrics(result);
    } else if (!why.text[0]) {
        __builtin_trap();
    }
    json_decref(result);
    return 0;
}
