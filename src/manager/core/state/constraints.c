/* SPDX-License-Identifier: Apache-2.0 */
/* constraints.c - what a session asks of its scheduling, kept in its spec
 *
 * Most sessions ask for nothing of it: then the spec has no member
 * "scheduling" and is not parsed.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/constraints.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define KEY "scheduling"
#define GROUP_NAME_MAX 64

/* ---- a request's ---- */

const char *constraints_resource_group(const struct core *core,
                                       const struct session_constraints *constraints)
{
    const struct agent *a = constraints->agent_count ? core_find_agent(core, constraints->agents[0])
                                                     : NULL;

    return a ? a->resource_group : NULL;
}

static int constraints_check_agents(const struct core *core,
                                    const struct session_constraints *constraints,
                                    const char *resource_group, struct aq_error *err)
{
    if (!resource_group)
        resource_group = constraints_resource_group(core, constraints);
    for (size_t i = 0; i < constraints->agent_count; i++) {
        const struct agent *a = core_find_agent(core, constraints->agents[i]);

        if (!a)
            return aq_fail_field(err, EINVAL, "agent_list", "there is no agent '%s'",
                                 constraints->agents[i]);
        if (!a->resource_group || !resource_group || strcmp(a->resource_group, resource_group) != 0)
            return aq_fail_field(err, EINVAL, "agent_list",
                                 "agent '%s' is not of resource group "
                                 "'%s'; choose another agent or its group",
                                 constraints->agents[i], resource_group ? resource_group : "");
    }
    return 0;
}

int constraints_check(const struct core *core, const struct session_constraints *constraints,
                      const char *resource_group, int max_priority, struct aq_error *err)
{
    int max = AQ_MIN(max_priority, PRIORITY_COUNT - 1);

    if (constraints->group
        && (!constraints->group[0] || strlen(constraints->group) > GROUP_NAME_MAX))
        return aq_fail_field(err, EINVAL, "session_group.name", "a name has 1 to %d bytes",
                             GROUP_NAME_MAX);
    if (constraints->job_priority < 0 || constraints->job_priority > max)
        return aq_fail_field(err, EINVAL, "job_priority",
                             "your job priorities go from 0 to %d, not %d", max,
                             constraints->job_priority);
    return constraints_check_agents(core, constraints, resource_group, err);
}

static bool constraints_is_empty(const struct session_constraints *constraints)
{
    return !constraints->agent_count && !constraints->group && !constraints->job_priority
           && !constraints->is_preemptible && !constraints->is_movable
           && !constraints->waits_for_capacity;
}

void constraints_write(const struct session_constraints *constraints, struct jsonw *w)
{
    if (constraints_is_empty(constraints))
        return;
    jsonw_key(w, KEY);
    jsonw_object_begin(w);
    if (constraints->agent_count) {
        jsonw_key(w, "agents");
        jsonw_array_begin(w);
        for (size_t i = 0; i < constraints->agent_count; i++)
            jsonw_str(w, constraints->agents[i]);
        jsonw_array_end(w);
        jsonw_member_bool(w, "agents_preferred", constraints->agents_preferred);
    }
    if (constraints->group) {
        jsonw_member_str(w, "group", constraints->group);
        jsonw_member_bool(w, "packs", constraints->packs);
        jsonw_member_bool(w, "group_strict", constraints->group_strict);
    }
    jsonw_member_int(w, "job_priority", constraints->job_priority);
    jsonw_member_bool(w, "preemptible", constraints->is_preemptible);
    if (constraints->is_movable)
        jsonw_member_bool(w, "movable", true);
    if (constraints->waits_for_capacity)
        jsonw_member_bool(w, "wait_for_capacity", true);
    jsonw_object_end(w);
}

/* ---- a live session's ---- */

static int constraints_read_agents(const json_t *list, struct session_constraints *ret)
{
    size_t count = json_array_size(list);
    const char **agents;

    if (count == 0)
        return 0;
    if (!(agents = calloc(count, sizeof(*agents))))
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        if (json_is_string(json_array_get(list, i)))
            agents[ret->agent_count++] = json_string_value(json_array_get(list, i));
    ret->agents = agents;
    return 0;
}

int constraints_read(const json_t *spec, struct session_entry *l)
{
    json_t *from = json_object_get(spec, KEY);
    struct session_constraints *ret;

    if (!json_is_object(from))
        return 0;
    if (!(ret = calloc(1, sizeof(*ret))))
        return -ENOMEM;
    l->placement.constraints = ret;
    l->placement.constraints_json = json_incref(from);
    ret->agents_preferred = json_is_true(json_object_get(from, "agents_preferred"));
    ret->group = json_string_value(json_object_get(from, "group"));
    ret->packs = json_is_true(json_object_get(from, "packs"));
    ret->group_strict = json_is_true(json_object_get(from, "group_strict"));
    ret->job_priority = (int)json_integer_value(json_object_get(from, "job_priority"));
    ret->is_preemptible = json_is_true(json_object_get(from, "preemptible"));
    ret->is_movable = json_is_true(json_object_get(from, "movable"));
    ret->waits_for_capacity = json_is_true(json_object_get(from, "wait_for_capacity"));
    return constraints_read_agents(json_object_get(from, "agents"), ret);
}

bool constraints_are_in(const char *spec)
{
    return strstr(spec, "\"" KEY "\":") != NULL;
}

void constraints_free(struct session_entry *l)
{
    if (!l->placement.constraints)
        return;
    free((void *)(uintptr_t)l->placement.constraints->agents);
    free(l->placement.constraints);
    json_decref(l->placement.constraints_json);
}

/* ---- the scheduler's ---- */

int constraints_describe(struct core *core, const struct session_entry *l,
                         struct sched_session *ret)
{
    const struct session_constraints *constraints = l->placement.constraints;
    char text[UUID_TEXT_MAX + GROUP_NAME_MAX + 2];
    char user[UUID_TEXT_MAX];

    if (!constraints)
        return 0;
    ret->designated = constraints->agents;
    ret->designated_count = constraints->agent_count;
    ret->designated_strict = !constraints->agents_preferred;
    ret->job_priority = constraints->job_priority;
    ret->is_preemptible = constraints->is_preemptible;
    ret->is_movable = constraints->is_movable;
    if (!constraints->group)
        return 0;
    (void)snprintf(text, sizeof(text), "%s:%s", uuid_format(&l->s.user_id, user),
                   constraints->group);
    ret->group = arena_strdup(&core->scratch, text);
    ret->grouping = constraints->packs ? SCHED_PACK : SCHED_SPREAD;
    ret->grouping_strict = constraints->group_strict;
    return ret->group ? 0 : -ENOMEM;
}
