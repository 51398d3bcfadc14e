/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - calls that block for a volume's disk, few at a time
 *
 * They run in libuv's thread pool. Each volume has lanes of its own, with so few threads each that
 * one which hangs leaves the others theirs, and what is done at once never waits for what looks at
 * whole trees. In a lane users take turns, and none has all of its threads.
 * Loop's thread, but for run().
 */
#ifndef AQ_STORAGE_WORK_H
#define AQ_STORAGE_WORK_H

#include <uv.h>

#include "base/error.h"
#include "base/list.h"
#include "base/uuid.h"

enum work_lane_kind {
    WORK_DATA,  /* bytes of transfers */
    WORK_SHORT, /* what is done at once: lists, names, tokens */
    WORK_COUNT, /* counting trees */
    WORK_TREE,  /* removing them, and putting parts of uploads together */
    WORK_COPY,  /* copying them */
    WORK_PURGE, /* removing what was dropped */
    WORK_LANES
};

#define WORK_WAITING_MAX 16384 /* of a lane */

struct work_lane {
    uv_loop_t *loop;
    unsigned active_max, user_max; /* of all, of one user */
    unsigned active_count;
    size_t waiting_count;
    uint64_t turn;               /* of what began last */
    struct list active, waiting; /* struct work; what waits by its turn */
};

struct work {
    uv_work_t uv;
    struct list link;
    struct work_lane *lane;
    struct uuid user;
    uint64_t turn; /* a user's next one comes after that of each other user who waits */
    bool is_waiting;
    void (*run)(struct work *work);
    void (*done)(struct work *work);
};

void work_lanes_init(struct work_lane lanes[WORK_LANES], uv_loop_t *loop);

/* Run it for a user (NULL = the storage host itself) when there is a thread for it, then call
 * done() on the loop; it is the caller's until then. -EAGAIN if too many wait, of this user or of
 * all.
 */
int work_submit(struct work_lane *lane, struct work *work, const struct uuid *user,
                void (*run)(struct work *work), void (*done)(struct work *work),
                struct aq_error *err);

/* Forget what still waits: done() is not called. False if it runs. */
bool work_withdraw(struct work *work);

/* Have libuv's pool as many threads as so many volumes need. Before the first use of it. */
void work_set_threads(size_t volumes);

#endif
