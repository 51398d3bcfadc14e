/* SPDX-License-Identifier: Apache-2.0 */
/* resource_opts.c - how a session is given its resources, beside how much of them */
#include "model/resource_opts.h"

#include <jansson.h>

enum splitting resource_opts_splitting(const json_t *opts)
{
    const json_t *value = json_object_get(opts, RESOURCE_OPTS_SPLITTING);

    if (!json_is_boolean(value))
        return SPLITTING_UNSAID;
    return json_is_true(value) ? SPLITTING_ALLOWED : SPLITTING_FORBIDDEN;
}
