/* SPDX-License-Identifier: Apache-2.0 */
/* resource_opts.c - how a session is given its resources, beside how much of them */
#include "model/resource_opts.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

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
    const json_t *value = json_object_get(opts, "shmem");
    const char *text = json_string_value(value);
    int64_t bytes = json_integer_value(value);
    int r = 0;

    if (!value || json_is_null(value))
        return 0;
    if (text)
        r = slot_amount_parse(text, strlen(text), SLOT_BYTES, false, "mem", &bytes, NULL);
    else if (!json_is_integer(value))
        r = -EINVAL;
    if (r < 0 || bytes < 0)
        return aq_fail_field(err, EINVAL, "config.resource_opts.shmem",
                             "shmem is no size: \"64m\", \"1g\"");
    *ret = bytes;
    return 0;
}
