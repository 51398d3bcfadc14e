/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection to a port within a kernel's container: binary messages here, bytes there
 * (app_connection.h). Until an app listens the request waits, so that a failure is an answer to it.
 *
 * The text {"type": "end"} ends what its sender sends; of the program's end the client is told
 * so if it has asked for it. Closed with 1013 if nobody listens there, with 1001 when the program
 * has closed.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/websocket.h"
#include "manager/stream/app_connection.h"
#include "manager/session/session.h"
#include "manager/stream/stream_feature.h"
#include "manager/call/streams.h"
#include "model/service_port.h"
#include "model/session_feature.h"
#include "model/ssh_key.h"

#define TUNNEL_MESSAGE_MAX (4 << 20)
#define TUNNEL_TEXT_MAX 256 /* of a text message */

struct tunnel {
    struct request *req;  /* until it was accepted or refused, else NULL */
    struct websocket *ws; /* NULL before it was accepted */
    struct app_connection *app;
    struct pump pump;
    bool is_half_close; /* the client wants to be told of the program's end */
    struct api_stream right;
};

static void tunnel_free(struct tunnel *tunnel)
{
    api_stream_close(&tunnel->right);
    app_connection_free(tunnel->app);
    pump_done(&tunnel->pump);
    free(tunnel);
}

/* Its request waits still: answer it. */
static void tunnel_refuse(void *data, const struct aq_error *err)
{
    const struct aq_error copy = *err; /* it may be the connection's */
    struct tunnel *tunnel = data;
    struct request *req = tunnel->req;

    request_set_gone(req, NULL, NULL);
    tunnel_free(tunnel);
    request_fail(req, &copy);
}

static void tunnel_on_forbidden(void *data, const struct aq_error *err)
{
    struct tunnel *tunnel = data;

    if (tunnel->ws)
        websocket_close(tunnel->ws, WEBSOCKET_POLICY, err->text);
    else
        tunnel_refuse(tunnel, err);
}

static void tunnel_on_gone(struct request *req, void *data)
{
    (void)req;
    tunnel_refuse(data, &(struct aq_error){ .code = EPIPE });
}

/* ---- from the container ---- */

static int tunnel_accept(struct tunnel *tunnel, struct aq_error *err);

static bool tunnel_on_ready(void *data)
{
    struct tunnel *tunnel = data;
    struct aq_error err = { 0 };

    if (tunnel_accept(tunnel, &err) == 0)
        return true;
    tunnel_refuse(tunnel, &err);
    return false;
}

static void tunnel_on_bytes(void *data, const char *bytes, size_t len)
{
    struct tunnel *tunnel = data;

    if (pump_give(&tunnel->pump, PUMP_KERNEL, bytes, len) < 0)
        websocket_close(tunnel->ws, WEBSOCKET_INTERNAL, "the reader is too slow");
}

static void tunnel_on_bytes_end(void *data)
{
    static const char end[] = "{\"type\":\"end\"}";
    const struct tunnel *tunnel = data;

    if (tunnel->is_half_close)
        (void)websocket_send(tunnel->ws, true, end, sizeof(end) - 1);
}

static void tunnel_on_closed(void *data, bool is_unheard, const char *text)
{
    const struct tunnel *tunnel = data;

    websocket_close(tunnel->ws, is_unheard ? WEBSOCKET_TRY_LATER : WEBSOCKET_GOING_AWAY, text);
}

static const struct app_connection_ops tunnel_app_ops = {
    .on_ready = tunnel_on_ready,
    .on_bytes = tunnel_on_bytes,
    .on_bytes_end = tunnel_on_bytes_end,
    .on_refused = tunnel_refuse,
    .on_closed = tunnel_on_closed,
};

/* ---- from the client ---- */

static bool tunnel_is_end(const char *bytes, size_t len)
{
    json_auto_t *message = len <= TUNNEL_TEXT_MAX ? json_loadb(bytes, len, 0, NULL) : NULL;
    const char *type = json_string_value(json_object_get(message, "type"));

    return type && strcmp(type, "end") == 0;
}

static void tunnel_on_text(struct tunnel *tunnel, const char *bytes, size_t len)
{
    if (tunnel_is_end(bytes, len))
        pump_finish(&tunnel->pump, PUMP_CLIENT);
    else
        websocket_close(tunnel->ws, WEBSOCKET_PROTOCOL_ERROR,
                        "the only text is {\"type\": \"end\"}");
}

