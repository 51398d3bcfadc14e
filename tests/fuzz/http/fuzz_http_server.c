/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on a connection, through the whole server: parser, router, query,
 * signature, bodies, streams and upgrades, with handlers that answer at once,
 * later, twice, and from the handler of another connection. Fed whole and in
 * pieces, it must answer the same.
 */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "http/loopback.h"
#include "http/sign.h"
#include "http/version.h"
#include "http/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_echo(struct request *req, void *data)
{
    const char *name = request_get_param(req, "name");
    size_t len;
    const char *body = request_get_body(req, &len);

    (void)data;
    if (len != strlen(body) && !memchr(body, '\0', len))
        __builtin_trap();
    request_add_header(req, "X-Path", request_get_path(req));
    request_add_header(req, "X-Name", name ? name : "");
    request_reply(req, 200, "text/plain", body, len);
}

static void on_stream(struct request *req, void *data)
{
    (void)data;
    request_begin(req, 200, "text/plain", NULL, NULL);
    (void)request_write(req, "abc", 3);
    request_end(req);
}

static void on_piece(struct request *req, const char *bytes, size_t len, int status, void *data)
{
    size_t *total = data;
    char text[32];

    (void)bytes;
    *total += len;
    if (len)
        return;
    (void)snprintf(text, sizeof(text), "%zu %d", *total, status);
    request_reply(req, 200, "text/plain", text, strlen(text));
}

static void on_upload(struct request *req, void *data)
{
    size_t *total = arena_alloc(request_get_arena(req), sizeof(*total));

    (void)data;
    request_read_body(req, on_piece, total);
}

/* A request that is answered later, from a list of all of them. */
struct waiter {
    struct list link;
    struct request *req;
    bool is_body; /* that goes on then */
};

static struct list waiters = { &waiters, &waiters };

static void wait_for(struct request *req, bool is_body)
{
    struct waiter *waiter = arena_alloc(request_get_arena(req), sizeof(*waiter));

    waiter->req = req;
    waiter->is_body = is_body;
    list_add(&waiters, &waiter->link);
}

/* Serve one that waits; false if there is none. The memory of the waiter goes with its request. */
static bool serve_waiter(void)
{
    struct waiter *waiter;

    if (list_is_empty(&waiters))
        return false;
    waiter = LIST_ENTRY(waiters.next, struct waiter, link);
    list_remove(&waiter->link);
    if (waiter->is_body)
        request_resume_body(waiter->req);
    else
        request_reply(waiter->req, 202, "text/plain", "later", 5);
    return true;
}

static void on_late(struct request *req, void *data)
{
    (void)data;
    wait_for(req, false);
}

/* Ends the requests of other connections; one of its own connection cannot wait now. */
static void on_others(struct request *req, void *data)
{
    (void)data;
    while (serve_waiter())
        continue;
    request_reply_empty(req, 204);
}

static void on_twice(struct request *req, void *data)
{
    (void)data;
    request_reply(req, 200, "text/plain", "once", 4);
    request_reply(req, 200, "text/plain", "twice", 5);
    request_end(req);
}

/* Each piece of the body has to wait for the next. */
static void on_slow_piece(struct request *req, const char *bytes, size_t len, int status,
                          void *data)
{
    on_piece(req, bytes, len, status, data);
    if (!len)
        return;
    request_pause_body(req);
    wait_for(req, true);
}

static void on_slow_upload(struct request *req, void *data)
{
    size_t *total = arena_alloc(request_get_arena(req), sizeof(*total));

    (void)data;
    request_read_body(req, on_slow_piece, total);
}

static void on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                       void *data)
{
    (void)data;
    (void)websocket_send(ws, is_text, bytes, len);
}

static void on_close(struct websocket *ws, uint16_t code, const struct aq_error *err, void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    (void)data;
}

static void on_websocket(struct request *req, void *data)
{
    static const struct websocket_ops ops = { NULL, on_message, NULL, on_close };
    static const struct websocket_options options = { .message_max = 1000 };
    struct websocket *ws;
    struct aq_error err = { .code = 0 };

    if (websocket_accept(req, &options, &ops, data, &ws, &err) < 0)
        request_fail(req, &err);
}

