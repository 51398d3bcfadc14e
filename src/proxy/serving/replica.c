/* SPDX-License-Identifier: Apache-2.0 */
/* replica.c - connections to a replica, and whether it is given requests
 *
 * Connections are kept and shared by all clients of the service. Before one is used again the system is
 * asked whether the server has closed it or said something meanwhile: such a connection is dropped, so
 * that neither a request is lost in it nor bytes behind an answer reach another client. Some servers
 * close after an answer without having said so, llama.cpp after each stream; a request that is sent just
 * then is lost. So a connection rests for a while after an answer in chunks, unless one of the replica
 * was used again after such an answer; and after answers with a length where it was found closed.
 *
 * A replica that refuses or resets connections, or answers five requests in a row with errors of the
 * server, is ejected for 1, 2, 4 ... 30 seconds, then one request shows whether it is back.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "proxy/route.h"
#include "proxy/serving/service.h"

#define IDLE_MAX 1024 /* connections of a replica that are kept */
#define EJECT_MAX_SEC 30
#define ERRORS_MAX 5 /* in a row; one that fails fast has the fewest requests, and would get most */
#define REST_USEC 500000 /* a loaded server closes within that */
#define TICKET_RETRY_USEC (5 * USEC_PER_SEC)

struct conn {
    struct list link; /* replica.idle, or none */
    struct replica *replica;
    struct app_link *app;
    struct call *call; /* NULL: it is idle */
    bool was_chunked;  /* its last answer */
    int64_t idle_usec, idle_until_usec;
};

static struct msg_app_connect replica_want(const struct replica *replica)
{
    return (struct msg_app_connect){ .session_id = replica->session_id,
                                     .service_id = replica->service->id,
                                     .app = MODEL_SERVICE_APP,
                                     .access_key = replica->service->msg->access_key };
}

/* ---- is it given requests? ---- */

void replica_update(struct replica *replica, int64_t now)
{
    const struct served *service = replica->service;
    struct balance_replica *entry;
    const struct msg_serving_replica *said;

    if (replica->at == BALANCE_NONE)
        return;
    if (replica->ejected_until_usec && replica->ejected_until_usec <= now) {
        replica->ejected_until_usec = 0;
        replica->is_trial = true;
    }
    entry = &service->entries[replica->at];
    said = &service->msg->replicas[replica->at];
    entry->rank = said->is_draining || said->ratio_ppm <= 0 ? BALANCE_CLOSED
                  : replica->ejected_until_usec             ? BALANCE_EJECTED
                  : said->is_unhealthy                      ? BALANCE_UNHEALTHY
                                                            : BALANCE_GOOD;
    entry->hash = balance_hash(0, replica->session_id.bytes, sizeof(replica->session_id.bytes));
    entry->weight = balance_weight(said->share_ppm > 0 ? said->share_ppm : 1000000,
                                   said->ratio_ppm);
    entry->in_flight = (int64_t)replica->in_flight;
    entry->cap = replica->is_trial ? 1 : service->msg->cap;
}

void replica_count(struct replica *replica, int by)
{
    replica->in_flight += (size_t)by;
    replica->service->in_flight += (size_t)by;
    if (replica->at != BALANCE_NONE)
        replica->service->entries[replica->at].in_flight = (int64_t)replica->in_flight;
    served_report(replica->service, false);
}

static size_t replica_count_open(const struct served *service)
{
    size_t open = 0;

    for (size_t i = 0; i < service->entry_count; i++)
        open += service->entries[i].rank != BALANCE_CLOSED;
    return open;
}

/* Requests go to others for a while, if there are others. */
static void replica_eject(struct replica *replica, const char *what)
{
    struct served *service = replica->service;
    int64_t now = clock_monotonic_usec();
    int64_t sec = replica->failed < 5 ? INT64_C(1) << replica->failed : EJECT_MAX_SEC;

    replica->is_trial = false;
    replica->errors = 0;
    if (replica->at != BALANCE_NONE && replica_count_open(service) > 1
        && !replica->ejected_until_usec) {
        replica->failed++;
        replica->ejected_until_usec = now + AQ_MIN(sec, EJECT_MAX_SEC) * USEC_PER_SEC;
        log_limited(&service->of->log, LOG_LEVEL_WARNING,
                    "replica %s of service '%s' %s; it gets no requests for %lld s",
                    replica->short_id, service->msg->name, what, (long long)sec);
    }
    replica_update(replica, now);
    served_report(service, false);
}

