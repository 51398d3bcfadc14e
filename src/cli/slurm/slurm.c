/* SPDX-License-Identifier: Apache-2.0 */
/* What Slurm's commands share. */
#include "cli/slurm/slurm.h"

#include <string.h>

#include "cli/help.h"

int slurm_print_version(struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    strbuf_adds(&out, "slurm " SLURM_VERSION "-aliquot\n");
    return cli_print(&out, err);
}

int slurm_print_help(const struct cli_verb *verb, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    help_verb(verb, &out);
    return cli_print(&out, err);
}

bool slurm_list_take(const char **at, const char **ret, size_t *ret_len)
{
    *at += strspn(*at, ", ");
    *ret = *at;
    *ret_len = strcspn(*at, ", ");
    *at += *ret_len;
    return *ret_len > 0;
}

bool slurm_list_has(const char *list, const char *text)
{
    const char *word;
    size_t len;

    while (slurm_list_take(&list, &word, &len))
        if (strlen(text) == len && strncmp(word, text, len) == 0)
            return true;
    return false;
}
