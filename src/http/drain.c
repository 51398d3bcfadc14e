/* SPDX-License-Identifier: Apache-2.0 */
/* Which app answers, and the end of one that does not any more. */
#include <stdlib.h>

#include "base/memory.h"
#include "http/server_internal.h"

struct drain {
    struct list link; /* in server->drains */
    struct server *server;
    size_t requests; /* not ended yet */
    struct defer *grace, *done;
    void (*on_drained)(void *data);
    void *data;
};

void server_set_app(struct server *server, const struct server_app *app)
{
    server->app = app;
}

static void drain_free(struct drain *drain)
{
    list_remove(&drain->link);
    defer_cancel(drain->grace);
    defer_cancel(drain->done);
    free(drain);
}

static void drain_on_done(void *data)
{
    struct drain *drain = data;
    void (*on_drained)(void *) = drain->on_drained;
    void *owner = drain->data;

    drain->done = NULL;
    drain_free(drain);
    on_drained(owner);
}

static void drain_finish(struct drain *drain)
{
    drain->done = defer_call(drain->server->loop, 0, drain_on_done, drain);
}

void drain_leave(struct request *req)
{
    struct drain *drain = AQ_TAKE(req->drain);

    if (drain && !--drain->requests)
        drain_finish(drain);
}

/* A handler that hears that its client has gone may end other requests, too. */
static void drain_on_grace_over(void *data)
{
    struct drain *drain = data;
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *it;

    drain->grace = NULL;
    list_cursor_begin(&cursor, &drain->server->connections);
    while ((it = list_cursor_next(&cursor))) {
        struct connection *conn = LIST_ENTRY(it, struct connection, all);

        if (conn->has_request && conn->req.drain == drain)
            connection_drop(conn);
    }
}

void server_drain(struct server *server, const struct server_app *app, unsigned grace_msec,
                  void (*on_drained)(void *data), void *data)
{
    struct drain *drain = aq_alloc(sizeof(*drain));

    drain->server = server;
    drain->on_drained = on_drained;
    drain->data = data;
    list_add(&server->drains, &drain->link);
    LIST_FOREACH(it, &server->connections) {
        struct connection *conn = LIST_ENTRY(it, struct connection, all);

        if (!conn->has_request || conn->req.app != app || conn->req.drain)
            continue;
        conn->req.drain = drain;
        drain->requests++;
    }
    drain->grace = defer_call(server->loop, grace_msec, drain_on_grace_over, drain);
    if (!drain->requests)
        drain_finish(drain);
}

void drain_cancel_all(struct server *server)
{
    while (!list_is_empty(&server->drains))
        drain_free(LIST_ENTRY(server->drains.next, struct drain, link));
}
