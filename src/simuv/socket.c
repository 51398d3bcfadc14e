/* SPDX-License-Identifier: Apache-2.0 */
/* socket.c - the ends of TCP connections, as a kernel keeps them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "simuv/simuv_internal.h"

#define BUFFER_SIZE 524288    /* what a program may send before its peer's reads it */
#define SEGMENT_SIZE 65536    /* at most */
#define ODD_CHANCE (1.0 / 32) /* that a write or read takes less than it could */
#define SPLIT_CHANCE (1.0 / 8)
#define CONNECT_USEC (127 * SIMUV_USEC_PER_SEC) /* Linux: 6 retransmissions */

static uint32_t socket_ids;

/* ---- making and ending ---- */

struct simuv_socket *simuv_socket_new(simuv_host host)
{
    struct simuv_socket *socket = aq_alloc(sizeof(*socket));

    socket->refs = 1;
    socket->id = ++socket_ids;
    socket->host = host;
    socket->fd = -1;
    socket->timer = (struct simuv_event){ .run = simuv_socket_on_timer, .is_urgent = true };
    list_init(&socket->received);
    list_init(&socket->waiting);
    list_init(&socket->waiting_link);
    list_init(&socket->io_link);
    list_init(&socket->pending_link);
    list_init(&socket->host_link);
    list_init(&socket->listener_link);
    list_add(&simuv_machine_of(host)->sockets, &socket->host_link);
    return socket;
}

void simuv_socket_ref(struct simuv_socket *socket)
{
    socket->refs++;
}

void simuv_socket_unref(struct simuv_socket *socket)
{
    struct simuv_socket *peer = socket->peer;

    if (--socket->refs)
        return;
    simuv_event_cancel(&socket->timer);
    list_remove(&socket->host_link);
    free(socket);
    if (peer)
        simuv_socket_unref(peer);
}

static void socket_drop_received(struct simuv_socket *socket)
{
    struct list *link;

    while ((link = list_take(&socket->received)))
        simuv_segment_free(LIST_ENTRY(link, struct simuv_segment, link));
    socket->unread = 0;
}

/* No segment follows. Both ends drop their pointer to the other one, so that each can be freed. */
static void socket_end(struct simuv_socket *socket)
{
    struct simuv_socket *peer = socket->peer;

    socket->state = SIMUV_ENDED;
    simuv_event_cancel(&socket->timer);
    socket->peer = NULL;
    if (peer)
        simuv_socket_unref(peer);
}

void simuv_socket_fail(struct simuv_socket *socket, int error)
{
    if (socket->state != SIMUV_CONNECTED && socket->state != SIMUV_CONNECTING)
        return;
    socket->error = error;
    simuv_socket_ref(socket);
    socket_end(socket);
    simuv_stream_notify(socket);
    simuv_socket_unref(socket);
}

static void socket_reset_peer(struct simuv_socket *socket)
{
    if (socket->state == SIMUV_CONNECTED && socket->peer)
        simuv_segment_send(socket, SIMUV_RST, NULL, 0);
}

static void socket_close_waiting(struct simuv_socket *listener)
{
    struct list *link;

    while ((link = list_take(&listener->waiting))) {
        struct simuv_socket *socket = LIST_ENTRY(link, struct simuv_socket, waiting_link);

        socket->lingers_not = true;
        simuv_socket_close(socket);
    }
}

void simuv_socket_close(struct simuv_socket *socket)
{
    bool is_reset;

    list_remove(&socket->io_link);
    list_remove(&socket->pending_link);
    list_remove(&socket->listener_link);
    simuv_descriptor_free(socket);
    socket_close_waiting(socket);
    socket->uv = NULL;
    socket->is_orphan = true;
    is_reset = socket->unread || socket->lingers_not;
    if (is_reset)
        socket_reset_peer(socket);
    else
        simuv_socket_shutdown(socket);
    socket_drop_received(socket);
    if (socket->state != SIMUV_CONNECTED || is_reset || socket->has_fin)
        socket_end(socket);
    simuv_socket_unref(socket);
}

/* ---- listening and connecting ---- */

static struct simuv_socket *socket_find_listener(struct simuv_machine *machine,
                                                 const struct sockaddr_in *at)
{
    LIST_FOREACH(it, &machine->listeners) {
        struct simuv_socket *socket = LIST_ENTRY(it, struct simuv_socket, listener_link);
        in_addr_t bound = socket->local.sin_addr.s_addr;

        if (socket->local.sin_port == at->sin_port
            && (bound == INADDR_ANY || at->sin_addr.s_addr == INADDR_ANY
                || bound == at->sin_addr.s_addr))
            return socket;
    }
    return NULL;
}

static in_port_t socket_free_port(struct simuv_machine *machine)
{
    machine->next_port = (uint16_t)(machine->next_port + 1
                                    + simuv_random_of_below(SIMUV_NETWORK, 7));
    if (machine->next_port < 32768)
        machine->next_port = 32768;
    return htons(machine->next_port);
}

