/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of a request from its head: its route, and whether it may go on. */
#include "http/server_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "http/client_address.h"

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

/* Whose request it is, as the server says that passes it on. */
static int connection_admit_client(struct connection *conn, struct aq_error *err)
{
    const char *value = request_get_header(&conn->req, SERVER_CLIENT_HEADER);
    char address[CLIENT_ADDRESS_MAX] = "unix";

    if (!value)
        return aq_fail_field(err, EINVAL, SERVER_CLIENT_HEADER,
                             "the header is missing: it has the address of the client");
    if (strcmp(value, "unix") != 0 && address_normalize(value, strlen(value), address) < 0)
        return aq_fail_field(err, EINVAL, SERVER_CLIENT_HEADER,
                             "'%.60s' is not an address; use that of the client, or unix", value);
    (void)snprintf(conn->address, sizeof(conn->address), "%s", address);
    places_take_for_request(conn);
    return 0;
}

bool connection_admit(struct connection *conn)
{
    struct request *req = &conn->req;
    const struct server_app *app = req->app;
    const char *target = request_get_target(req);
    size_t path_len = strcspn(target, "?");
    struct aq_error err = { .code = 0 };
    int r;

    if ((conn->is_adopted && connection_admit_client(conn, &err) < 0)
        || (app->origins && origin_admit(app->origins, req, &err) < 0)) {
        request_fail(req, &err);
        return false;
    }
    r = router_match(app->router, req->method, target, path_len, &req->arena, &req->match, &err);
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
    if (r == 0 && app->guard)
        r = app->guard(req, req->match.route, app->guard_data, &err);
    if (r < 0)
        request_fail(req, &err);
    return r == 0;
}
