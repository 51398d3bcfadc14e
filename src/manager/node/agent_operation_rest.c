/* SPDX-License-Identifier: Apache-2.0 */
/* What administrators of Backend.AI do to agents over REST: take them into scheduling or out of
 * it, and ask the watcher of one about it, or to stop or restart it: here the agent is its own
 * watcher, which asks systemctl.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "manager/node/node_feature.h"

/* ---- scheduling ---- */

struct operation_params {
    const char *op;
    struct str_list agents;
};

static const struct field operation_fields[] = {
    { "op", FIELD_STR, FIELD_REQUIRED, offsetof(struct operation_params, op), 1, 32,
      .doc = "include-agents or exclude-agents" },
    { "args", FIELD_STR_LIST, FIELD_REQUIRED, offsetof(struct operation_params, agents), 0, 1000,
      .doc = "ids of agents" },
    FIELD_END,
};

/* Several agents are being changed. */
struct agent_operation {
    struct request *req;
    size_t left;
    int result; /* of the first that failed */
    struct aq_error err;
};

static void agent_operation_on_done(void *data, int r, const struct aq_error *err)
{
    struct agent_operation *operation = data;

    if (r < 0 && operation->result == 0) {
        operation->result = r;
        operation->err = *err;
    }
    if (--operation->left == 0)
        api_reply_done(operation->req, operation->result, &operation->err);
}

static int agent_operation_check(const struct api *api, const struct operation_params *params,
                                 struct aq_error *err)
{
    if (strcmp(params->op, "include-agents") != 0 && strcmp(params->op, "exclude-agents") != 0)
        return api_fail_param(err, "op", "must be include-agents or exclude-agents");
    for (size_t i = 0; i < params->agents.count; i++)
        if (!core_find_agent(api->core, params->agents.items[i]))
            return problem_no_such(err, "agent instance", "there is no agent '%.64s'",
                                   params->agents.items[i]);
    return 0;
}

static void agent_operation_on_schedule(struct request *req, void *data)
{
    struct agent_operation *operation = arena_alloc(request_get_arena(req), sizeof(*operation));
    struct core_agent_change change = { 0 };
    struct operation_params params = { .op = NULL };
    struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0 || agent_operation_check(api, &params, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    operation->req = req;
    operation->left = params.agents.count + 1;
    change.drain = params.op[0] == 'e' ? CORE_AGENT_DRAIN_ON : CORE_AGENT_DRAIN_OFF;
    for (size_t i = 0; i < params.agents.count; i++)
        core_change_agent(api->core, params.agents.items[i], &change, api_who(api, req),
                          agent_operation_on_done, operation);
    agent_operation_on_done(operation, 0, NULL);
}

/* ---- watchers ---- */

struct watcher_params {
    const char *agent_id;
};

static const struct field watcher_fields[] = {
    { "agent_id|agent", FIELD_STR, FIELD_REQUIRED, offsetof(struct watcher_params, agent_id), 1,
      AGENT_ID_MAX },
    FIELD_END,
};

/* Of one request. */
struct agent_watch {
    struct request *req;
    const char *agent_id, *action;
};

/* "ActiveState=active" of lines of these. */
static void agent_operation_write_state(const char *state, struct jsonw *w)
{
    jsonw_key(w, "state");
    jsonw_object_begin(w);
    while (*state) {
        size_t len = strcspn(state, "\n"), name = strcspn(state, "=\n");

        if (name < len) {
            jsonw_keyn(w, state, name);
            jsonw_strn(w, state + name + 1, len - name - 1);
        }
        state += len + (state[len] == '\n');
    }
    jsonw_object_end(w);
}

static void agent_operation_write_message(const struct agent_watch *watch, const char *unit,
                                          struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    bool is_stop = strcmp(watch->action, "stop") == 0;

    strbuf_addf(&text, "agent %s %s", watch->agent_id,
                strcmp(watch->action, "status") == 0 ? "runs"
                : is_stop                            ? "is stopped"
                                                     : "is restarted");
    if (unit[0])
        strbuf_addf(&text, ", %s", unit);
    jsonw_member_str(w, "message", text.data);
}

/* core_service_fn */
static void agent_operation_on_answer(void *data, int r, const struct aq_error *err,
                                      const char *unit, const char *state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct agent_watch *watch = data;
    struct jsonw w = jsonw_make(&out);

    if (r < 0) {
        request_fail(watch->req, err);
        return;
    }
    jsonw_object_begin(&w);
    agent_operation_write_message(watch, unit, &w);
    jsonw_member_str(&w, "agent", watch->agent_id);
    jsonw_member_str(&w, "unit", unit[0] ? unit : NULL);
    agent_operation_write_state(state, &w);
    jsonw_object_end(&w);
    request_reply_json(watch->req, 200, &out);
}

static void agent_operation_watch(struct api *api, struct request *req, const char *action)
{
    struct agent_watch *watch = arena_alloc(request_get_arena(req), sizeof(*watch));
    struct watcher_params params = { .agent_id = NULL };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && !core_find_agent(api->core, params.agent_id))
        problem_no_such(&err, "agent instance", "there is no agent '%.64s'", params.agent_id);
    if (err.code) {
        request_fail(req, &err);
        return;
    }
    *watch = (struct agent_watch){ .req = req, .agent_id = params.agent_id, .action = action };
    if (strcmp(action, "status") != 0)
        log_info("%s wants to %s agent %s", api_principal(req)->access_key, action,
                 params.agent_id);
    core_command_service(api->core, params.agent_id, action, agent_operation_on_answer, watch);
}

