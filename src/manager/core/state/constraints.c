/* SPDX-License-Identifier: Apache-2.0 */
/* constraints.c - what a session asks of its scheduling */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/core/state/agent_entry.h"
#include "manager/core/state/constraints.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define GROUP_NAME_MAX 64

const char *constraints_resource_group(const struct core *core, const struct session_spec *spec)
{
    const struct agent *a = spec->agents.count ? core_find_agent(core, spec->agents.items[0])
                                               : NULL;

    return a ? a->resource_group : NULL;
}

static int constraints_check_agents(const struct core *core, const struct session_spec *spec,
                                    const char *resource_group, struct aq_error *err)
{
    if (!resource_group)
        resource_group = constraints_resource_group(core, spec);
    for (size_t i = 0; i < spec->agents.count; i++) {
        const struct agent *a = core_find_agent(core, spec->agents.items[i]);

        if (!a)
            return aq_fail_field(err, EINVAL, "agent_list", "there is no agent '%s'",
                                 spec->agents.items[i]);
        if (!a->resource_group || !resource_group || strcmp(a->resource_group, resource_group) != 0)
            return aq_fail_field(err, EINVAL, "agent_list",
                                 "agent '%s' is not of resource group "
                                 "'%s'; choose another agent or its group",
                                 spec->agents.items[i], resource_group ? resource_group : "");
    }
    return 0;
}

int constraints_check(const struct core *core, const struct session_spec *spec,
                      const char *resource_group, int max_priority, struct aq_error *err)
{
    int max = AQ_MIN(max_priority, PRIORITY_COUNT - 1);

    if (spec->session_group
        && (!spec->session_group[0] || strlen(spec->session_group) > GROUP_NAME_MAX))
        return aq_fail_field(err, EINVAL, "session_group.name", "a name has 1 to %d bytes",
                             GROUP_NAME_MAX);
    if (spec->job_priority > max)
        return aq_fail_field(err, EINVAL, "job_priority",
                             "your job priorities go from 0 to %d, not %lld", max,
                             (long long)spec->job_priority);
    return constraints_check_agents(core, spec, resource_group, err);
}

void constraints_describe(struct core *core, const struct session *session,
                          struct sched_session *ret)
{
    const struct session_spec *spec = session->spec;
    char text[UUID_TEXT_MAX + GROUP_NAME_MAX + 2];
    char user[UUID_TEXT_MAX];

    ret->designated = spec->agents.items; /* NULL if there are none */
    ret->designated_count = spec->agents.count;
    ret->designated_strict = !spec->agents_preferred;
    ret->job_priority = (int)spec->job_priority;
    ret->is_preemptible = spec->is_preemptible;
    ret->is_movable = spec->is_movable;
    if (!spec->session_group)
        return;
    (void)snprintf(text, sizeof(text), "%s:%s", uuid_format(&session->user_id, user),
                   spec->session_group);
    ret->group = arena_strdup(&core->scratch, text);
    ret->grouping = spec->packs ? SCHED_PACK : SCHED_SPREAD;
    ret->grouping_strict = spec->group_is_strict;
}
