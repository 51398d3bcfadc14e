/* SPDX-License-Identifier: Apache-2.0 */
/* Merging of options: the command line overrides #ALIQUOT, which overrides #SBATCH. */
#include <string.h>

#include "base/vec.h"
#include "cli/submit/submit.h"

size_t submit_kind_len(const char *resource)
{
    return strcspn(resource, ".=,");
}

bool submit_names_kind(const struct cli_list *list, const char *kind, size_t len)
{
    for (size_t i = 0; i < list->count; i++)
        for (const char *at = list->items[i]; at; at = strchr(at, ','), at = at ? at + 1 : NULL)
            if (submit_kind_len(at) == len && memcmp(at, kind, len) == 0)
                return true;
    return false;
}

/* Adds weaker amounts of slots that the stronger ones do not contain. */
static void submit_merge_resources(struct submit *s, struct cli_list *strong,
                                   const struct cli_list *weak)
{
    const size_t named = strong->count;

    for (size_t i = 0; i < weak->count; i++)
        for (const char *at = weak->items[i]; *at;) {
            size_t len = strcspn(at, ",");
            const struct cli_list given = { strong->items, named, named };

            if (!submit_names_kind(&given, at, submit_kind_len(at)))
                cli_list_add(strong, arena_strndup(&s->script.arena, at, len));
            at += len + (at[len] == ',');
        }
}

/* Weaker variables come first, because the last one of a name wins. */
static void submit_merge_environ(struct cli_list *strong, const struct cli_list *weak)
{
    if (weak->count == 0)
        return;
    vec_grow(&strong->items, &strong->cap, strong->count + weak->count, sizeof(*strong->items));
    memmove(strong->items + weak->count, strong->items, strong->count * sizeof(*strong->items));
    memcpy(strong->items, weak->items, weak->count * sizeof(*strong->items));
    strong->count += weak->count;
}

void submit_merge(struct submit *s, struct submit_opts *strong, const struct submit_opts *weak)
{
    for (const struct cli_opt *o = submit_opts; o->name; o++) {
        void *to = (char *)strong + o->offset;
        const void *from = (const char *)weak + o->offset;

        if (o->type == CLI_FLAG)
            *(bool *)to |= *(const bool *)from;
        else if (o->type == CLI_STR && !*(const char **)to)
            *(const char **)to = *(const char *const *)from;
        else if ((o->type == CLI_INT || o->type == CLI_DURATION) && !((struct cli_int *)to)->is_set)
            *(struct cli_int *)to = *(const struct cli_int *)from;
        else if (o->offset == offsetof(struct submit_opts, spec.resources))
            submit_merge_resources(s, to, from);
        else if (o->offset == offsetof(struct submit_opts, spec.environ))
            submit_merge_environ(to, from);
        else if (o->type == CLI_LIST && !((struct cli_list *)to)->count)
            submit_merge_environ(to, from);
    }
}
