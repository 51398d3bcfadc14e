/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/nodes: the nodes of the caller's resource groups, without addresses, devices and
 * whose sessions they hold.
 */
#include <string.h>

#include "manager/live/live.h"
#include "manager/node/node_feature.h"

struct nodes_request {
    const struct api *api;
    struct request *req;
    struct live_groups *groups;
};

/* 'groups' as in struct live_scope (live_views.h). */
static bool nodes_has_group(const char *groups, const struct agent *agent)
{
    AQ_CLEANUP(aq_freep) char *line = aq_format("\n%s\n", agent->resource_group);

    return !groups || strstr(groups, line);
}

static void nodes_write_one(const struct core *core, const struct agent *agent, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots occupied = { 0 }, free_slots = { 0 };
    const struct slot_types *types = core_slot_types(core);
    const char *refusal = core_agent_get_refusal(core, agent->id);

    slots_copy(&free_slots, &agent->available);
    if (core_get_occupied(core, agent->id, &occupied) < 0
        || slots_sub(&free_slots, &occupied) < 0) /* out of range */
        slots_done(&free_slots);
    jsonw_object_begin(w);
    jsonw_member_str(w, "id", agent->id);
    jsonw_member_str(w, "status", agent_status_name(agent->status));
    jsonw_member_str(w, "resource_group", agent->resource_group);
    jsonw_member_str(w, "architecture", agent->architecture);
    jsonw_member_bool(w, "schedulable", agent->schedulable && !refusal);
    jsonw_member_str(w, "drain_reason", agent->schedulable ? refusal : agent->drain_reason);
    jsonw_key(w, "total_slots");
    slots_write_json(&agent->available, types, w);
    jsonw_key(w, "free_slots");
    slots_write_json(&free_slots, types, w);
    jsonw_object_end(w);
}

static void nodes_reply(const struct api *api, struct request *req, const char *groups)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct agent *agent;
    int64_t total = 0;

    jsonw_object_begin(&w);
    jsonw_key(&w, "items");
    jsonw_array_begin(&w);
    for (size_t i = 0; (agent = core_get_agent(api->core, i)); i++) {
        if (agent->status == AGENT_TERMINATED || !nodes_has_group(groups, agent))
            continue;
        nodes_write_one(api->core, agent, &w);
        total++;
    }
    jsonw_array_end(&w);
    jsonw_member_int(&w, "total", total);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* live_groups_fn */
static void nodes_on_groups(void *data, int r, char *names, const struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *groups = names;
    const struct nodes_request *nodes = data;

    if (r < 0)
        request_fail(nodes->req, err);
    else
        nodes_reply(nodes->api, nodes->req, groups ? groups : "");
}

static void nodes_on_list(struct request *req, void *data)
{
    struct nodes_request *nodes = arena_alloc(request_get_arena(req), sizeof(*nodes));
    const struct principal *who = api_principal(req);
    const struct api *api = data;

    if (!api_has_no_params(req))
        return;
    if (principal_may(who->role, API_ADMIN)) {
        nodes_reply(api, req, NULL);
        return;
    }
    *nodes = (struct nodes_request){ .api = api, .req = req };
    nodes->groups = live_groups_read(api->core, core_find_user(api->core, &who->user_id),
                                     who->access_key, nodes_on_groups, nodes);
}

static const struct route nodes_routes[] = {
    { METHOD_GET, "/aliquot/v1/nodes", API_USER, nodes_on_list, NULL,
      "Nodes of the caller's resource groups: state, all and free resources" },
};
API_ROUTES_END(nodes);
