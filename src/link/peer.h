/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - what outlives a connection: unacknowledged messages and counters */
#ifndef AQ_LINK_PEER_H
#define AQ_LINK_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/log_budget.h"

struct peer_item {
    struct list link;
    uint64_t seq;
    size_t len;
    char body[];
};

struct link_peer {
    struct list items;      /* sent or not, not yet acknowledged; in order of seq */
    size_t bytes;           /* of their bodies */
    uint64_t last_seq;      /* of the newest message ever queued */
    uint64_t acked_seq;     /* the other side has handled all up to here */
    uint64_t delivered_seq; /* the other side's messages handed up so far */
    uint64_t handled_seq;   /* of these, what we have acknowledged; <= delivered_seq */
    int64_t heard_usec;     /* monotonic: when bytes came last; 0 = none since the reset */
    struct log_budget log;  /* for what it causes; stays when all else is forgotten */
    bool is_held;           /* items are queued and not sent: link_server_hold(); stays likewise */
};

void peer_init(struct link_peer *peer);
/* Forget queue and counters. */
void peer_reset(struct link_peer *peer);

/* The other side is a new process: what it has not acknowledged is numbered
 * from 1 again, what it sent is forgotten.
 */
void peer_restart(struct link_peer *peer);

/* Queue a copy. Returns 0, or -ENOBUFS past LINK_QUEUE_MAX_BYTES. */
int peer_push(struct link_peer *peer, const char *body, size_t len);

/* Drop what is acknowledged. -EBADMSG for more than was ever queued. */
int peer_acknowledge(struct link_peer *peer, uint64_t ack);

/* The oldest queued message after 'seq', or NULL. */
struct peer_item *peer_after(const struct link_peer *peer, uint64_t seq);

#endif
