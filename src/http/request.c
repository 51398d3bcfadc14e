/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler asks of its request: target, headers, parameters, body. */
#include "http/server_internal.h"

#include <string.h>

#define KEEP_ARENA 16384

void request_init(struct request *req, struct connection *conn)
{
    const struct message_head *head = message_get_head(conn->parser);
    const char *override;

    *req = (struct request){
        .conn = conn,
        .app = conn->server->app,
        .method = head->method,
        .arena = conn->server->spare,
        .keep_alive = head->keep_alive,
    };
    conn->server->spare = (struct arena)ARENA_INIT;
    strbuf_init(&req->body);
    strbuf_init(&req->headers);
    conn->has_request = true;
    override = head->method == METHOD_POST ? message_get_header(head, "X-Method-Override") : NULL;
    if (override)
        req->method = method_parse(override);
}

void request_done(struct request *req)
{
    struct connection *conn = req->conn;

    conn->has_request = false;
    drain_leave(req);
    if (req->unsent_bytes && conn->stream) { /* it is under way until the client has the answer */
        conn->unsent_client = req->client;
        conn->unsent_bytes = req->unsent_bytes + req->body_bytes;
    } else {
        quota_leave(&conn->server->quota, req->client, req->body_bytes + req->unsent_bytes);
    }
    strbuf_done(&req->body);
    strbuf_done(&req->headers);
    req->on_body = NULL;
    req->body_paused = false;
    if (!req->arena.head)
        return;
    arena_done(&conn->server->spare);
    arena_clear(&req->arena, KEEP_ARENA);
    conn->server->spare = req->arena;
    req->arena = (struct arena)ARENA_INIT;
}

int request_set_client(struct request *req, const char *name, struct aq_error *err)
{
    return quota_enter(&req->conn->server->quota, name, &req->client, err);
}

enum method request_get_method(const struct request *req)
{
    return req->method;
}

const struct message_head *request_get_head(const struct request *req)
{
    return message_get_head(req->conn->parser);
}

const char *request_get_target(const struct request *req)
{
    return request_get_head(req)->target;
}

const char *request_get_path(const struct request *req)
{
    struct request *own = (struct request *)(uintptr_t)req; /* what is computed on demand */
    const char *target = request_get_target(req);

    if (!own->path && target)
        own->path = arena_strndup(&own->arena, target, strcspn(target, "?"));
    return own->path ? own->path : "";
}

const char *request_get_header(const struct request *req, const char *name)
{
    return message_get_header(request_get_head(req), name);
}

const struct route *request_get_route(const struct request *req)
{
    return req->match.route;
}

const char *request_get_param(const struct request *req, const char *name)
{
    for (size_t i = 0; i < req->match.param_count; i++)
        if (!strcmp(req->match.params[i].name, name))
            return req->match.params[i].value;
    return NULL;
}

const struct url_query *request_get_queries(const struct request *req)
{
    return &req->query;
}

const char *request_get_query(const struct request *req, const char *name)
{
    return url_query_get(&req->query, name);
}

const char *request_get_body(const struct request *req, size_t *ret_len)
{
    if (ret_len)
        *ret_len = req->body.len;
    return req->body.data;
}

struct arena *request_get_arena(struct request *req)
{
    return &req->arena;
}

const char *request_get_address(const struct request *req)
{
    const struct connection *conn = req->conn;

    return conn->stream && !conn->is_adopted ? stream_get_address(conn->stream) : conn->address;
}

bool request_is_passed_on(const struct request *req)
{
    return req->conn->is_adopted;
}

uv_loop_t *request_get_loop(const struct request *req)
{
    return req->conn->server->loop;
}

void request_set_data(struct request *req, void *data)
{
    req->data = data;
}

void *request_get_data(const struct request *req)
{
    return req->data;
}

void request_set_gone(struct request *req, void (*on_gone)(struct request *req, void *data),
                      void *data)
{
    req->on_gone = on_gone;
    req->gone_data = data;
}

bool request_is_gone(const struct request *req)
{
    return req->gone;
}

void request_read_body(struct request *req, request_body_fn *on_body, void *data)
{
    req->on_body = on_body;
    req->body_data = data;
    connection_invite_body(req->conn);
    server_set_timer(req->conn, TIMER_BODY);
    connection_resume(req->conn);
}

void request_pause_body(struct request *req)
{
    req->body_paused = true;
    if (!req->conn->stream)
        return;
    server_set_timer(req->conn, TIMER_NONE);
    stream_pause(req->conn->stream);
}

void request_resume_body(struct request *req)
{
    if (!req->body_paused)
        return;
    req->body_paused = false;
    if (req->conn->stream && !req->body_complete)
        server_set_timer(req->conn, TIMER_BODY);
    connection_resume(req->conn);
}
