/* SPDX-License-Identifier: Apache-2.0 */
/* What Backend.AI's clients ask of a session besides its state: what it depends on, whether it
 * misuses what it has, how to reach it directly.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/session/session.h"
#include "manager/session/session_feature.h"
#include "manager/session/session_view.h"
#include "model/ssh_key.h"
#include "store/session_graph.h"

/* ---- what it depends on ---- */

#define TREE_MAX 1000 /* a session that several wait for is written for each of them */

struct session_report_graph {
    struct request *req;
    struct uuid id;
    struct session_graph graph;
};

/* store_tx_fn */
static int session_report_read_graph(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct session_report_graph *report = data;

    return session_graph_read(tx, &report->id, &report->graph, err);
}

/* How many nodes the tree below has, itself included; no more than TREE_MAX + 1 are counted. */
static size_t session_report_count_tree(const struct session_graph *graph, size_t index,
                                        size_t seen)
{
    const struct session_graph_node *node = &graph->nodes[index];

    seen++;
    for (size_t i = 0; i < node->dependency_count && seen <= TREE_MAX; i++)
        seen = session_report_count_tree(graph, node->dependencies[i], seen);
    return seen;
}

/* In the words that clients take apart: "KernelStatus.RUNNING", "2026-11-24 10:57:25.0+00:00". */
static void session_report_write_node(const struct session_report_graph *report, size_t index,
                                      struct jsonw *w)
{
    const struct session_graph_node *node = &report->graph.nodes[index];
    char status_text[64], changed[CLOCK_ISO_MAX];
    enum session_status status = SESSION_PENDING;

    (void)session_status_parse(node->status, &status);
    (void)snprintf(status_text, sizeof(status_text), "KernelStatus.%s",
                   session_view_status(api_principal(report->req), status));
    (void)clock_format_iso(node->changed_usec, changed);
    changed[strcspn(changed, "T")] = ' ';
    jsonw_object_begin(w);
    api_write_uuid(w, "session_id", &node->id);
    jsonw_member_str(w, "session_name", node->name);
    jsonw_member_str(w, "status", status_text);
    jsonw_member_str(w, "status_changed", changed);
    jsonw_key(w, "depends_on");
    jsonw_array_begin(w);
    for (size_t i = 0; i < node->dependency_count; i++)
        session_report_write_node(report, node->dependencies[i], w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

static void session_report_on_graph_read(void *data, int r, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct session_report_graph *report = data;
    struct aq_error own = *err;

    if (r == 0 && session_report_count_tree(&report->graph, 0, 0) > TREE_MAX)
        r = aq_fail_kind(&own, E2BIG, "generic-bad-request",
                         "as a tree, in which a session is once for each that waits for it, there "
                         "are more than %d",
                         TREE_MAX);
    if (r < 0) {
        request_fail(report->req, &own);
        return;
    }
    session_report_write_node(report, 0, &w);
    request_reply_json(report->req, 200, &out);
}

static void session_report_on_graph_found(struct request *req, const struct session_row *row,
                                          void *data)
{
    struct session_report_graph *report = arena_alloc(request_get_arena(req), sizeof(*report));
    const struct api *api = data;

    report->req = req;
    report->id = row->session.id;
    report->graph.arena = request_get_arena(req);
    store_read(core_store(api->core), session_report_read_graph, session_report_on_graph_read,
               report);
}

static void session_report_on_graph(struct request *req, void *data)
{
    session_find_by_owner(data, req, session_report_on_graph_found);
}

/* ---- misuse ---- */

/* Of its first kernel that misuses a GPU; null of one that does not. */
static void session_report_on_abuse(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    const struct session *session = session_find_live_by_owner(api, req);
    const struct kernel *kernel = session ? &session->kernels[0] : NULL;
    const char *text = NULL;

    if (!session)
        return;
    for (size_t i = 0; i < session->kernel_count && !text; i++)
        if ((text = core_kernel_limit_violations(api->core, &session->id, &session->kernels[i].id)))
            kernel = &session->kernels[i];
    jsonw_object_begin(&w);
    api_write_uuid(&w, "kernel", &kernel->id);
    jsonw_member_str(&w, "abuse_report", text);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- direct access ---- */

/* The ports of the node that lead to one of the container, as numbers. */
static void session_report_write_ports(const struct kernel *kernel, uint16_t inside,
                                       struct jsonw *w)
{
    json_auto_t *apps = json_load_string(apps_raw(kernel), 0);
    const json_t *app, *port;
    size_t i, k;

    jsonw_array_begin(w);
    json_array_foreach(apps, i, app)
        json_array_foreach(json_object_get(app, "container_ports"), k, port)
            if (json_integer_value(port) == inside)
                jsonw_int(
                    w, json_integer_value(json_array_get(json_object_get(app, "host_ports"), k)));
    jsonw_array_end(w);
}

/* Only sessions of the system have any, while they run on an agent. */
static void session_report_on_direct_access(struct request *req, void *data)
{
    const struct api *api = data;
    const struct session *session = session_find_live_by_owner(data, req);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct agent *agent;

    if (!session)
        return;
    agent = session->kernels[0].agent_id ? core_find_agent(api->core, session->kernels[0].agent_id)
                                         : NULL;
    jsonw_object_begin(&w);
    if (session->type == SESSION_SYSTEM && session->status == SESSION_RUNNING && agent) {
        jsonw_member_str(&w, "public_host", agent->addr);
        jsonw_key(&w, "sshd_ports");
        session_report_write_ports(&session->kernels[0], SSH_PORT, &w);
    }
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static const struct route session_report_routes[] = {
    { METHOD_GET, "/session/{name}/dependency-graph", API_USER, session_report_on_graph,
      owner_fields, "What a session waits for or waited for, what that did, and so on" },
    { METHOD_GET, "/session/{name}/abusing-report", API_USER, session_report_on_abuse, owner_fields,
      "Whether a session uses more of a GPU than its part" },
    { METHOD_GET, "/session/{name}/direct-access-info", API_USER, session_report_on_direct_access,
      owner_fields, "How to reach a session of the system directly; of others nothing" },
};
API_ROUTES_END(session_report);
