/* wishes.c - what a session asks of its scheduling, kept in its spec
 *
 * Most sessions ask for nothing of it: then the spec has no member
 * "scheduling" and is not parsed.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "manager/core/parts.h"

#define KEY "scheduling"
#define GROUP_NAME_MAX 64

/* ---- a request's ---- */

const char *wishes_resource_group(const struct core *core, const struct session_wishes *wishes)
{
    const struct agent *a = wishes->agent_count ? core_find_agent(core, wishes->agents[0]) : NULL;

    return a ? a->resource_group : NULL;
}

static int check_agents(const struct core *core, const struct session_wishes *wishes,
                        const char *resource_group, struct aq_error *err)
{
    if (!resource_group)
        resource_group = wishes_resource_group(core, wishes);
    for (size_t i = 0; i < wishes->agent_count; i++) {
        const struct agent *a = core_find_agent(core, wishes->agents[i]);

        if (!a)
            return aq_fail_field(err, EINVAL, "agent_list", "there is no agent '%s'",
                                 wishes->agents[i]);
        if (!a->resource_group || !resource_group ||
            strcmp(a->resource_group, resource_group) != 0)
            return aq_fail_field(err, EINVAL, "agent_list", "agent '%s' is not of resource group "
                                 "'%s'; choose another agent or its group", wishes->agents[i],
                                 resource_group ? resource_group : "");
    }
    return 0;
}

int wishes_check(const struct core *core, const struct session_wishes *wishes,
                 const char *resource_group, int max_priority, struct aq_error *err)
{
    int max = AQ_MIN(max_priority, PRIORITY_COUNT - 1);

    if (wishes->group && (!wishes->group[0] || strlen(wishes->group) > GROUP_NAME_MAX))
        return aq_fail_field(err, EINVAL, "session_group.name", "a name has 1 to %d bytes",
                             GROUP_NAME_MAX);
    if (wishes->job_priority < 0 || wishes->job_priority > max)
        return aq_fail_field(err, EINVAL, "job_priority",
                             "your job priorities go from 0 to %d, not %d", max,
                             wishes->job_priority);
    return check_agents(core, wishes, resource_group, err);
}

static bool is_empty(const struct session_wishes *wishes)
{
    return !wishes->agent_count && !wishes->group && !wishes->job_priority &&
           !wishes->is_preemptible && !wishes->is_movable;
}

void wishes_write(const struct session_wishes *wishes, struct jsonw *w)
{
    if (is_empty(wishes))
        return;
    jsonw_key(w, KEY);
    jsonw_object_begin(w);
    if (wishes->agent_count) {
        jsonw_key(w, "agents");
        jsonw_array_begin(w);
        for (size_t i = 0; i < wishes->agent_count; i++)
            jsonw_str(w, wishes->agents[i]);
        jsonw_array_end(w);
        jsonw_member_bool(w, "agents_preferred", wishes->agents_preferred);
    }
    if (wishes->group) {
        jsonw_member_str(w, "group", wishes->group);
        jsonw_member_bool(w, "packs", wishes->packs);
        jsonw_member_bool(w, "group_strict", wishes->group_strict);
    }
    jsonw_member_int(w, "job_priority", wishes->job_priority);
    jsonw_member_bool(w, "preemptible", wishes->is_preemptible);
    if (wishes->is_movable)
        jsonw_member_bool(w, "movable", true);
    jsonw_object_end(w);
}

/* ---- a live session's ---- */

static int read_agents(const json_t *list, struct session_wishes *ret)
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

int wishes_read(const json_t *spec, struct live *l)
{
    json_t *from = json_object_get(spec, KEY);
    struct session_wishes *ret;

    if (!json_is_object(from))
        return 0;
    if (!(ret = calloc(1, sizeof(*ret))))
        return -ENOMEM;
    l->wishes = ret;
    l->wishes_text = json_incref(from);
    ret->agents_preferred = json_is_true(json_object_get(from, "agents_preferred"));
    ret->group = json_string_value(json_object_get(from, "group"));
    ret->packs = json_is_true(json_object_get(from, "packs"));
    ret->group_strict = json_is_true(json_object_get(from, "group_strict"));
    ret->job_priority = (int)json_integer_value(json_object_get(from, "job_priority"));
    ret->is_preemptible = json_is_true(json_object_get(from, "preemptible"));
    ret->is_movable = json_is_true(json_object_get(from, "movable"));
    return read_agents(json_object_get(from, "agents"), ret);
}

bool wishes_are_in(const char *spec)
{
    return strstr(spec, "\"" KEY "\":") != NULL;
}

void wishes_free(struct live *l)
{
    if (!l->wishes)
        return;
    free((void *)(uintptr_t)l->wishes->agents);
    free(l->wishes);
    json_decref(l->wishes_text);
}

/* ---- the scheduler's ---- */

int wishes_describe(struct core *core, const struct live *l, struct sched_session *ret)
{
    const struct session_wishes *wishes = l->wishes;
    char text[UUID_TEXT_MAX + GROUP_NAME_MAX + 2];
    char user[UUID_TEXT_MAX];

    if (!wishes)
        return 0;
    ret->designated = wishes->agents;
    ret->designated_count = wishes->agent_count;
    ret->designated_strict = !wishes->agents_preferred;
    ret->job_priority = wishes->job_priority;
    ret->is_preemptible = wishes->is_preemptible;
    ret->is_movable = wishes->is_movable;
    if (!wishes->group)
        return 0;
    (void)snprintf(text, sizeof(text), "%s:%s", uuid_format(&l->s.user_id, user), wishes->group);
    ret->group = arena_strdup(&core->scratch, text);
    ret->grouping = wishes->packs ? SCHED_PACK : SCHED_SPREAD;
    ret->grouping_strict = wishes->group_strict;
    return ret->group ? 0 : -ENOMEM;
}
