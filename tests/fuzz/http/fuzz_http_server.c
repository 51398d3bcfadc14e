/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on a connection, through the whole server: parser, router, query,
 * signature, bodies, streams and upgrades. Fed whole and in pieces, it must
 * answer the same.
 */
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
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

static void talk(struct server *server, const uint8_t *data, size_t size, size_t step,
                 struct strbuf *answer)
{
    struct loopback *lb = NULL;

    if (loopback_new(server, &lb, NULL) < 0)
        return;
    for (size_t at = 0; at < size; at += step)
        loopback_send(lb, data + at, AQ_MIN(step, size - at));
    strbuf_add(answer, loopback_get_output(lb)->data, loopback_get_output(lb)->len);
    loopback_free(lb);
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
            .guard = guard,
            .limits = { .message = { 200, 1000, 10, 500 } },
        };

        clock_set(&clock);
        if (uv_loop_init(&loop) < 0 || router_new(&router, NULL) < 0
            || router_add(router, routes, AQ_COUNT(routes), NULL, NULL) < 0)
            return 0;
        options.router = router;
        for (size_t i = 0; i < AQ_COUNT(servers); i++) {
            options.origins = &origins[i];
            if (server_new(&loop, &options, &servers[i], NULL) < 0)
                return 0;
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
