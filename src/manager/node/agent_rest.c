/* SPDX-License-Identifier: Apache-2.0 */
/* /aliquot/v1/agents: the nodes, for administrators. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/node/node_feature.h"
#include "manager/call/list.h"
#include "manager/node/agent_devices.h"
#include "store/query.h"

/* ---- list and show ---- */

struct agent_list_params {
    struct api_page page;
    const char *status, *resource_group;
};

static const struct field list_fields[] = {
    { "status", FIELD_STR, FIELD_NULLABLE, offsetof(struct agent_list_params, status), 1, 16 },
    { "resource_group|scaling_group", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct agent_list_params, resource_group), 1, 64 },
    API_PAGE_FIELDS(struct agent_list_params),
    FIELD_END,
};

static void agent_write(const struct api_list *list, const struct store_page *page, size_t i,
                        struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf violations = STRBUF_INIT;
    const char *notes;
    const struct slot_types *types = core_slot_types(list->api->core);
    const struct principal *who = api_principal(list->req);
    const struct agent *agent = &page->agents[i].agent;
    const char *refusal = core_agent_get_refusal(list->api->core, agent->id);

    jsonw_object_begin(w);
    jsonw_member_str(w, "id", agent->id);
    jsonw_member_str(w, "status", agent_status_name(agent->status));
    jsonw_member_str(w, "resource_group", agent->resource_group);
    jsonw_member_str(w, "assigned_group", agent->assigned_group);
    jsonw_member_str(w, "region", agent->region);
    jsonw_member_str(w, "topology", agent->topology);
    jsonw_member_str(w, "assigned_topology", agent->assigned_topology);
    jsonw_member_str(w, "architecture", agent->architecture);
    jsonw_member_str(w, "version", agent->version);
    jsonw_member_str(w, "addr", agent->addr);
    jsonw_member_bool(w, "schedulable", agent->schedulable && !refusal);
    jsonw_member_str(w, "drain_reason", agent->schedulable ? refusal : agent->drain_reason);
    jsonw_member_bool(w, "ends_sessions", agent->ends_sessions);
    jsonw_key(w, "available_slots");
    slots_write_json(&agent->available, types, w);
    jsonw_key(w, "occupied_slots");
    slots_write_json(&page->agents[i].occupied, types, w);
    if (list->one_of) {
        agent_devices_write(list->api->core, who, agent, w);
        jsonw_key(w, "statistics");
        agent_measured_write(core_agent_measured(list->api->core, agent->id), w);
    } else {
        api_write_raw(w, "devices", agent->devices);
    }
    api_write_time(w, "first_contact", agent->first_contact_usec);
    api_write_time(w, "last_contact", core_agent_contact_usec(list->api->core, agent->id));
    api_write_time(w, "status_changed", agent->status_changed_usec);
    api_write_time(w, "lost_at", agent->lost_usec);
    jsonw_member_str(w, "runtime", core_agent_get_runtime(list->api->core, agent->id, &notes));
    jsonw_member_str(w, "runtime_notes", notes && notes[0] ? notes : NULL);
    core_agent_limit_violations(list->api->core, agent->id,
                                principal_is_superadmin(who) ? NULL : who->domain, &violations);
    jsonw_member_str(w, "gpu_misuse", violations.len ? violations.data : NULL);
    if (list->one_of)
        api_write_raw(w, "plugins", core_agent_get_plugins(list->api->core, agent->id));
    api_write_raw(w, "volumes", core_agent_get_volumes(list->api->core, agent->id));
    jsonw_key(w, "network");
    core_agent_write_network(list->api->core, agent->id, w);
    jsonw_member_bool(w, "connected", core_agent_is_connected(list->api->core, agent->id));
    jsonw_object_end(w);
}

static void agent_on_list(struct request *req, void *data)
{
    struct agent_list_params params = { .page.limit = API_LIST_DEFAULT };
    struct api_list *list = api_list_new(data, req);
    enum agent_status status;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && params.status) {
        if (agent_status_parse(params.status, &status) < 0)
            api_fail_param(&err, "status", "'%s' is no agent status", params.status);
        else
            list->query.statuses = 1u << status;
    }
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    api_page_apply(&params.page, &list->query);
    list->query.resource_group = params.resource_group;
    list->list = store_list_agents;
    list->write = agent_write;
    api_list_start(list);
}