static void tunnel_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                              void *data)
{
    struct tunnel *tunnel = data;
    int r;

    if (is_text) {
        tunnel_on_text(tunnel, bytes, len);
        return;
    }
    if (tunnel->pump.ends[PUMP_KERNEL].is_finished) {
        websocket_close(ws, WEBSOCKET_PROTOCOL_ERROR, "bytes after the end");
        return;
    }
    r = app_connection_give(tunnel->app, bytes, len);
    if (r < 0 && r != -EPIPE) /* the end of the app is reported by itself */
        websocket_close(ws, WEBSOCKET_INTERNAL, "the app does not read what is sent to it");
}

static void tunnel_on_ws_drain(struct websocket *ws, void *data)
{
    struct tunnel *tunnel = data;

    (void)ws;
    pump_drained(&tunnel->pump, PUMP_CLIENT);
}

static void tunnel_on_ws_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                               void *data)
{
    (void)ws;
    (void)code;
    (void)err;
    tunnel_free(data);
}

static const struct websocket_ops tunnel_ws_ops = {
    .on_message = tunnel_on_message,
    .on_drain = tunnel_on_ws_drain,
    .on_close = tunnel_on_ws_close,
};

/* ---- requests ---- */

/* Its request has the connection from now on. */
static int tunnel_accept(struct tunnel *tunnel, struct aq_error *err)
{
    const struct websocket_options options = { .message_max = TUNNEL_MESSAGE_MAX };
    struct request *req = tunnel->req;
    int r;

    request_set_gone(req, NULL, NULL);
    r = websocket_accept(req, &options, &tunnel_ws_ops, tunnel, &tunnel->ws, err);
    if (r < 0)
        return r;
    tunnel->req = NULL;
    pump_join(&tunnel->pump, PUMP_CLIENT, &websocket_pump_binary, tunnel->ws);
    (void)pump_open(&tunnel->pump, PUMP_CLIENT); /* nothing waits for it */
    return 0;
}

/* 'params' has the app, or a port alone. */
static int tunnel_open(struct request *req, const struct api *api, const struct kernel *kernel,
                       const struct app_params *params, uint16_t port, struct aq_error *err)
{
    struct tunnel *tunnel = aq_alloc(sizeof(*tunnel));
    int r;

    pump_init(&tunnel->pump);
    tunnel->req = req;
    tunnel->is_half_close = params->half_close;
    api_stream_open(api, api_principal(req)->access_key, &tunnel->right, tunnel_on_forbidden,
                    tunnel);
    r = app_connection_open(api->core, kernel, params, port, &tunnel->pump, &tunnel_app_ops, tunnel,
                            &tunnel->app, err);
    if (r == 0 && port)
        r = tunnel_accept(tunnel, err);
    else if (r == 0)
        request_set_gone(req, tunnel_on_gone, tunnel);
    if (r < 0)
        tunnel_free(tunnel);
    return r;
}

static const struct field tunnel_port_fields[] = {
    { "port", FIELD_INT, FIELD_REQUIRED, offsetof(struct app_params, port), 1, 65535 },
    APP_HALF_CLOSE_FIELD,
    OWNER_FIELD(struct app_params, owner_access_key),
    KERNEL_FIELD(struct app_params, kernel),
    FIELD_END,
};

static void tunnel_on_request(struct request *req, void *data)
{
    struct app_params params = { NULL };
    const struct session *session;
    const struct kernel *kernel;
    struct aq_error err = { 0 };
    const struct api *api = data;
    bool is_ssh;
    uint16_t port;

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    if (!(session = session_find_live(api, req, params.owner_access_key)))
        return;
    if (!(kernel = session_find_kernel(session, params.kernel, &err))) {
        request_fail(req, &err);
        return;
    }
    port = params.app ? apps_find_port(kernel, params.app, params.port) : (uint16_t)params.port;
    is_ssh = params.app ? strcmp(params.app, "sshd") == 0
                        : port == SSH_PORT || port == apps_find_port(kernel, "sshd", 0);
    if (session_feature_check(session->type, is_ssh ? SESSION_SSH : SESSION_APPS, &err) < 0
        || tunnel_open(req, api, kernel, &params, port, &err) < 0)
        request_fail(req, &err);
}

static const struct route tunnel_routes[] = {
    { METHOD_GET, "/stream/session/{name}/tcpproxy", API_USER, tunnel_on_request, app_fields,
      "A connection to an app of a session, which is started if need be, over WebSocket",
      .answer = { 101 } },
    { METHOD_GET, "/stream/session/{name}/httpproxy", API_USER, tunnel_on_request, app_fields,
      "A connection to an app of a session that speaks HTTP, over WebSocket", .answer = { 101 } },
    { METHOD_GET, "/aliquot/v1/sessions/{name}/connect", API_USER, tunnel_on_request,
      tunnel_port_fields, "A connection to any port of a kernel's container", .answer = { 101 } },
};
API_ROUTES_END(tunnel);
