/* SPDX-License-Identifier: Apache-2.0 */
/* idle_pool.h - the agent's connections that wait for their next stream
 *
 * At most IDLE_MAX, each for IDLE_MSEC: shorter than the manager keeps its end,
 * so that none is taken that is about to be closed.
 */
#ifndef AQ_LINK_IDLE_POOL_H
#define AQ_LINK_IDLE_POOL_H

#include "base/list.h"
#include "http/stream.h"

#define IDLE_MAX 16
#define IDLE_MSEC 30000

struct idle_pool {
    uv_loop_t *loop;
    struct list idles; /* struct idle_connection, the one used last at the end */
    unsigned count;
};

void idle_pool_init(struct idle_pool *pool, uv_loop_t *loop);

/* Take the connection over, or close it. */
void idle_pool_add(struct idle_pool *pool, struct stream *connection);

/* The one that was used last, or NULL. Its owner sets its callbacks before the
 * loop goes on.
 */
struct stream *idle_pool_take(struct idle_pool *pool);

void idle_pool_clear(struct idle_pool *pool);

#endif
