/* SPDX-License-Identifier: Apache-2.0 */
/* The first words: version, health, and the route table as documentation. */
#include <string.h>

#include "base/clock.h"
#include "manager/cluster/cluster_feature.h"
#include "manager/call/manager_health.h"
#include "manager/redis/redis.h"

/* What clients that look at the manager's version are told: the features that
 * they then use are those that are served here.
 */
#define MANAGER_COMPATIBLE "24.12.0"

static void hello_write_route(const struct route *route, struct jsonw *w)
{
    jsonw_object_begin(w);
    jsonw_member_str(w, "method", method_name(route->method));
    jsonw_member_str(w, "path", route->path);
    jsonw_member_str(w, "access", api_role_name(route->role & API_ROLE_MASK));
    jsonw_member_str(w, "doc", route->doc);
    jsonw_member_bool(w, "idempotency_key", route->role & API_ANSWERED_ONCE);
    jsonw_member_bool(w, "streams_body", route->flags & ROUTE_STREAM_BODY);
    jsonw_key(w, "params");
    decode_describe(route->body, w);
    jsonw_object_end(w);
}

static void hello_on_routes(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;
    const struct route *const *routes;
    size_t count;

    routes = router_list(api->router, &count);
    jsonw_object_begin(&w);
    jsonw_key(&w, "routes");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count; i++)
        hello_write_route(routes[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* ---- the same as text ---- */

/* Names come from static tables, but "<" in a doc line must not break the page. */
static void hello_escape_html(struct strbuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            strbuf_adds(out, "&lt;");
        else if (*text == '&')
            strbuf_adds(out, "&amp;");
        else
            strbuf_addc(out, *text);
    }
}

static void hello_write_html_params(struct strbuf *out, const struct field *table)
{
    const char *separator = "";

    for (const struct field *field = table; field && field->names; field++) {
        strbuf_addf(out, "%s<code>%.*s</code>%s", separator, (int)strcspn(field->names, "|"),
                    field->names, field->flags & FIELD_REQUIRED ? "*" : "");
        if (field->sub) {
            strbuf_adds(out, " { ");
            hello_write_html_params(out, field->sub);
            strbuf_adds(out, " }");
        }
        separator = ", ";
    }
}

static void hello_reply_html(const struct api *api, struct request *req)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct route *const *routes;
    size_t count;

    routes = router_list(api->router, &count);
    strbuf_adds(&out,
                "<!doctype html><html lang=en><meta charset=utf-8><title>Aliquot " ALIQUOT_VERSION
                "</title><h1>Aliquot " ALIQUOT_VERSION "</h1>"
                "<p>Requests are signed. Parameters marked * are required.<table>"
                "<tr><th>method<th>path<th>who<th>what<th>parameters");
    for (size_t i = 0; i < count; i++) {
        strbuf_addf(&out, "<tr><td>%s<td><code>%s</code><td>%s<td>", method_name(routes[i]->method),
                    routes[i]->path, api_role_name(routes[i]->role & API_ROLE_MASK));
        hello_escape_html(&out, routes[i]->doc);
        strbuf_adds(&out, "<td>");
        hello_write_html_params(&out, routes[i]->body);
    }
    strbuf_adds(&out, "</table></html>\n");
    request_reply(req, 200, "text/html; charset=utf-8", out.data, out.len);
}

static void hello_on_hello(struct request *req, void *data)
{
    static const char hello[] = "{\"version\":\"" API_VERSION_ANNOUNCED
                                "\",\"manager\":\"" MANAGER_COMPATIBLE
                                "\",\"aliquot\":\"" ALIQUOT_VERSION "\"}";
    const char *accept = request_get_header(req, "Accept");

    if (accept && strstr(accept, "text/html"))
        hello_reply_html(data, req);
    else if (request_get_query(req, "routes"))
        hello_on_routes(req, data);
    else
        request_reply(req, 200, "application/json", hello, sizeof(hello) - 1);
}

/* Signs that the database is an older copy: agents that are refused since they follow a later epoch,
 * and orders that followed commits which it lacks.
 */
