/* SPDX-License-Identifier: Apache-2.0 */
/* resource_opts.c - how a session is given its resources, beside how much of them */
#include "model/resource_opts.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>

#include "model/slot.h"

enum splitting resource_opts_splitting(const json_t *opts)
{
    const json_t *value = json_object_get(opts, RESOURCE_OPTS_SPLITTING);

    if (!json_is_boolean(value))
        return SPLITTING_UNSAID;
    return json_is_true(value) ? SPLITTING_ALLOWED : SPLITTING_FORBIDDEN;
}

int resource_opts_shmem(const json_t *opts, int64_t *ret, struct aq_error *err)
{
    static const char field[] = "config.resource_opts.shmem";
    const json_t *value = json_object_get(opts, "shmem");
    int64_t bytes = json_integer_value(value);

    if (!value || json_is_null(value))
        return 0;
    if (json_is_string(value)) {
        if (slot_amount_parse(json_string_value(value), json_string_length(value), SLOT_BYTES,
                              false, "shmem", &bytes, err)
            < 0) {
            if (err)
                (void)snprintf(err->field, sizeof(err->field), "%s", field);
            return -EINVAL;
        }
    } else if (!json_is_integer(value) || bytes < 0) {
        return aq_fail_field(err, EINVAL, field, "is not a size such as \"512m\" or bytes");
    }
    *ret = bytes;
    return 0;
}
