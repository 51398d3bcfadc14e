/* reuse.h - who is given the connections of streams that have ended in order
 *
 * A handshake costs more than most streams carry. So both sides keep the
 * connection: the agent in a pool (idle.h), the manager as one that has yet to
 * say what it wants. Outlives its owner, as streams that part do.
 */
#ifndef AQ_LINK_REUSE_H
#define AQ_LINK_REUSE_H

#include "http/stream.h"

struct reuse;

/* NULL = no memory. */
struct reuse *reuse_new(void (*give)(void *owner, struct stream *connection), void *owner);
struct reuse *reuse_ref(struct reuse *reuse);
void reuse_unref(struct reuse *reuse); /* NULL is fine */

/* The owner goes: connections are closed from here on. NULL is fine. */
void reuse_end(struct reuse *reuse);

/* Hand the connection over; 'rest' are bytes that were read already. */
void reuse_give(struct reuse *reuse, struct stream *connection, const char *rest, size_t len);

#endif
