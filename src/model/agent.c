/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as the manager knows them. */
#include "model/agent.h"

#include <errno.h>
#include <string.h>

void agent_done(struct agent *a)
{
    free(a->resource_group);
    free(a->assigned_group);
    free(a->architecture);
    free(a->version);
    free(a->addr);
    free(a->region);
    free(a->topology);
    free(a->assigned_topology);
    free(a->drain_reason);
    free(a->devices);
    slots_done(&a->available);
    *a = (struct agent){ 0 };
}

static bool agent_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int agent_id_check(const char *id, struct aq_error *err)
{
    size_t len = strnlen(id, AGENT_ID_MAX + 1);

    if (len == 0 || len > AGENT_ID_MAX)
        return aq_fail_field(err, EINVAL, "agent_id", "an agent's id must have 1 to %d characters",
                             AGENT_ID_MAX);
    for (size_t i = 0; i < len; i++)
        if (!agent_is_alnum(id[i]) && (i == 0 || !strchr("._-", id[i])))
            return aq_fail_field(err, EINVAL, "agent_id",
                                 "an agent's id may have letters and digits, and after the first "
                                 "also '.', '_' and '-'; character %zu is none of them",
                                 i + 1);
    return 0;
}

int topology_check(const char *label, struct aq_error *err)
{
    static const char characters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789-_./";
    size_t length = strlen(label), parts = 1;

    for (size_t i = 0; i < length; i++)
        parts += label[i] == '/';
    if (length == 0 || length > TOPOLOGY_MAX || parts > TOPOLOGY_PARTS_MAX)
        return aq_fail_field(err, EINVAL, "topology",
                             "topology label has %zu characters in %zu parts; it must have 1 to %d "
                             "characters in 1 to %d parts separated by '/'",
                             length, parts, TOPOLOGY_MAX, TOPOLOGY_PARTS_MAX);
    if (strspn(label, characters) != length || label[0] == '/' || label[length - 1] == '/'
        || strstr(label, "//"))
        return aq_fail_field(err, EINVAL, "topology",
                             "topology label '%s' is invalid; write parts of letters, digits, '-', "
                             "'_' and '.', separated by '/', such as zone-a/rack-3/switch-1",
                             label);
    return 0;
}
