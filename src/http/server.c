/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 server on a uv loop. */
#include "http/server.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "http/server_internal.h"

#define REFUSING_MAX 64 /* connections that are told 503 at one time */
#define BODY_PAUSE_MSEC 2000
#define LINGER_MSEC 2000
/* What the other server adds to a head that may have been as long as its client's can be. */
#define PASSED_ON_LINES 4
#define PASSED_ON_BYTES 512

static unsigned server_or_default(unsigned value, unsigned fallback)
{
    return value ? value : fallback;
}

static void server_set_limits(struct server *server, const struct server_limits *l)
{
    struct server_limits *own = &server->limits;

    *own = *l;
    if (!own->message.head_max)
        own->message = message_limits_default;
    own->connections_max = server_or_default(l->connections_max, 10000);
    if (!own->queue_max)
        own->queue_max = (size_t)8 << 20;
    if (!own->bodies_max)
        own->bodies_max = (size_t)128 << 20;
    server->timer_msec[TIMER_FRESH] = server_or_default(l->head_msec, 10000);
    server->timer_msec[TIMER_HEAD] = server_or_default(l->head_msec, 10000);
    server->timer_msec[TIMER_BODY] = server_or_default(l->body_msec, 30000);
    server->timer_msec[TIMER_IDLE] = server_or_default(l->idle_msec, 75000);
    server->timer_msec[TIMER_WRITE] = server_or_default(l->write_msec, 30000);
    server->timer_msec[TIMER_KEEPALIVE] = server_or_default(l->keepalive_msec, 15000);
    server->timer_msec[TIMER_BODY_PAUSE] = BODY_PAUSE_MSEC;
    server->timer_msec[TIMER_LINGER] = LINGER_MSEC;
}

struct server *server_new(uv_loop_t *loop, const struct server_options *options)
{
    struct server *server = aq_alloc(sizeof(*server));
    uv_timer_t *sweep = aq_alloc(sizeof(*sweep));

    server->loop = loop;
    ready_init(server);
    server->first_app = options->app;
    server->app = &server->first_app;
    list_init(&server->drains);
    server_set_limits(server, &options->limits);
    quota_init(&server->quota, server->limits.connections_max, server->limits.bodies_max);
    server->peers = (struct map)MAP_INIT;
    list_init(&server->connections);
    for (unsigned i = 0; i < TIMER_COUNT; i++)
        list_init(&server->timers[i]);
    strbuf_init(&server->scratch);
    server->common_second = -1;
    (void)uv_timer_init(loop, sweep);
    sweep->data = server;
    server->sweep = sweep;
    return server;
}

/* ---- time ---- */

void server_set_timer(struct connection *conn, enum timer_kind kind)
{
    struct server *server = conn->server;

    list_remove(&conn->timer_link);
    conn->timer = kind;
    if (kind == TIMER_NONE)
        return;
    conn->deadline = uv_now(server->loop) + server->timer_msec[kind];
    list_add(&server->timers[kind], &conn->timer_link);
}

static void server_on_sweep(uv_timer_t *timer)
{
    struct server *server = timer->data;
    uint64_t now = uv_now(server->loop);

    for (unsigned i = 0; i < TIMER_COUNT; i++) {
        struct list *head = &server->timers[i];

        /* An expired connection leaves the list or moves to its end. */
        while (!list_is_empty(head)) {
            struct connection *conn = LIST_ENTRY(head->next, struct connection, timer_link);

            if (conn->deadline > now)
                break;
            connection_expire(conn);
        }
    }
}

static void server_start_sweeping(struct server *server)
{
    unsigned least = 4000;

    for (unsigned i = 0; i < TIMER_COUNT; i++)
        least = AQ_MIN(least, server->timer_msec[i]);
    (void)uv_timer_start(server->sweep, server_on_sweep, least / 4 + 1, least / 4 + 1);
}

/* ---- connections ---- */

void server_start_connection(struct connection *conn)
{
    struct server *server = conn->server;

    if (!server->connection_count++)
        server_start_sweeping(server);
    server->stats.connections_total++;
    server_set_timer(conn, TIMER_FRESH);
}

