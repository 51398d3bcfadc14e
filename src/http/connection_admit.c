/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a request from its head: its route, and whether it may go on. */
#include "http/server_internal.h"

#include <errno.h>
#include <string.h>

#include "base/jsonw.h"

/* "Access-Control-*" for a browser that asks before it sends; they are nothing
 * to it without the Access-Control-Allow-Origin of origin_admit().
 */
static void connection_admit_preflight(struct request *req)
{
    const char *wanted = request_get_header(req, "Access-Control-Request-Headers");
    AQ_CLEANUP(strbuf_donep) struct strbuf allow = STRBUF_INIT;

    router_format_allow(req->match.allowed | 1u << METHOD_OPTIONS, &allow);
    request_add_header(req, "Allow", allow.data);
    request_add_header(req, "Access-Control-Allow-Methods", allow.data);
    request_add_header(req, "Access-Control-Allow-Headers", wanted ? wanted : "*");
    request_add_header(req, "Access-Control-Max-Age", "86400");
    request_reply_empty(req, 200);
}

static void connection_admit_refuse(struct request *req, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (err->code == EOPNOTSUPP) {
        router_format_allow(req->match.allowed, &text);
        request_add_header(req, "Allow", text.data);
        request_fail(req, err);
        return;
    }
    if (err->code == ENOENT)
        jsonw_str(&w, request_get_path(req));
    request_fail_data(req, err, text.len ? text.data : NULL);
}

bool connection_admit(struct connection *conn)
{
    struct server *server = conn->server;
    struct request *req = &conn->req;
    const char *target = request_get_target(req);
    size_t path_len = strcspn(target, "?");
    struct aq_error err = { .code = 0 };
    int r;

    if (server->origins && origin_admit(server->origins, req, &err) < 0) {
        request_fail(req, &err);
        return false;
    }
    r = router_match(server->router, req->method, target, path_len, &req->arena, &req->match, &err);
    if (r == -EOPNOTSUPP && req->method == METHOD_OPTIONS) {
        connection_admit_preflight(req);
        return false;
    }
    if (r < 0) {
        connection_admit_refuse(req, &err);
        return false;
    }
    if (target[path_len])
        r = url_query_parse(&req->arena, target + path_len + 1, strlen(target + path_len + 1),
                            &req->query, &err);
    if (r == 0 && server->guard)
        r = server->guard(req, req->match.route, server->guard_data, &err);
    if (r < 0)
        request_fail(req, &err);
    return r == 0;
}
