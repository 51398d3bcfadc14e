/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler_opts of a resource group as Backend.AI shows it: all members that its clients read, with
 * what counts where the group's own options do not say it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/account/group_options_gql.h"

static void group_options_default(json_t *opts, const char *key, json_t *value)
{
    if (json_object_get(opts, key))
        json_decref(value);
    else
        json_object_set_new(opts, key, value);
}

static json_t *group_options_types(uint32_t types)
{
    json_t *list = json_array();

    for (int type = SESSION_INTERACTIVE; type <= SESSION_SYSTEM; type++)
        if (types >> type & 1)
            json_array_append_new(list, json_string(session_type_name(type)));
    return list;
}

static json_t *group_options_preemption(const struct core_scheduling *scheduling)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    core_write_preemption(scheduling, &w);
    return json_load_string(text.data, 0);
}

/* Backend.AI writes this one as one word. */
static const char *group_options_selection(const struct resource_group *group)
{
    return strcmp(group->selection, "round-robin") == 0 ? "roundrobin" : group->selection;
}

struct gql_value gql_group_options_get(struct gql_get *get, const void *parent)
{
    const struct resource_group *group = parent;
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    json_auto_t *opts = json_load_string(group->scheduler_opts ? group->scheduler_opts : "{}", 0);
    AQ_CLEANUP(aq_freep) char *text = NULL;
    struct core_scheduling scheduling;

    if (!json_is_object(opts)) /* of a database of another version */
        return gql_text(group->scheduler_opts);
    core_read_scheduling(group, &scheduling);
    core_default_scheduling(core, &scheduling);
    group_options_default(opts, "allowed_session_types",
                          group_options_types(scheduling.session_types));
    group_options_default(opts, "pending_timeout",
                          json_real((double)scheduling.pending_timeout_usec / USEC_PER_SEC));
    group_options_default(opts, "config", json_object());
    group_options_default(opts, "agent_selection_strategy",
                          json_string(group_options_selection(group)));
    group_options_default(opts, RESOURCE_OPTS_SPLITTING,
                          json_boolean(scheduling.splitting == SPLITTING_ALLOWED));
    json_object_set_new(opts, "preemption", group_options_preemption(&scheduling));
    /* What is only for parts of Backend.AI that are not here has Backend.AI's defaults. */
    group_options_default(opts, "agent_selector_config", json_object());
    group_options_default(opts, "enforce_spreading_endpoint_replica", json_false());
    group_options_default(opts, "route_cleanup_target_statuses", json_pack("[s]", "unhealthy"));
    text = json_dump_text(opts, JSON_COMPACT);
    return gql_copy(get, text);
}
