/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - calls that block for a volume's disk, few at a time
 *
 * They run in libuv's thread pool. Each volume has lanes of its own, with so few threads each that
 * one which hangs leaves the others theirs.
 * Loop's thread, but for run().
 */
#ifndef AQ_STORAGE_WORK_H
#define AQ_STORAGE_WORK_H

#include <uv.h>

#include "base/error.h"
#include "base/list.h"

enum work_lane_kind {
    WORK_DATA,  /* bytes, and what is done at once */
    WORK_TREE,  /* what looks at whole trees */
    WORK_COPY,  /* copying them */
    WORK_PURGE, /* removing what was dropped */
    WORK_LANES
};

struct work_lane {
    uv_loop_t *loop;
    unsigned active, active_max;
    struct list waiting; /* struct work */
    size_t waiting_count;
};

struct work {
    uv_work_t uv;
    struct list link;
    struct work_lane *lane;
    void (*run)(struct work *work);
    void (*done)(struct work *work);
};

void work_lanes_init(struct work_lane lanes[WORK_LANES], uv_loop_t *loop);

/* Run it when there is a thread for it, then call done() on the loop; it is the caller's until
 * then. -EAGAIN if too many wait.
 */
int work_submit(struct work_lane *lane, struct work *work, void (*run)(struct work *work),
                void (*done)(struct work *work), struct aq_error *err);

/* Have libuv's pool as many threads as so many volumes need. Before the first use of it. */
void work_set_threads(size_t volumes);

#endif