int simuv_socket_listen(struct simuv_socket *socket, int backlog)
{
    struct simuv_machine *machine = simuv_machine_of(socket->host);

    if (socket->state == SIMUV_LISTENS) {
        socket->backlog = backlog;
        return 0;
    }
    if (socket->state != SIMUV_NEW)
        return -EINVAL;
    socket->local.sin_family = AF_INET;
    if (!socket->local.sin_port)
        socket->local.sin_port = socket_free_port(machine);
    if (socket_find_listener(machine, &socket->local))
        return -EADDRINUSE;
    socket->backlog = backlog;
    socket->state = SIMUV_LISTENS;
    list_add(&machine->listeners, &socket->listener_link);
    return 0;
}

int simuv_socket_connect(struct simuv_socket *socket, const struct sockaddr_in *to)
{
    struct simuv_machine *machine = simuv_machine_of(socket->host);
    struct simuv_machine *peer = simuv_machine_find(socket->host, to->sin_addr);

    if (socket->state != SIMUV_NEW)
        return -EISCONN;
    if (!peer)
        return -ENETUNREACH;
    socket->remote = *to;
    socket->local.sin_family = AF_INET;
    socket->local.sin_port = socket_free_port(machine);
    socket->local.sin_addr = peer == machine ? to->sin_addr : machine->address;
    socket->out = simuv_way_find(machine->id, peer->id);
    socket->state = SIMUV_CONNECTING;
    simuv_event_schedule(&socket->timer, simuv_now + CONNECT_USEC);
    simuv_segment_send(socket, SIMUV_SYN, NULL, 0);
    return 0;
}

/* Another end for a connection that arrives; NULL = refused. */
static struct simuv_socket *socket_answer(struct simuv_socket *from)
{
    struct simuv_machine *machine = simuv_machine_find(from->host, from->remote.sin_addr);
    struct simuv_socket *listener = socket_find_listener(machine, &from->remote), *socket;

    if (!listener || machine->is_crashed)
        return NULL;
    socket = simuv_socket_new(machine->id);
    socket->local = from->remote;
    socket->remote = from->local;
    socket->out = simuv_way_find(machine->id, from->host);
    socket->peer = from;
    socket->heard_usec = simuv_now;
    socket->state = SIMUV_CONNECTED;
    simuv_socket_ref(from);
    from->peer = socket;
    simuv_socket_ref(socket);
    list_add(&listener->waiting, &socket->waiting_link);
    simuv_stream_notify(listener);
    return socket;
}

static void socket_on_syn(struct simuv_socket *from)
{
    struct simuv_socket *socket;

    if (from->state != SIMUV_CONNECTING || from->peer)
        return;
    socket = socket_answer(from);
    if (socket)
        simuv_segment_send(socket, SIMUV_SYNACK, NULL, 0);
    else
        simuv_socket_fail(from, ECONNREFUSED);
}

/* ---- what arrives ---- */

static void socket_on_data(struct simuv_segment *segment)
{
    struct simuv_socket *socket = segment->to;

    if (socket->is_orphan || socket->state != SIMUV_CONNECTED) {
        /* nobody reads it: the sender learns of it as soon as an answer comes */
        struct simuv_socket *from = segment->from;

        if (simuv_way_is_open(simuv_way_find(socket->host, from->host)))
            simuv_socket_fail(from, ECONNRESET);
        simuv_segment_free(segment);
        return;
    }
    list_add(&socket->received, &segment->link);
    socket->unread += segment->len;
    simuv_stream_notify(socket);
}

static void socket_on_fin(struct simuv_socket *socket)
{
    socket->has_fin = true;
    if (socket->is_orphan)
        socket_end(socket);
    else
        simuv_stream_notify(socket);
}

/* It may have been given up meanwhile: then the other end is a stranger. */
static void socket_on_synack(struct simuv_socket *socket, struct simuv_socket *from)
{
    if (socket->state == SIMUV_ENDED)
        simuv_socket_fail(from, ECONNRESET);
    if (socket->state != SIMUV_CONNECTING)
        return;
    socket->state = SIMUV_CONNECTED;
    simuv_event_cancel(&socket->timer);
    simuv_stream_notify(socket);
}

void simuv_socket_receive(struct simuv_segment *segment)
{
    struct simuv_socket *to = segment->to;

    if (to)
        to->heard_usec = simuv_now;
    switch (segment->kind) {
    case SIMUV_DATA:
        socket_on_data(segment);
        return;
    case SIMUV_SYN:
        socket_on_syn(segment->from);
        break;
    case SIMUV_SYNACK:
        socket_on_synack(to, segment->from);
        break;
    case SIMUV_FIN:
        if (to->state == SIMUV_CONNECTED)
            socket_on_fin(to);
        break;
    case SIMUV_RST:
        simuv_socket_fail(to, ECONNRESET);
        break;
    case SIMUV_ROOM:
        simuv_stream_notify(to);
        break;
    }
    simuv_segment_free(segment);
}

