/* SPDX-License-Identifier: Apache-2.0 */
/* Options into the body of a request. */
#include <stdio.h>

#include "cli/admin/accounts.h"
#include "cli/request.h"

int accounts_request_body(const struct cli_opt *opts, const void *target, json_t **ret,
                          struct aq_error *err)
{
    json_t *body = json_object();
    int r = 0;

    for (; r == 0 && opts->name; opts++) {
        char key[40];

        if (opts->type == CLI_FLAG)
            continue;
        (void)snprintf(key, sizeof(key), "%s", opts->name);
        for (char *c = key; *c; c++)
            if (*c == '-')
                *c = '_';
        r = cli_option_add(opts, target, key, body, err);
    }
    if (r < 0)
        json_decref(body);
    else
        *ret = body;
    return r;
}
