/* SPDX-License-Identifier: Apache-2.0 */
/* A turn of the loop does so much for connections; what is left waits, and clients take turns.
 *
 * What has come for a connection is parsed in the order of coming, which costs little and
 * tells whose it is. Requests that are complete wait with their client, of which one after
 * the other has one handled. Time is the processor's, of the loop's thread.
 */
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "http/server_internal.h"

#define TURN_NSEC INT64_C(1000000)
#define PARSE_NSEC (TURN_NSEC / 2) /* of a turn's time, while requests wait for their handlers */

static int64_t ready_processor_nsec(void)
{
    struct timespec now = { 0 };

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Has this turn taken so much, since something was first done in it? That is never more than
 * what passed meanwhile, which costs no system call to ask.
 */
static bool ready_has_taken(struct ready *ready, int64_t nsec)
{
    int64_t now = (int64_t)uv_hrtime();

    if (!ready->turn_began) {
        ready->turn_began = now;
        ready->processor_began = ready_processor_nsec();
    }
    return now - ready->turn_began >= nsec
           && ready_processor_nsec() - ready->processor_began >= nsec;
}

bool ready_has_time(struct server *server)
{
    return server->ready.is_unlimited || !ready_has_taken(&server->ready, TURN_NSEC);
}

/* The turn ends. */
static void ready_on_check(uv_check_t *check)
{
    ((struct server *)check->data)->ready.turn_began = 0;
}

static bool ready_is_empty(const struct ready *ready)
{
    return list_is_empty(&ready->unread) && list_is_empty(&ready->clients);
}

static struct ready_client *ready_client_of(struct connection *conn)
{
    return conn->req.client ? &conn->req.client->ready : &conn->server->ready.nobody;
}

/* ---- a turn ---- */

static void ready_take_unread(struct ready *ready)
{
    struct connection *conn = LIST_ENTRY(ready->unread.next, struct connection, ready_link);

    list_remove(&conn->ready_link);
    connection_take_unread(conn);
}

/* A request of the client whose turn it is, which goes behind the others. */
static void ready_take_request(struct server *server)
{
    struct ready_client *client = LIST_ENTRY(server->ready.clients.next, struct ready_client, link);
    struct connection *conn = LIST_ENTRY(client->requests.next, struct connection, ready_link);

    ready_remove(conn);
    if (!list_is_empty(&client->requests)) {
        list_remove(&client->link);
        list_add(&server->ready.clients, &client->link);
    }
    if (conn->has_ended)
        ready_add_unread(conn); /* before it: the connection may be gone after */
    connection_call_handler(conn);
}

static void ready_on_idle(uv_idle_t *idle)
{
    struct server *server = idle->data;
    struct ready *ready = &server->ready;

    (void)ready_has_taken(ready, 0); /* this turn begins */
    if (!list_is_empty(&ready->unread))
        do
            ready_take_unread(ready);
        while (!list_is_empty(&ready->unread)
               && (ready->is_unlimited || !ready_has_taken(ready, PARSE_NSEC)));
    if (!list_is_empty(&ready->clients))
        do
            ready_take_request(server);
        while (!list_is_empty(&ready->clients) && ready_has_time(server));
    if (ready_is_empty(ready))
        (void)uv_idle_stop(idle);
}

/* ---- what waits ---- */

void ready_add_unread(struct connection *conn)
{
    struct ready *ready = &conn->server->ready;

    if (!list_is_empty(&conn->ready_link))
        return;
    list_add(&ready->unread, &conn->ready_link);
    (void)uv_idle_start(ready->idle, ready_on_idle);
}

bool ready_must_wait(struct server *server)
{
    return !ready_is_empty(&server->ready) || !ready_has_time(server);
}

void ready_add_request(struct connection *conn)
{
    struct ready *ready = &conn->server->ready;
    struct ready_client *client = ready_client_of(conn);

    list_remove(&conn->ready_link);
    if (list_is_empty(&client->requests))
        list_add(&ready->clients, &client->link);
    list_add(&client->requests, &conn->ready_link);
    (void)uv_idle_start(ready->idle, ready_on_idle);
}

void ready_remove(struct connection *conn)
{
    list_remove(&conn->ready_link);
    if (conn->state != CONNECTION_READY)
        return;
    if (list_is_empty(&ready_client_of(conn)->requests))
        list_remove(&ready_client_of(conn)->link);
}

/* ---- begin and end ---- */

void ready_init(struct server *server)
{
    struct ready *ready = &server->ready;

    ready->idle = aq_alloc(sizeof(*ready->idle));
    ready->check = aq_alloc(sizeof(*ready->check));
    list_init(&ready->unread);
    list_init(&ready->clients);
    list_init(&ready->nobody.link);
    list_init(&ready->nobody.requests);
    (void)uv_idle_init(server->loop, ready->idle);
    (void)uv_check_init(server->loop, ready->check);
    ready->idle->data = ready->check->data = server;
    (void)uv_check_start(ready->check, ready_on_check);
    uv_unref((uv_handle_t *)ready->check);
}

static void ready_on_closed(uv_handle_t *handle)
{
    free(handle);
}

void ready_done(struct server *server)
{
    uv_close((uv_handle_t *)server->ready.idle, ready_on_closed);
    uv_close((uv_handle_t *)server->ready.check, ready_on_closed);
}