static void hello_write_older_database(struct core *core, struct jsonw *w)
{
    struct core_lost_commits lost;
    const char *agent_id;
    int64_t ahead = core_get_epoch_ahead(core, &agent_id);

    if (ahead) {
        jsonw_member_int(w, "epoch", store_get_epoch(core_store(core)));
        jsonw_member_int(w, "epoch_ahead", ahead);
    }
    if (core_get_lost_commits(core, &lost)) {
        jsonw_member_int(w, "lost_commits", lost.seen - lost.had);
        jsonw_member_int(w, "lost_commits_epoch", lost.epoch);
    }
}

static void hello_on_health(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", api->is_frozen ? "frozen" : "ok");
    jsonw_member_str(&w, "version", ALIQUOT_VERSION);
    jsonw_member_int(&w, "uptime_sec", (clock_monotonic_usec() - api->started_usec) / USEC_PER_SEC);
    api_write_time(&w, "database_away_since", store_get_away_usec(core_store(api->core)));
    api_write_time(&w, "redis_away_since", redis_get_away_usec(api));
    api_write_time(&w, "etcd_away_since", api->etcd_away_usec);
    api_write_time(&w, "backup_made_at", core_restored_usec(api->core));
    hello_write_older_database(api->core, &w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

/* This manager leads, as it has an API of its own: see manager/lead.h. */
static void hello_on_manager_health(struct request *req, void *data)
{
    const struct api *api = data;
    static const struct leader_claim alone = { .name = "" };
    const struct leader_claim *claim = core_self(api->core) ? core_self(api->core) : &alone;
    const struct manager_health health = { .name = claim->name,
                                           .role = "leader",
                                           .leader = claim,
                                           .epoch = store_get_epoch(core_store(api->core)) };

    if (api_has_no_params(req))
        manager_health_reply(req, &health);
}

/* As managers of Backend.AI answer balancers from 26 on. */
static void hello_on_component(struct request *req, void *data)
{
    static const char healthy[] = "{\"status\":\"healthy\",\"version\":\"" MANAGER_COMPATIBLE
                                  "\",\"component\":\"manager\"}";

    (void)data;
    if (api_has_no_params(req))
        request_reply(req, 200, "application/json", healthy, sizeof(healthy) - 1);
}

/* Clients ask what their enterprise edition was licensed for, and print the certificate. */
static void hello_on_license(struct request *req, void *data)
{
    static const char license[] = "{\"status\":\"valid\",\"certificate\":{"
                                  "\"product\":\"Aliquot " ALIQUOT_VERSION
                                  "\",\"license\":\"Apache-2.0\",\"expires\":\"never\"}}";

    (void)data;
    if (api_has_no_params(req))
        request_reply(req, 200, "application/json", license, sizeof(license) - 1);
}

static const struct field hello_fields[] = {
    { "routes", FIELD_IGNORED, .doc = "answer as GET /aliquot/v1/routes" },
    FIELD_END,
};

static const struct route hello_routes[] = {
    { METHOD_GET, "/", API_PUBLIC, hello_on_hello, hello_fields,
      "Versions, for negotiation; in a browser, the list of routes",
      .answer = { .types = "application/json|text/html" } },
    { METHOD_GET, "/aliquot/v1/routes", API_PUBLIC, hello_on_routes, NULL, "All routes as data" },
    { METHOD_GET, "/aliquot/v1/health", API_PUBLIC, hello_on_health, NULL,
      "Whether the manager works" },
    { METHOD_GET, MANAGER_HEALTH_PATH, API_PUBLIC, hello_on_manager_health, NULL,
      "Whether this one of several managers leads, stands by, or waits for a leader (503)" },
    { METHOD_GET, "/health", API_PUBLIC, hello_on_component, NULL,
      "That the manager answers, as Backend.AI says it" },
    { METHOD_GET, "/license", API_USER, hello_on_license, NULL,
      "The license, as clients of an enterprise edition ask for it" },
};
API_ROUTES_END(hello);