void replica_failed(struct replica *replica)
{
    replica->use.failures++;
    replica_eject(replica, "refused or reset a connection");
}

void replica_answered(struct replica *replica, int status)
{
    if (status >= 500) {
        if (++replica->errors >= ERRORS_MAX || replica->is_trial)
            replica_eject(replica, "answered only errors");
        return;
    }
    replica->errors = 0;
    if (!replica->failed && !replica->is_trial)
        return;
    replica->failed = 0;
    replica->is_trial = false;
    replica->ejected_until_usec = 0;
    replica_update(replica, clock_monotonic_usec());
}

/* ---- tickets ---- */

static void replica_on_stream_data(void *data, struct link_stream *stream, const char *bytes,
                                   size_t len)
{
    (void)data;
    (void)stream;
    (void)bytes;
    (void)len;
}

static void replica_on_stream_close(void *data, struct link_stream *stream,
                                    const struct aq_error *err)
{
    (void)data;
    (void)stream;
    (void)err;
}

static const struct link_stream_ops replica_stream_ops = { .on_data = replica_on_stream_data,
                                                           .on_close = replica_on_stream_close };

/* An agent that takes no tickets is reached through the manager, which has opened a stream for this
 * question; it is not needed.
 */
static void replica_on_ticket(void *data, struct link_stream *stream,
                              const struct msg_app_route *route, const struct aq_error *err)
{
    struct replica *replica = data;
    const struct msg_app_connect want = replica_want(replica);

    (void)err; /* it is asked again */
    replica->ask = NULL;
    if (route)
        (void)routes_add(replica->service->of->proxy->routes, &want, route);
    link_stream_close(stream);
    if (stream)
        replica->ask_usec = INT64_MAX;
}

void replica_ask_ticket(struct replica *replica, int64_t now)
{
    struct proxy *p = replica->service->of->proxy;
    struct msg_app_connect want = replica_want(replica);

    if (replica->ask || now < replica->ask_usec || replica->at == BALANCE_NONE
        || !front_is_connected(p->front) || routes_find(p->routes, &want))
        return;
    want.direct = true;
    replica->ask_usec = now + TICKET_RETRY_USEC;
    (void)manager_connect(&p->manager, &want, &replica_stream_ops, replica_on_ticket, replica,
                          &replica->ask, NULL);
}

/* ---- connections ---- */

void conn_close(struct conn *conn)
{
    if (!conn->call) {
        list_remove(&conn->link);
        conn->replica->idle_count--;
    }
    app_link_close(conn->app);
    free(conn);
}

void conn_note_kept(struct conn *conn)
{
    conn->replica->keeps[conn->was_chunked] = true;
}

/* The server has closed it: soon after its last answer, or with the next request on its way? */
static void conn_note_closed(struct conn *conn)
{
    const struct call *call = conn->call;

    if (call ? call->was_used && !call->status
             : clock_monotonic_usec() - conn->idle_usec < REST_USEC)
        conn->replica->keeps[conn->was_chunked] = false;
}

/* The call goes on without it. */
static struct call *conn_leave_call(struct conn *conn)
{
    struct call *call = conn->call;

    conn_note_closed(conn);
    conn->app = NULL; /* it is gone */
    if (call)
        call->conn = NULL;
    conn_close(conn);
    return call;
}

static void conn_on_open(void *data, const struct aq_error *err)
{
    struct conn *conn = data;

    if (err)
        call_on_unconnected(conn_leave_call(conn), err);
    else
        call_on_connected(conn->call);
}