/* The connection has its stream. */
static void server_welcome(struct connection *conn)
{
    struct server *server = conn->server;

    conn->refused = !places_take(conn);
    server_start_connection(conn);
    if (!conn->refused)
        return;
    server->stats.refused++;
    if (++server->refusing > REFUSING_MAX)
        connection_drop(conn);
    else
        connection_refuse(conn);
}

static void server_on_waiting(struct listener *listener, void *data)
{
    struct connection *conn = connection_new(data);

    if (listener_accept(listener, &connection_ops, conn, &conn->stream, NULL) < 0)
        connection_free(conn);
    else
        server_welcome(conn);
}

void server_adopt(struct server *server, struct stream *stream, const char *bytes, size_t len)
{
    struct message_limits limits = server->limits.message;
    struct connection *conn;

    if (server->stopping) {
        stream_close(stream);
        return;
    }
    conn = connection_new(server);
    conn->stream = stream;
    conn->is_adopted = true;
    limits.headers_max += PASSED_ON_LINES;
    limits.head_max += PASSED_ON_BYTES;
    message_parser_free(conn->parser);
    (void)message_parser_new(true, &limits, &conn->parser, NULL);
    stream_set_ops(stream, &connection_ops, conn);
    stream_push_back(stream, bytes, len);
    stream_resume(stream);
    server_welcome(conn);
}

int server_listen(struct server *server, const struct listener_options *options,
                  struct listener **ret, struct aq_error *err)
{
    struct listener *listener = NULL;
    int r;

    if (server->listener_count == AQ_COUNT(server->listeners))
        return aq_fail(err, E2BIG, "a server listens on %zu addresses at most",
                       AQ_COUNT(server->listeners));
    r = listener_new(server->loop, options, server_on_waiting, server, &listener, err);
    if (r < 0)
        return r;
    server->listeners[server->listener_count++] = listener;
    if (ret)
        *ret = listener;
    return 0;
}

void server_get_stats(const struct server *server, struct server_stats *ret)
{
    *ret = server->stats;
    ret->connections = server->connection_count;
}

/* ---- stopping ---- */

static void server_on_stopped(void *data)
{
    struct server *server = data;

    server->stopped = NULL;
    defer_cancel(server->grace);
    server->grace = NULL;
    server->on_stopped(server->stopped_data);
}

void server_count_down(struct server *server)
{
    if (--server->connection_count)
        return;
    (void)uv_timer_stop(server->sweep);
    if (server->stopping && !server->stopped)
        server->stopped = defer_call(server->loop, 0, server_on_stopped, server);
}

/* A handler that hears that its client has gone may end other requests, and so free their
 * connections.
 */
static void server_drop_all(struct server *server)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    list_cursor_begin(&cursor, &server->connections);
    while ((it = list_cursor_next(&cursor)))
        connection_drop(LIST_ENTRY(it, struct connection, all));
}

static void server_on_grace_over(void *data)
{
    struct server *server = data;

    server->grace = NULL;
    server_drop_all(server);
}

void server_stop(struct server *server, unsigned grace_msec, void (*on_done)(void *data),
                 void *data)
{
    server->stopping = true;
    server->on_stopped = on_done;
    server->stopped_data = data;
    for (size_t i = 0; i < server->listener_count; i++)
        listener_close(server->listeners[i]);
    server->listener_count = 0;
    server->grace = defer_call(server->loop, grace_msec, server_on_grace_over, server);
    LIST_FOREACH(it, &server->connections) {
        struct connection *conn = LIST_ENTRY(it, struct connection, all);

        if (conn->state == CONNECTION_HEAD && !message_has_begun(conn->parser))
            connection_drop(conn);
    }
    if (!server->connection_count && !server->stopped)
        server->stopped = defer_call(server->loop, 0, server_on_stopped, server);
}

static void server_on_sweep_closed(uv_handle_t *handle)
{
    free(handle);
}

void server_free(struct server *server)
{
    if (!server)
        return;
    for (size_t i = 0; i < server->listener_count; i++)
        listener_close(server->listeners[i]);
    server_drop_all(server);
    drain_cancel_all(server);
    defer_cancel(server->grace);
    defer_cancel(server->stopped);
    uv_close((uv_handle_t *)server->sweep, server_on_sweep_closed);
    ready_done(server);
    arena_done(&server->spare);
    strbuf_done(&server->scratch);
    quota_done(&server->quota);
    map_done(&server->peers);
    free(server);
}
