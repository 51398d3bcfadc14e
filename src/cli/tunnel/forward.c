/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of this machine, whose connections are tunnels into a session. */
#include "cli/tunnel/forward.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/host_port.h"
#include "base/list.h"
#include "base/memory.h"
#include "cli/client.h"
#include "cli/signals.h"
#include "http/listener.h"

struct forward {
    struct forward_job *job;
    uv_loop_t *loop;
    struct forward_listener {
        struct forward *forward;
        struct listener *listener;
        uint16_t remote;
    } listeners[FORWARD_PORTS_MAX];
    struct list connections;
    size_t connection_count;
    struct cli_signals signals;
    bool is_over;
    int r;
    struct aq_error err;
};

struct forward_connection {
    struct list link;
    struct forward *forward;
    struct stream *local;
    struct tunnel *tunnel; /* NULL after its end */
    bool is_open;          /* the tunnel */
    bool is_ended;         /* what comes from here */
};

static void forward_leave(struct forward *f, int r)
{
    if (f->is_over)
        return;
    f->is_over = true;
    f->r = r;
}

/* ---- a connection ---- */

static void forward_drop(struct forward_connection *c)
{
    stream_close(c->local);
    tunnel_free(c->tunnel);
    list_remove(&c->link);
    c->forward->connection_count--;
    free(c);
}

static void forward_on_read(void *data, const char *bytes, size_t len)
{
    struct forward_connection *c = data;
    int r = c->tunnel ? tunnel_send(c->tunnel, bytes, len) : 0;

    if (r == 1)
        stream_pause(c->local);
    else if (r < 0)
        forward_drop(c);
}

static void forward_on_local_end(void *data, const struct aq_error *err)
{
    struct forward_connection *c = data;

    c->is_ended = true;
    if (err->code || !c->tunnel)
        forward_drop(c);
    else if (c->is_open)
        tunnel_end(c->tunnel);
}

static void forward_on_local_drain(void *data)
{
    struct forward_connection *c = data;

    if (c->tunnel)
        tunnel_pause(c->tunnel, false);
    else
        forward_drop(c);
}

static const struct stream_ops forward_stream_ops = {
    .on_read = forward_on_read,
    .on_end = forward_on_local_end,
    .on_drain = forward_on_local_drain,
};

static void forward_on_open(void *data)
{
    struct forward_connection *c = data;

    c->is_open = true;
    if (c->is_ended)
        tunnel_end(c->tunnel);
    else
        stream_resume(c->local);
}

static void forward_on_bytes(void *data, const char *bytes, size_t len)
{
    struct forward_connection *c = data;

    if (stream_write(c->local, bytes, len) < 0)
        forward_drop(c);
    else if (stream_queued(c->local) > TUNNEL_QUEUE_HIGH)
        tunnel_pause(c->tunnel, true);
}

static void forward_on_end(void *data)
{
    struct forward_connection *c = data;

    stream_shutdown(c->local);
}

static void forward_on_tunnel_drain(void *data)
{
    struct forward_connection *c = data;

    if (c->is_open && !c->is_ended)
        stream_resume(c->local);
}

/* What the program said last goes on to who is connected; what he says now is for nobody. */
static void forward_on_close(void *data, const struct aq_error *err)
{
    struct forward_connection *c = data;
    struct forward *f = c->forward;

    c->tunnel = NULL;
    if (err->code == ENOENT)
        forward_leave(f, aq_fail(&f->err, ENOENT, "%s", err->text));
    else if (err->code)
        cli_note(f->job->cli, "aliquot: %s", err->text);
    if (stream_queued(c->local) == 0)
        forward_drop(c);
    else if (!c->is_ended)
        stream_resume(c->local);
}

static const struct tunnel_ops forward_tunnel_ops = {
    .on_open = forward_on_open,
    .on_bytes = forward_on_bytes,
    .on_end = forward_on_end,
    .on_drain = forward_on_tunnel_drain,
    .on_close = forward_on_close,
};

/* ---- listening ---- */

static int forward_accept(struct forward_connection *c, struct listener *listener, uint16_t remote,
                          struct aq_error *err)
{
    struct forward *f = c->forward;
    int r = listener_accept(listener, &forward_stream_ops, c, &c->local, err);

    if (r < 0)
        return r;
    stream_pause(c->local);
    return tunnel_open(f->job->cli, &f->job->session, f->job->app, remote, &forward_tunnel_ops, c,
                       &c->tunnel, err);
}

static void forward_on_waiting(struct listener *listener, void *data)
{
    struct forward_listener *from = data;
    struct forward *f = from->forward;
    struct forward_connection *c;
    struct aq_error err = { 0 };

    if (f->connection_count >= FORWARD_CONNECTIONS_MAX) {
        listener_wait(listener);
        return;
    }
    c = aq_alloc(sizeof(*c));
    c->forward = f;
    list_add(&f->connections, &c->link);
    f->connection_count++;
    if (forward_accept(c, listener, from->remote, &err) < 0) {
        cli_note(f->job->cli, "aliquot: %s", err.text);
        forward_drop(c);
    }
}

static int forward_listen(struct forward *f, size_t i, struct aq_error *err)
{
    struct forward_port *port = &f->job->ports[i];
    char address[HOST_PORT_MAX];
    const struct listener_options options = {
        .address = host_port_write(f->job->address, port->local, address), .insecure = true
    };
    struct forward_listener *l = &f->listeners[i];
    int r;

    *l = (struct forward_listener){ .forward = f, .remote = port->remote };
    r = listener_new(f->loop, &options, forward_on_waiting, l, &l->listener, err);
    if (r == -EADDRINUSE && port->local)
        cli_hint(f->job->cli, "any free port: 0:%u", port->remote);
    if (r == 0)
        port->local = listener_get_port(l->listener);
    return r;
}

/* ---- the whole ---- */

static void forward_on_signal(void *data, int signum)
{
    (void)signum;
    forward_leave(data, 0);
}

static void forward_stop(struct forward *f)
{
    for (size_t i = 0; i < f->job->count; i++)
        listener_close(f->listeners[i].listener);
    while (!list_is_empty(&f->connections))
        forward_drop(LIST_ENTRY(f->connections.next, struct forward_connection, link));
    cli_signals_close(&f->signals);
    (void)uv_run(f->loop, UV_RUN_NOWAIT); /* the others' handles */
}

int forward_run(struct forward_job *job, struct aq_error *err)
{
    static const int signums[] = { SIGINT, SIGTERM, SIGHUP, 0 };
    struct forward f = { .job = job };
    int r = cli_client_open(job->cli, &f.loop, NULL, err);

    if (r < 0)
        return r;
    list_init(&f.connections);
    for (size_t i = 0; r == 0 && i < job->count; i++)
        r = forward_listen(&f, i, err);
    if (r == 0)
        cli_signals_open(&f.signals, f.loop, signums, forward_on_signal, &f);
    if (r == 0 && job->on_ready)
        r = job->on_ready(job->data, err);
    while (r == 0 && !f.is_over)
        (void)uv_run(f.loop, UV_RUN_ONCE);
    forward_stop(&f);
    if (r == 0 && f.r < 0) {
        *err = f.err;
        r = f.r;
    }
    return r;
}