static void agent_on_show(struct request *req, void *data)
{
    struct api_list *list = api_list_new(data, req);
    struct aq_error err = { 0 };

    if (api_decode(req, NULL, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    list->query.name = request_get_param(req, "id");
    list->query.limit = 1;
    list->list = store_list_agents;
    list->write = agent_write;
    list->one_of = "agent instance";
    api_list_start(list);
}

/* ---- commands ---- */

/* The agent of the path, decoded parameters; false after an answer. */
static bool agent_prepare(const struct api *api, struct request *req, void *params)
{
    const char *id = request_get_param(req, "id");
    struct aq_error err = { 0 };

    if (api_decode(req, params, NULL, &err) == 0 && !core_find_agent(api->core, id))
        problem_no_such(&err, "agent instance", "there is no agent '%.64s'", id);
    if (err.code)
        request_fail(req, &err);
    return !err.code;
}

struct drain_params {
    const char *reason;
    bool ends_sessions;
};

static const struct field drain_fields[] = {
    { "reason", FIELD_STR, FIELD_NULLABLE, offsetof(struct drain_params, reason), 0, 256,
      .doc = "shown to users who ask why" },
    { "end", FIELD_BOOL, 0, offsetof(struct drain_params, ends_sessions),
      .doc = "requeue or end the sessions on it, after their signal and grace" },
    FIELD_END,
};

static void agent_on_drain(struct request *req, void *data)
{
    struct core_agent_change change = { .drain = CORE_AGENT_DRAIN_ON };
    struct drain_params params = { 0 };
    struct api *api = data;

    if (!agent_prepare(api, req, &params))
        return;
    change.drain_reason = params.reason;
    change.ends_sessions = params.ends_sessions;
    core_change_agent(api->core, request_get_param(req, "id"), &change, api_who(api, req),
                      api_reply_done, req);
}

static void agent_on_undrain(struct request *req, void *data)
{
    static const struct core_agent_change change = { .drain = CORE_AGENT_DRAIN_OFF };
    struct api *api = data;

    if (agent_prepare(api, req, NULL))
        core_change_agent(api->core, request_get_param(req, "id"), &change, api_who(api, req),
                          api_reply_done, req);
}

struct change_params {
    const char *resource_group, *topology;
};

static const struct field change_fields[] = {
    { "resource_group|scaling_group", FIELD_STR, 0, offsetof(struct change_params, resource_group),
      0, 64, .doc = "over what the agent's settings say; empty = as they say" },
    { "topology", FIELD_STR, 0, offsetof(struct change_params, topology), 0, TOPOLOGY_MAX,
      .doc = "the same; where the agent is, as zone-a/rack-3/switch-1" },
    FIELD_END,
};

static void agent_on_change(struct request *req, void *data)
{
    struct core_agent_change change = { 0 };
    struct change_params params = { 0 };
    struct api *api = data;
    struct aq_error err;

    AQ_FAULT("api.agent.change");
    if (!agent_prepare(api, req, &params))
        return;
    if (!params.resource_group && !params.topology) {
        api_fail_param(&err, "body", "nothing to change: give resource_group or topology");
        request_fail(req, &err);
        return;
    }
    change.resource_group = params.resource_group;
    change.topology = params.topology;
    core_change_agent(api->core, request_get_param(req, "id"), &change, api_who(api, req),
                      api_reply_done, req);
}

static void agent_on_revoke(struct request *req, void *data)
{
    struct api *api = data;

    const char *id = request_get_param(req, "id");

    AQ_FAULT("api.agent.revoke");
    if (core_is_front(id) ? api_has_no_params(req) : agent_prepare(api, req, NULL))
        core_revoke_agent(api->core, id, api_who(api, req), api_reply_done, req);
}

static void agent_on_remove(struct request *req, void *data)
{
    struct api *api = data;

    AQ_FAULT("api.agent.remove");
    if (agent_prepare(api, req, NULL))
        core_remove_agent(api->core, request_get_param(req, "id"), api_who(api, req),
                          api_reply_done, req);
}

/* ---- join tokens ---- */

#define TOKEN_SEC_DEFAULT 3600
#define TOKEN_SEC_MAX (30 * 86400)

struct token_params {
    const char *agent_id, *proxy, *storage, *web, *manager;
    int64_t expires_sec;
};

static const struct field token_fields[] = {
    { "agent_id", FIELD_STR, FIELD_NULLABLE, offsetof(struct token_params, agent_id), 1,
      AGENT_ID_MAX, .doc = "only this agent may use it" },
    { "proxy", FIELD_STR, FIELD_NULLABLE, offsetof(struct token_params, proxy), 1,
      AGENT_ID_MAX - (int)(sizeof(LINK_PROXY_PREFIX) - 1),
      .doc = "for a proxy of this name, no agent" },
    { "storage", FIELD_STR, FIELD_NULLABLE, offsetof(struct token_params, storage), 1,
      AGENT_ID_MAX - (int)(sizeof(LINK_STORAGE_PREFIX) - 1),
      .doc = "for a storage host of this name, no agent" },
    { "web", FIELD_STR, FIELD_NULLABLE, offsetof(struct token_params, web), 1,
      AGENT_ID_MAX - (int)(sizeof(LINK_WEB_PREFIX) - 1),
      .doc = "for a web server of this name, no agent" },
    { "manager", FIELD_STR, FIELD_NULLABLE, offsetof(struct token_params, manager), 0,
      AGENT_ID_MAX - (int)(sizeof(LINK_MANAGER_PREFIX) - 1),
      .doc = "for a manager of this name, which gets the keys of the cluster; empty: of any name" },
    { "expires_sec", FIELD_INT, 0, offsetof(struct token_params, expires_sec), 1, TOKEN_SEC_MAX },
    FIELD_END,
};

struct token_reply {
    struct api *api;
    struct request *req;
    int64_t expires_usec;
};

static void agent_on_token_made(void *data, int r, const struct aq_error *err, const char *token)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct token_reply *reply = data;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(reply->req, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "token", token);
    api_write_time(&w, "expires_at", reply->expires_usec);
    jsonw_member_str(&w, "link_host", core_link_host(reply->api->core));
    jsonw_member_int(&w, "link_port", core_link_port(reply->api->core));
    jsonw_object_end(&w);
    request_reply_json(reply->req, 201, &out);
}

/* The one it is for is the agent_id afterwards; a front daemon's is written to 'front'. */
static int agent_check_token(struct token_params *params, char front[AGENT_ID_MAX + 1],
                             struct aq_error *err)
{
    const struct {
        const char *name, *value, *prefix;
    } fronts[] = { { "proxy", params->proxy, LINK_PROXY_PREFIX },
                   { "storage", params->storage, LINK_STORAGE_PREFIX },
                   { "web", params->web, LINK_WEB_PREFIX },
                   { "manager", params->manager, LINK_MANAGER_PREFIX } };
    const char *name = "agent_id", *id = params->agent_id;

    for (size_t i = 0; i < AQ_COUNT(fronts); i++) {
        if (!fronts[i].value)
            continue;
        if (id)
            return api_fail_param(
                err, fronts[i].name,
                "a token is for one agent, proxy, storage host, web server or manager");
        name = fronts[i].name;
        id = fronts[i].value;
        (void)snprintf(front, AGENT_ID_MAX + 1, "%s%s", fronts[i].prefix, id);
        params->agent_id = front;
    }
    if (id && agent_id_check(id, NULL) < 0 && !(id == params->manager && !id[0]))
        return api_fail_param(err, name, "must be letters, digits, '.', '_' and '-'");
    return 0;
}

static void agent_on_make_token(struct request *req, void *data)
{
    struct token_reply *reply = arena_alloc(request_get_arena(req), sizeof(*reply));
    struct token_params params = { .expires_sec = TOKEN_SEC_DEFAULT };
    char front[AGENT_ID_MAX + 1];
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0)
        (void)agent_check_token(&params, front, &err);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    *reply = (struct token_reply){ .api = api,
                                   .req = req,
                                   .expires_usec = clock_realtime_usec()
                                                   + params.expires_sec * USEC_PER_SEC };
    core_make_token(api->core, params.agent_id, params.expires_sec * USEC_PER_SEC,
                    api_who(api, req), agent_on_token_made, reply);
}