/* ---- reading and writing ---- */

static size_t socket_room(const struct simuv_socket *socket)
{
    return socket->under_way < BUFFER_SIZE ? BUFFER_SIZE - socket->under_way : 0;
}

static int socket_take_error(struct simuv_socket *socket)
{
    int error = socket->was_told ? EPIPE : socket->error;

    socket->was_told = true;
    return error;
}

/* One segment, or two. */
static void socket_send(struct simuv_socket *socket, const char *bytes, size_t len)
{
    while (len > 0) {
        size_t part = AQ_MIN(len, SEGMENT_SIZE);

        if (part > 1 && simuv_chance_of(SIMUV_NETWORK, SPLIT_CHANCE))
            part = 1 + simuv_random_of_below(SIMUV_NETWORK, part - 1);
        simuv_segment_send(socket, SIMUV_DATA, bytes, part);
        bytes += part;
        len -= part;
    }
}

ssize_t simuv_socket_write(struct simuv_socket *socket, const uv_buf_t *bufs, unsigned count)
{
    size_t room = socket_room(socket), taken = 0;

    if (socket->error)
        return -socket_take_error(socket);
    if (socket->state != SIMUV_CONNECTED || socket->sent_fin)
        return socket->state == SIMUV_NEW ? -ENOTCONN : -EPIPE;
    if (room > 1 && simuv_chance_of(SIMUV_NETWORK, ODD_CHANCE))
        room = simuv_random_of_below(SIMUV_NETWORK, AQ_MIN(room, SEGMENT_SIZE));
    for (unsigned i = 0; i < count && room > 0; i++) {
        size_t part = AQ_MIN(bufs[i].len, room);

        socket_send(socket, bufs[i].base, part);
        room -= part;
        taken += part;
        socket->under_way += part;
        if (part < bufs[i].len)
            break;
    }
    return taken ? (ssize_t)taken : -EAGAIN;
}

void simuv_socket_want_room(struct simuv_socket *socket)
{
    if (socket_room(socket))
        simuv_stream_notify(socket); /* a write takes nothing at times, although there is some */
    else
        socket->wants_room = true;
}

/* The peer's program has read: who waits for room hears of it. */
static void socket_give_room(struct simuv_socket *socket, size_t len)
{
    struct simuv_socket *peer = socket->peer;

    if (!peer)
        return;
    peer->under_way -= AQ_MIN(len, peer->under_way);
    if (peer->wants_room && peer->under_way <= BUFFER_SIZE / 2) {
        peer->wants_room = false;
        simuv_segment_send(socket, SIMUV_ROOM, NULL, 0);
    }
}

static size_t socket_take(struct simuv_socket *socket, char *into, size_t room)
{
    size_t done = 0;

    while (done < room && !list_is_empty(&socket->received)) {
        struct simuv_segment *segment = LIST_ENTRY(socket->received.next, struct simuv_segment,
                                                   link);
        size_t part = AQ_MIN(segment->len - segment->taken, room - done);

        memcpy(into + done, segment->bytes + segment->taken, part);
        segment->taken += (uint32_t)part;
        done += part;
        if (segment->taken == segment->len)
            simuv_segment_free(segment);
    }
    socket->unread -= done;
    socket_give_room(socket, done);
    return done;
}

bool simuv_socket_is_readable(const struct simuv_socket *socket)
{
    return socket->unread || socket->has_fin || socket->error || !list_is_empty(&socket->waiting);
}

ssize_t simuv_socket_read(struct simuv_socket *socket, char *into, size_t room, bool is_peek)
{
    if (socket->unread && is_peek) {
        struct simuv_segment *segment = LIST_ENTRY(socket->received.next, struct simuv_segment,
                                                   link);
        size_t part = AQ_MIN(segment->len - segment->taken, room);

        memcpy(into, segment->bytes + segment->taken, part);
        return (ssize_t)part;
    }
    if (socket->unread) {
        size_t most = AQ_MIN(socket->unread, room);

        if (most > 1 && simuv_chance_of(SIMUV_NETWORK, ODD_CHANCE))
            most = 1 + simuv_random_of_below(SIMUV_NETWORK, most - 1);
        return (ssize_t)socket_take(socket, into, most);
    }
    if (socket->error && !socket->was_told)
        return is_peek ? -socket->error : -socket_take_error(socket);
    if (socket->has_fin || socket->error)
        return 0;
    return socket->state == SIMUV_CONNECTED ? -EAGAIN : -ENOTCONN;
}

void simuv_socket_shutdown(struct simuv_socket *socket)
{
    if (socket->state == SIMUV_CONNECTED && !socket->sent_fin)
        simuv_segment_send(socket, SIMUV_FIN, NULL, 0);
    socket->sent_fin = true;
}