static void agent_operation_on_status(struct request *req, void *data)
{
    agent_operation_watch(data, req, "status");
}

static void agent_operation_on_stop(struct request *req, void *data)
{
    agent_operation_watch(data, req, "stop");
}

static void agent_operation_on_restart(struct request *req, void *data)
{
    agent_operation_watch(data, req, "restart");
}

/* Who could be told to start it is the agent itself: it runs, or nobody hears. */
static void agent_operation_on_start(struct request *req, void *data)
{
    struct watcher_params params = { .agent_id = NULL };
    struct agent_watch watch = { .req = req, .action = "status" };
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && !core_find_agent(api->core, params.agent_id))
        problem_no_such(&err, "agent instance", "there is no agent '%.64s'", params.agent_id);
    else if (!err.code && !core_agent_is_connected(api->core, params.agent_id))
        aq_fail_kind(&err, ENOTCONN, "service-unavailable",
                     "agent %s is not connected, and nothing else on its machine listens to the "
                     "manager: say 'systemctl start aliquot-agent' there",
                     params.agent_id);
    watch.agent_id = params.agent_id;
    if (err.code)
        request_fail(req, &err);
    else
        agent_operation_on_answer(&watch, 0, NULL, "", "");
}

static const struct route agent_operation_routes[] = {
    { METHOD_POST, "/manager/scheduler/operation", API_SUPERADMIN, agent_operation_on_schedule,
      operation_fields, "Let agents take sessions, or take none", .answer = { 204 } },
    { METHOD_GET, "/resource/watcher", API_SUPERADMIN, agent_operation_on_status, watcher_fields,
      "The state of an agent as a service of systemd" },
    { METHOD_POST, "/resource/watcher/agent/start", API_SUPERADMIN, agent_operation_on_start,
      watcher_fields, "Say that an agent runs, or how to start it" },
    { METHOD_POST, "/resource/watcher/agent/stop", API_SUPERADMIN, agent_operation_on_stop,
      watcher_fields, "Have systemd stop an agent; its sessions go on" },
    { METHOD_POST, "/resource/watcher/agent/restart", API_SUPERADMIN, agent_operation_on_restart,
      watcher_fields, "Have systemd restart an agent; its sessions go on" },
};
API_ROUTES_END(agent_operation);
