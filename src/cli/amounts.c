/* SPDX-License-Identifier: Apache-2.0 */
/* Amounts of resources that users type. */
#include "cli/amounts.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"
#include "cli/opt.h"

#define UNITLESS_DIGITS 6 /* up to 999999 bytes */

/* "mem=100", as sbatch(1) has it for MiB: so few bytes are never meant. */
static bool amounts_is_unitless_memory(const char *name, const char *amount, size_t len)
{
    return (strcmp(name, "mem") == 0 || strcmp(name, "shmem") == 0) && len > 0
           && len <= UNITLESS_DIGITS && amount[0] != '0' && strspn(amount, "0123456789") >= len;
}

static int amounts_fail_form(const char *text, const char *option, struct aq_error *err)
{
    if (option)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "%s takes NAME=VALUE such as shmem=1g, not '%.60s'", option, text);
    return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                        "SLOT=AMOUNT is wanted, such as cpu=2 or mem=4g, not '%.60s'", text);
}

int cli_amounts_add(const char *text, const char *option, json_t *object, struct aq_error *err)
{
    for (bool is_more = false; *text; is_more = true) {
        size_t len = strcspn(text, ","), name_len = strcspn(text, "=,");
        AQ_CLEANUP(aq_freep) char *name = aq_strndup(text, name_len);
        const char *amount = text + name_len + 1;

        if (!option && is_more && len > 0 && strspn(text, "0123456789") == len)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "'%.60s' is no SLOT=AMOUNT; decimals have a point, as in "
                                "cuda.shares=0.5",
                                text);
        if (name_len == 0 || text[name_len] != '=' || name_len + 1 == len)
            return amounts_fail_form(text, option, err);
        if (json_object_get(object, name))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "%.60s is given twice", name);
        if (amounts_is_unitless_memory(name, amount, len - name_len - 1))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "%.*s is that many bytes: say %.*sm for MiB, %.*sg for GiB",
                                (int)len, text, (int)len, text, (int)len, text);
        if (json_object_set_new(object, name, json_stringn(amount, len - name_len - 1)) < 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%.60s' is not UTF-8", text);
        text += len + (text[len] == ',');
    }
    return 0;
}