static const struct route agent_routes[] = {
    { METHOD_GET, "/aliquot/v1/agents", API_ADMIN, agent_on_list, list_fields, "List agents" },
    { METHOD_GET, "/aliquot/v1/agents/{id}", API_ADMIN, agent_on_show, NULL, "Show one agent" },
    { METHOD_PATCH, "/aliquot/v1/agents/{id}", API_SUPERADMIN, agent_on_change, change_fields,
      "Move an agent to another resource group; its sessions stay", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/agents/{id}/drain", API_SUPERADMIN, agent_on_drain, drain_fields,
      "Place no more sessions on an agent", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/agents/{id}/undrain", API_SUPERADMIN, agent_on_undrain, NULL,
      "Place sessions on an agent again", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/agents/{id}/revoke", API_SUPERADMIN, agent_on_revoke, NULL,
      "Accept an agent's certificates no longer", .answer = { 204 } },
    { METHOD_DELETE, "/aliquot/v1/agents/{id}", API_SUPERADMIN, agent_on_remove, NULL,
      "Forget an agent that holds no kernels", .answer = { 204 } },
    { METHOD_POST, "/aliquot/v1/join-tokens", API_SUPERADMIN, agent_on_make_token, token_fields,
      "Make a token by which one agent may join once", .answer = { 201 } },
};
API_ROUTES_END(agent);
