/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - what outlives a connection: unacknowledged messages and counters */
#include "link/peer.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "link/link.h"

void peer_init(struct link_peer *peer)
{
    *peer = (struct link_peer){ .bytes = 0 };
    list_init(&peer->items);
}

static void peer_drop(struct link_peer *peer, struct peer_item *item)
{
    list_remove(&item->link);
    peer->bytes -= item->len;
    free(item);
}

void peer_reset(struct link_peer *peer)
{
    struct log_budget log;
    bool is_held = peer->is_held;

    LIST_FOREACH(it, &peer->items)
        peer_drop(peer, LIST_ENTRY(it, struct peer_item, link));
    log = peer->log;
    peer_init(peer);
    peer->log = log;
    peer->is_held = is_held;
}

void peer_restart(struct link_peer *peer)
{
    peer->last_seq = peer->acked_seq = peer->delivered_seq = peer->handled_seq = 0;
    LIST_FOREACH(it, &peer->items)
        LIST_ENTRY(it, struct peer_item, link)->seq = ++peer->last_seq;
}

int peer_push(struct link_peer *peer, const char *body, size_t len)
{
    struct peer_item *item;

    if (peer->bytes + len > LINK_QUEUE_MAX_BYTES)
        return -ENOBUFS;
    item = aq_alloc(sizeof(*item) + len);
    memcpy(item->body, body, len);
    item->len = len;
    item->seq = ++peer->last_seq;
    list_add(&peer->items, &item->link);
    peer->bytes += len;
    return 0;
}

int peer_acknowledge(struct link_peer *peer, uint64_t ack)
{
    if (ack > peer->last_seq)
        return -EBADMSG;
    LIST_FOREACH(it, &peer->items) {
        struct peer_item *item = LIST_ENTRY(it, struct peer_item, link);

        if (item->seq > ack)
            break;
        peer_drop(peer, item);
    }
    if (ack > peer->acked_seq)
        peer->acked_seq = ack;
    return 0;
}

struct peer_item *peer_after(const struct link_peer *peer, uint64_t seq)
{
    /* from the newest backwards: usually there is nothing, or only the newest */
    struct list *found = NULL;

    for (struct list *at = peer->items.prev; at != &peer->items; at = at->prev) {
        if (LIST_ENTRY(at, struct peer_item, link)->seq <= seq)
            break;
        found = at;
    }
    return found ? LIST_ENTRY(found, struct peer_item, link) : NULL;
}
