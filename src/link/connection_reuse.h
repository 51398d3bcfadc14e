/* SPDX-License-Identifier: Apache-2.0 */
/* connection_reuse.h - connections whose stream has ended are kept for the next stream
 *
 * A handshake costs more than most streams carry. So both sides keep the
 * connection: the agent in a pool (idle_pool.h), the manager as one that has yet to
 * say what it wants. The callback is reference-counted: streams that still end may
 * outlive its owner.
 */
#ifndef AQ_LINK_CONNECTION_REUSE_H
#define AQ_LINK_CONNECTION_REUSE_H

#include "http/stream.h"

struct connection_reuse;

struct connection_reuse *connection_reuse_new(void (*give)(void *owner, struct stream *connection),
                                              void *owner);
struct connection_reuse *connection_reuse_ref(struct connection_reuse *reuse);
void connection_reuse_unref(struct connection_reuse *reuse); /* NULL is fine */

/* The owner goes: connections are closed from here on. NULL is fine. */
void connection_reuse_end(struct connection_reuse *reuse);

/* Hand the connection over; 'rest' are bytes that were read already. */
void connection_reuse_give(struct connection_reuse *reuse, struct stream *connection,
                           const char *rest, size_t len);

#endif
