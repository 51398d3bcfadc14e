/* SPDX-License-Identifier: Apache-2.0 */
/* CDI specifications, YAML and JSON: what they need is taken whole or rejected. */
#include <stdint.h>
#include <string.h>

#include "accelhost/cdi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *text, size_t len, bool is_yaml)
{
    struct accel_attachment to = { .devices = NULL };
    struct aq_error err = { 0 };
    json_t *spec = cdi_parse(text, len, is_yaml, &err);

    if (!spec) {
        if (!err.text[0])
            __builtin_trap();
        return;
    }
    if (cdi_apply(spec, "a/b=x", true, &to, &err) < 0 && !err.text[0])
        __builtin_trap();
    for (size_t i = 0; i < to.device_count; i++)
        if (to.devices[i].source[0] != '/' || strstr(to.devices[i].target, "/../"))
            __builtin_trap();
    for (size_t i = 0; i < to.mount_count; i++)
        if (to.mounts[i].source[0] != '/' || strstr(to.mounts[i].target, "/../"))
            __builtin_trap();
    for (size_t i = 0; i < to.environ_count; i++)
        if (!to.environ[i].key[0] || strchr(to.environ[i].value, '\n'))
            __builtin_trap();
    for (size_t i = 0; i < to.hook_count; i++)
        if (to.hooks[i].path[0] != '/' || to.hooks[i].timeout < 0)
            __builtin_trap();
    accel_attachment_done(&to);
    json_decref(spec);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check((const char *)data, size, true);
    check((const char *)data, size, false);
    return 0;
}
