/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - see server.h */
#include "front/server.h"

#include "base/jsonw.h"

#define GRACE_MSEC 8000 /* for requests under way at the end */

/* ---- /health ---- */

void front_write_state(const struct front *front, const char *state, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", state);
    jsonw_member_str(&w, "version", ALIQUOT_VERSION);
    jsonw_member_str(&w, "component", front->type->name);
    jsonw_object_end(&w);
}

int front_write_health(const struct front *front, struct strbuf *out)
{
    bool is_connected = front_is_connected(front);

    front_write_state(front, is_connected ? "healthy" : "no manager", out);
    return is_connected ? 200 : 503;
}

static void front_server_on_health(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int status = front_write_health(data, &out);

    request_reply_json(req, status, &out);
}

static const struct route front_routes[] = {
    { METHOD_GET, "/health", 0, front_server_on_health, .doc = "Is it connected to its manager?" },
};

/* ---- life ---- */

struct listener_options front_listener_options(const struct front *front, char buf[HOST_PORT_MAX])
{
    const struct front_settings *s = front->settings;

    return (
        struct listener_options){ .address = host_port_write(s->listen.host, s->listen.port, buf),
                                  .tls = front->tls,
                                  .insecure = s->insecure };
}

int front_server_init(struct front_server *server, struct front *front, struct aq_error *err)
{
    server->front = front;
    server->router = router_new();
    return router_add(server->router, front_routes, AQ_COUNT(front_routes), front, err);
}

int front_server_open(struct front_server *server, struct server_options *options,
                      void (*on_stopped)(void *self), struct aq_error *err)
{
    struct front *front = server->front;
    char address[HOST_PORT_MAX];
    const struct listener_options listener = front_listener_options(front, address);

    options->app.router = server->router;
    options->limits.connections_max = (unsigned)front->settings->connections_max;
    server->on_stopped = on_stopped;
    server->server = server_new(&front->loop, options);
    return server_listen(server->server, &listener, NULL, err);
}

static void front_server_on_stopped(void *data)
{
    struct front_server *server = data;

    server->has_stopped = true;
    if (!server->is_closing)
        front_drained(server->front);
    server->on_stopped(server->front->self);
}

void front_server_drain(struct front_server *server)
{
    server->is_draining = true;
    server_stop(server->server, GRACE_MSEC, front_server_on_stopped, server);
}

void front_server_close(struct front_server *server)
{
    server->is_closing = true;
    if (server->server && !server->is_draining)
        server_stop(server->server, 0, front_server_on_stopped, server);
    server->has_stopped = server->has_stopped || !server->server;
}

bool front_server_has_ended(const struct front_server *server)
{
    return server->is_closing && server->has_stopped;
}

void front_server_done(struct front_server *server)
{
    server_free(AQ_TAKE(server->server));
    router_free(AQ_TAKE(server->router));
}