static void conn_on_data(void *data, const char *bytes, size_t len)
{
    struct conn *conn = data;

    if (!conn->call) {
        conn_close(conn); /* nothing was asked */
        return;
    }
    conn->call->moved_usec = clock_monotonic_usec();
    app_take(conn->call->browser, bytes, len);
}

static void conn_on_drain(void *data)
{
    const struct conn *conn = data;

    if (conn->call)
        pump_drained(&conn->call->browser->pump, PUMP_KERNEL);
}

static void conn_on_close(void *data, const struct aq_error *err)
{
    struct call *call = conn_leave_call(data);

    if (call)
        app_on_end(call->browser, err);
}

static const struct app_link_ops conn_ops = {
    .on_open = conn_on_open,
    .on_data = conn_on_data,
    .on_drain = conn_on_drain,
    .on_close = conn_on_close,
};

/* The latest that is good and has rested; NULL = there is none. */
static struct conn *conn_take_idle(struct replica *replica)
{
    int64_t now = clock_monotonic_usec();

    for (struct list *it = replica->idle.prev, *before; it != &replica->idle; it = before) {
        struct conn *conn = LIST_ENTRY(it, struct conn, link);
        bool is_rested = replica->keeps[conn->was_chunked] || now - conn->idle_usec >= REST_USEC;

        before = it->prev;
        if (conn->idle_until_usec > now && !is_rested)
            continue;
        if (conn->idle_until_usec > now && app_link_is_quiet(conn->app)) {
            list_remove(&conn->link);
            replica->idle_count--;
            return conn;
        }
        if (conn->idle_until_usec > now)
            conn_note_closed(conn);
        conn_close(conn);
    }
    return NULL;
}

int conn_take(struct replica *replica, struct call *call, struct aq_error *err)
{
    struct conn *conn = call->is_fresh ? NULL : conn_take_idle(replica);
    const struct msg_app_connect want = replica_want(replica);
    int r;

    if (conn) {
        conn->call = call;
        call->conn = conn;
        return 1;
    }
    conn = aq_alloc(sizeof(*conn));
    list_init(&conn->link);
    conn->replica = replica;
    conn->call = call;
    r = app_link_open(replica->service->of->proxy, &want, &conn_ops, conn, &conn->app, err);
    if (r < 0) {
        free(conn);
        return r;
    }
    call->conn = conn;
    return 0;
}

struct app_link *conn_link(const struct conn *conn)
{
    return conn->app;
}

void conn_give_back(struct conn *conn, const struct message_head *answer, int64_t keep_usec)
{
    struct replica *replica = conn->replica;

    if (keep_usec <= 0 || replica->idle_count >= IDLE_MAX || replica->at == BALANCE_NONE) {
        conn_close(conn);
        return;
    }
    conn->call = NULL;
    conn->was_chunked = answer->is_chunked;
    conn->idle_usec = clock_monotonic_usec();
    conn->idle_until_usec = conn->idle_usec + keep_usec;
    app_link_pump.pause(conn->app, false); /* the client may have been slow */
    list_add(&replica->idle, &conn->link);
    replica->idle_count++;
}

void replica_close_idle(struct replica *replica, int64_t now)
{
    LIST_FOREACH(it, &replica->idle) {
        struct conn *conn = LIST_ENTRY(it, struct conn, link);

        if (conn->idle_until_usec <= now)
            conn_close(conn);
    }
}

/* ---- life ---- */

struct replica *replica_new(struct served *service, const struct uuid *session_id)
{
    struct replica *replica = aq_alloc(sizeof(*replica));
    char id[UUID_TEXT_MAX];

    (void)snprintf(replica->short_id, sizeof(replica->short_id), "%s", uuid_format(session_id, id));
    replica->service = service;
    replica->session_id = *session_id;
    replica->at = BALANCE_NONE;
    replica->keeps[false] = true;
    list_init(&replica->idle);
    list_add(&service->replicas, &replica->link);
    return replica;
}

void replica_free(struct replica *replica)
{
    replica_close_idle(replica, INT64_MAX);
    manager_cancel(replica->ask);
    list_remove(&replica->link);
    free(replica);
}
