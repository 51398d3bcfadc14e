/* SPDX-License-Identifier: Apache-2.0 */
/* The connections that a server has places for: by address, and whose is given to another. */
#include "http/server_internal.h"

#define LOOK_MAX 256 /* connections of one kind that are looked at for one of an address */

static size_t places_used(const struct server *server)
{
    return server->connection_count - server->refusing;
}

static bool places_are_full(const struct server *server)
{
    return places_used(server) >= server->limits.connections_max;
}

/* Half of the places that are free, beyond a few, as quota.h has it for requests. Requests that
 * are with their handlers are counted there, and nobody's place is refused for them here.
 */
static bool places_has_its_share(const struct server *server, const struct client_share *peer)
{
    return client_share_is_used_up(peer, places_used(server), server->limits.connections_max);
}

/* ---- who leaves ---- */

/* The oldest of a kind that has waited for 'msec' at least; of 'peer', unless it is NULL. */
static struct connection *places_find_oldest(const struct server *server, enum timer_kind kind,
                                             uint64_t msec, const struct client_share *peer)
{
    uint64_t now = uv_now(server->loop);
    size_t looks = 0;

    LIST_FOREACH(it, &server->timers[kind]) {
        struct connection *conn = LIST_ENTRY(it, struct connection, timer_link);

        if (conn->deadline - server->timer_msec[kind] + msec > now || looks++ == LOOK_MAX)
            return NULL;
        if (!conn->refused && (!peer || conn->peer == peer))
            return conn;
    }
    return NULL;
}

/* Clients to close when there are too many: those who have their answer first, then those who
 * never said anything, the idle, and those in the middle of a head, an answer or a body. Clients
 * that are neither slow nor silent come and go much faster than the time that is given to them.
 */
static struct connection *places_find(const struct server *server, const struct client_share *peer)
{
    static const struct {
        enum timer_kind kind;
        uint64_t msec;
    } order[] = {
        { TIMER_LINGER, 500 },   { TIMER_BODY_PAUSE, 500 }, { TIMER_FRESH, 1000 },
        { TIMER_IDLE, 0 },       { TIMER_HEAD, 1000 },      { TIMER_WRITE, 1000 },
        { TIMER_BODY, 1000 },    { TIMER_LINGER, 0 },       { TIMER_WRITE, 0 },
        { TIMER_BODY_PAUSE, 0 }, { TIMER_BODY, 0 },         { TIMER_FRESH, 0 },
        { TIMER_HEAD, 0 },
    };
    struct connection *found = NULL;

    for (size_t i = 0; i < AQ_COUNT(order) && !found; i++)
        found = places_find_oldest(server, order[i].kind, order[i].msec, peer);
    return found;
}

/* ---- addresses ---- */

/* Whose connection it is; NULL if that is not counted. */
static struct client_share *places_get_peer(struct server *server, const char *address)
{
    const struct server_app *app = server->app;
    char name[SERVER_PEER_MAX];

    if (!app->name_peer || !app->name_peer(address, name, app->guard_data))
        return NULL;
    return client_share_get(&server->peers, name);
}

static void places_count(struct connection *conn, struct client_share *peer)
{
    conn->peer = peer;
    if (peer)
        peer->connections++;
}

bool places_take(struct connection *conn)
{
    struct server *server = conn->server;
    struct client_share *peer = NULL;
    struct connection *other = NULL;

    if (!conn->is_adopted)
        peer = places_get_peer(server, stream_get_address(conn->stream));
    if (places_has_its_share(server, peer))
        other = places_find(server, peer);
    if (!other && places_are_full(server))
        other = places_find(server, NULL);
    places_count(conn, peer);
    if (other)
        connection_drop(other);
    return !places_are_full(server);
}

void places_take_for_request(struct connection *conn)
{
    struct client_share *peer;
    struct connection *other = NULL;

    places_leave(conn);
    peer = places_get_peer(conn->server, conn->address);
    if (places_has_its_share(conn->server, peer))
        other = places_find(conn->server, peer);
    places_count(conn, peer);
    if (other)
        connection_drop(other);
}

void places_leave(struct connection *conn)
{
    client_share_leave(&conn->server->peers, AQ_TAKE(conn->peer));
}
