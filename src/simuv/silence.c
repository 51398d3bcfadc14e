/* SPDX-License-Identifier: Apache-2.0 */
/* silence.c - peers that nothing comes from: retransmissions and keepalive probes that give up, and
 * how the kernel ends the connections of a process that is gone
 */
#include <errno.h>

#include "simuv/simuv_internal.h"

#define RETRANSMIT_USEC (924 * SIMUV_USEC_PER_SEC) /* Linux: 15 */
#define PROBE_FIRST_USEC (60 * SIMUV_USEC_PER_SEC) /* keepalive, as http/stream.c sets it */
#define PROBE_NEXT_USEC (75 * SIMUV_USEC_PER_SEC)
#define PROBES 9

/* Both ways are open; if not, ret_since says since when one is not. */
static bool silence_is_reachable(const struct simuv_socket *socket, int64_t *ret_since)
{
    const struct simuv_way *back = simuv_way_find(socket->peer->host, socket->host);
    int64_t there = simuv_way_blocked_since(socket->out), here = simuv_way_blocked_since(back);

    *ret_since = there && here ? AQ_MIN(there, here) : there + here;
    return !*ret_since;
}

static void silence_arm(struct simuv_socket *socket)
{
    int64_t at = socket->dead_at;

    if (socket->probe_at && (!at || socket->probe_at < at))
        at = socket->probe_at;
    if (at)
        simuv_event_schedule(&socket->timer, at);
}

/* Keepalive: a peer that lives answers, one that is a stranger to the connection resets it. */
static void silence_probe(struct simuv_socket *socket)
{
    int64_t since;

    socket->probe_at = 0;
    if (silence_is_reachable(socket, &since)) {
        if (socket->peer->state == SIMUV_ENDED && !socket->has_fin)
            simuv_socket_fail(socket, ECONNRESET);
        return;
    }
    since = AQ_MAX(since, socket->heard_usec);
    if (simuv_now - since >= PROBE_FIRST_USEC + PROBES * PROBE_NEXT_USEC)
        simuv_socket_fail(socket, ETIMEDOUT);
    else
        socket->probe_at = simuv_now + PROBE_NEXT_USEC;
}

void simuv_socket_on_timer(struct simuv_event *event)
{
    struct simuv_socket *socket = AQ_CONTAINER_OF(event, struct simuv_socket, timer);

    simuv_note("timeout", socket->id, 0);
    simuv_socket_ref(socket);
    if (socket->state == SIMUV_CONNECTING)
        simuv_socket_fail(socket, ETIMEDOUT);
    if (socket->dead_at && simuv_now >= socket->dead_at) {
        socket->dead_at = 0;
        if (socket->held)
            simuv_socket_fail(socket, ETIMEDOUT);
    }
    if (socket->state == SIMUV_CONNECTED && socket->probe_at && simuv_now >= socket->probe_at)
        silence_probe(socket);
    if (socket->state == SIMUV_CONNECTED)
        silence_arm(socket);
    simuv_socket_unref(socket);
}

/* What it sends, or would hear, is held up: timeouts run. */
void simuv_socket_watch(struct simuv_socket *socket)
{
    if (socket->state != SIMUV_CONNECTED || !socket->peer)
        return;
    if (socket->held && !socket->dead_at)
        socket->dead_at = simuv_now + RETRANSMIT_USEC;
    if (socket->keeps_alive && !socket->probe_at && !socket->is_orphan)
        socket->probe_at = simuv_now + PROBE_FIRST_USEC;
    silence_arm(socket);
}

void simuv_sockets_watch(struct simuv_machine *a, struct simuv_machine *b)
{
    LIST_FOREACH(it, &b->sockets) {
        struct simuv_socket *socket = LIST_ENTRY(it, struct simuv_socket, host_link);

        if (!socket->peer || socket->peer->host != a->id)
            continue;
        simuv_socket_watch(socket);
        simuv_socket_watch(socket->peer);
    }
}

/* ---- a process ends ---- */

/* The kernel ends the connection properly; which way depends on what was unread. */
static void silence_end(struct simuv_socket *socket)
{
    if (socket->is_orphan)
        return;
    if (simuv_chance_of(SIMUV_NETWORK, 0.5))
        socket->lingers_not = true;
    list_remove(&socket->waiting_link);
    simuv_socket_close(socket);
}

/* Its peer finds nobody. */
static void silence_lose(struct simuv_socket *socket)
{
    socket->state = SIMUV_ENDED;
    socket->is_lost = true;
    if (socket->peer)
        simuv_socket_watch(socket->peer);
}

void simuv_sockets_crash(struct simuv_machine *machine, bool is_silent)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    if (is_silent)
        LIST_FOREACH(it, &machine->sockets)
            silence_lose(LIST_ENTRY(it, struct simuv_socket, host_link));
    list_cursor_begin(&cursor, &machine->sockets);
    while ((link = list_cursor_next(&cursor)))
        silence_end(LIST_ENTRY(link, struct simuv_socket, host_link));
}