static const struct route routes[] = {
    { METHOD_GET, "/", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_POST, "/", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_GET, "/a/{name}", 0, on_echo, NULL, "Echo", 0, 0 },
    { METHOD_GET, "/a/_/b", 0, on_stream, NULL, "Stream", 0, 0 },
    { METHOD_POST, "/u", 0, on_upload, NULL, "Upload", ROUTE_STREAM_BODY, 100 },
    { METHOD_POST, "/v", 0, on_slow_upload, NULL, "Slow upload", ROUTE_STREAM_BODY, 100 },
    { METHOD_GET, "/l", 0, on_late, NULL, "Late", 0, 0 },
    { METHOD_POST, "/l", 0, on_late, NULL, "Late", ROUTE_STREAM_BODY, 100 },
    { METHOD_GET, "/o", 0, on_others, NULL, "Others", 0, 0 },
    { METHOD_GET, "/t", 0, on_twice, NULL, "Twice", 0, 0 },
    { METHOD_GET, "/w", 0, on_websocket, NULL, "WebSocket", 0, 0 },
    { METHOD_GET, "/s", 1, on_echo, NULL, "Signed", 0, 0 },
};

static int guard(struct request *req, const struct route *route, void *data, struct aq_error *err)
{
    struct api_version version;
    struct sign_claim claim;
    int r;

    (void)data;
    if (!route->role)
        return 0;
    r = sign_claim_from_request(req, clock_realtime_usec(), &claim, err);
    if (r == 0)
        r = sign_verify(NULL, &claim, "secret", err);
    if (r == 0)
        r = api_version_accept(claim.input.version, &version, err);
    return r;
}

/* Everything answers at the second of the signature's test vector. */
static int64_t fixed_time(void *data)
{
    (void)data;
    return INT64_C(1795222923456789);
}

/* Another connection has requests that wait, too; where they wait behind each other, each answer
 * lets the loop begin the next.
 */
static void talk(struct server *server, const uint8_t *data, size_t size, size_t step,
                 struct strbuf *answer)
{
    static const char other_says[] = "GET /l HTTP/1.1\r\nHost: a\r\n\r\n"
                                     "GET /o HTTP/1.1\r\nHost: a\r\n\r\n"
                                     "GET /l HTTP/1.1\r\nHost: a\r\n\r\n";
    struct loopback *lb = loopback_new(server), *other = loopback_new(server);

    loopback_send(other, other_says, sizeof(other_says) - 1);
    for (size_t at = 0; at < size; at += step)
        loopback_send(lb, data + at, AQ_MIN(step, size - at));
    do
        loopback_settle(lb);
    while (serve_waiter());
    strbuf_add(answer, loopback_get_output(lb)->data, loopback_get_output(lb)->len);
    loopback_free(lb);
    loopback_free(other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct clock clock = { fixed_time, fixed_time, NULL };
    static uv_loop_t loop;
    static struct server *servers[2]; /* for pages of one origin; for this machine only */
    static char page[] = "http://a", *pages[] = { page };
    static const struct origin_rules origins[] = { { .allowed = pages, .count = 1 },
                                                   { .is_local = true } };
    struct server *server;
    AQ_CLEANUP(strbuf_donep) struct strbuf whole = STRBUF_INIT, pieces = STRBUF_INIT;

    if (!servers[1]) {
        static struct router *router;
        struct server_options options = {
            .app.guard = guard,
            .limits = { .message = { 200, 1000, 10, 500 } },
        };

        clock_set(&clock);
        log_init("fuzz", (enum log_level)0); /* silent */
        router = router_new();
        if (uv_loop_init(&loop) < 0 || router_add(router, routes, AQ_COUNT(routes), NULL, NULL) < 0)
            return 0;
        options.app.router = router;
        for (size_t i = 0; i < AQ_COUNT(servers); i++) {
            options.app.origins = &origins[i];
            servers[i] = server_new(&loop, &options);
        }
    }
    server = servers[size % 2];
    talk(server, data, size, size ? size : 1, &whole);
    talk(server, data, size, 1 + size % 5, &pieces);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    /* After an upgrade the bytes are given on by the loop, which did not run. */
    if (memmem(whole.data, whole.len, " 101 ", 5))
        return 0;
    if (whole.len != pieces.len || memcmp(whole.data, pieces.data, whole.len) != 0)
        __builtin_trap();
    return 0;
}
