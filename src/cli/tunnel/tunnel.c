/* SPDX-License-Identifier: Apache-2.0 */
/* A TCP connection to a port in a session, over a WebSocket. */
#include "cli/tunnel/tunnel.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/reopen.h"
#include "http/websocket.h"

#define OPEN_USEC (30 * USEC_PER_SEC) /* for a manager to open it */

struct tunnel {
    struct cli *cli;
    uv_loop_t *loop;
    struct websocket *ws;
    struct reopen reopen;
    struct strbuf path;
    bool was_open, may_refuse; /* a refusal may be the app's */
    const struct tunnel_ops *ops;
    void *data;
    char name[sizeof(((struct follow_session *)0)->name)];
    uint16_t port;
};

static void tunnel_on_open(struct websocket *ws, void *data)
{
    struct tunnel *tunnel = data;

    (void)ws;
    reopen_done(&tunnel->reopen);
    tunnel->was_open = true;
    tunnel->ops->on_open(tunnel->data);
}

static void tunnel_on_message(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                              void *data)
{
    struct tunnel *tunnel = data;
    json_t *message = is_text ? json_loadb(bytes, len, 0, NULL) : NULL;
    const char *type = json_string_value(json_object_get(message, "type"));

    (void)ws;
    if (type && strcmp(type, "end") == 0)
        tunnel->ops->on_end(tunnel->data);
    json_decref(message);
    if (!is_text && len)
        tunnel->ops->on_bytes(tunnel->data, bytes, len);
}

static void tunnel_on_drain(struct websocket *ws, void *data)
{
    struct tunnel *tunnel = data;

    (void)ws;
    tunnel->ops->on_drain(tunnel->data);
}

/* What a close of the manager means. */
static void tunnel_explain_close(const struct tunnel *tunnel, uint16_t code, const char *reason,
                                 struct aq_error *err)
{
    const char *text = reason[0] ? reason : "the manager has closed the connection";

    if (code == WEBSOCKET_TRY_LATER)
        (void)aq_fail(err, ECONNREFUSED, "port %u of session '%s': %s", tunnel->port, tunnel->name,
                      text);
    else if (code == WEBSOCKET_POLICY)
        (void)aq_fail(err, EACCES, "session '%s': %s", tunnel->name, text);
    else if (reason[0] || (code != WEBSOCKET_GOING_AWAY && code != WEBSOCKET_NORMAL))
        (void)aq_fail(err, ECONNABORTED, "session '%s': %s", tunnel->name, text);
}

static void tunnel_connect(void *data);

static void tunnel_release(struct tunnel *tunnel)
{
    reopen_done(&tunnel->reopen);
    strbuf_done(&tunnel->path);
    free(tunnel);
}

static void tunnel_on_close(struct websocket *ws, uint16_t code, const struct aq_error *err,
                            void *data)
{
    struct tunnel *tunnel = data;
    struct aq_error said = { 0 };

    (void)ws;
    tunnel->ws = NULL;
    if (err->code && !tunnel->was_open && !(tunnel->may_refuse && err->code == EAGAIN)
        && reopen_later(&tunnel->reopen, tunnel->loop, err, OPEN_USEC, tunnel_connect, tunnel))
        return;
    if (!err->code)
        tunnel_explain_close(tunnel, code, err->text, &said);
    else if (err->code == ENOENT)
        (void)aq_fail(&said, ENOENT, "session '%s' has ended, or you may not reach it any more",
                      tunnel->name);
    else
        (void)aq_fail(&said, err->code,
                      "session '%s': the connection through the manager broke "
                      "off: %s",
                      tunnel->name, err->text);
    tunnel->ops->on_close(tunnel->data, &said);
    tunnel_release(tunnel);
}

static const struct websocket_ops tunnel_ws_ops = {
    .on_open = tunnel_on_open,
    .on_message = tunnel_on_message,
    .on_drain = tunnel_on_drain,
    .on_close = tunnel_on_close,
};

static int tunnel_begin(struct tunnel *tunnel, struct aq_error *err)
{
    const struct websocket_options options = { .message_max = 4 << 20 };

    return cli_begin_websocket(tunnel->cli, tunnel->path.data, &options, &tunnel_ws_ops, tunnel,
                               &tunnel->ws, err);
}

/* Again. */
static void tunnel_connect(void *data)
{
    struct tunnel *tunnel = data;
    struct aq_error err = { 0 };

    if (tunnel_begin(tunnel, &err) == 0)
        return;
    tunnel->ops->on_close(tunnel->data, &err);
    tunnel_release(tunnel);
}

static void tunnel_write_path(struct tunnel *tunnel, const struct follow_session *session,
                              const char *app)
{
    char port[8];

    (void)snprintf(port, sizeof(port), "%u", tunnel->port);
    strbuf_init(&tunnel->path);
    if (app)
        strbuf_addf(&tunnel->path, "/stream/session/%s/tcpproxy", session->id);
    else
        session_path(tunnel->cli, &tunnel->path, session->id, "/connect");
    cli_path_query(&tunnel->path, "app", app);
    cli_path_query(&tunnel->path, "owner_access_key", app ? tunnel->cli->globals.owner : NULL);
    cli_path_query(&tunnel->path, "kernel", session->kernel);
    cli_path_query(&tunnel->path, "port", port);
    cli_path_query(&tunnel->path, "half_close", "true");
}

int tunnel_open(struct cli *cli, const struct follow_session *session, const char *app,
                uint16_t port, const struct tunnel_ops *ops, void *data, struct tunnel **ret,
                struct aq_error *err)
{
    struct tunnel *tunnel = aq_alloc(sizeof(*tunnel));
    int r;

    tunnel->cli = cli;
    tunnel->ops = ops;
    tunnel->data = data;
    tunnel->port = port;
    tunnel->may_refuse = app != NULL;
    memcpy(tunnel->name, session->name, sizeof(tunnel->name));
    tunnel_write_path(tunnel, session, app);
    r = cli_client_open(cli, &tunnel->loop, NULL, err);
    if (r == 0)
        r = tunnel_begin(tunnel, err);
    if (r < 0)
        tunnel_release(tunnel);
    else
        *ret = tunnel;
    return r;
}

int tunnel_send(struct tunnel *tunnel, const char *bytes, size_t len)
{
    int r = websocket_send(tunnel->ws, false, bytes, len);

    return r < 0 ? r : websocket_get_queued(tunnel->ws) > TUNNEL_QUEUE_HIGH;
}

void tunnel_end(struct tunnel *tunnel)
{
    static const char end[] = "{\"type\":\"end\"}";

    (void)websocket_send(tunnel->ws, true, end, sizeof(end) - 1);
}

void tunnel_pause(struct tunnel *tunnel, bool paused)
{
    if (paused)
        websocket_pause(tunnel->ws);
    else
        websocket_resume(tunnel->ws);
}

void tunnel_free(struct tunnel *tunnel)
{
    if (!tunnel)
        return;
    websocket_abort(tunnel->ws);
    tunnel_release(tunnel);
}

int tunnel_parse_port(const char *text, bool may_be_zero, uint16_t *ret, struct aq_error *err)
{
    char *end;
    unsigned long port = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || port > UINT16_MAX || (!port && !may_be_zero))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%.40s' is no port: %d to 65535", text,
                            may_be_zero ? 0 : 1);
    *ret = (uint16_t)port;
    return 0;
}
