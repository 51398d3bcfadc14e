/* SPDX-License-Identifier: Apache-2.0 */
/* turns.h - connections to programs of the node take turns
 *
 * At most so many are under way at once. Of those, programs that took longer than a second the last
 * time have at most half, so that some that hang do not delay the others. Loop's thread only.
 */
#ifndef AQ_AGENT_PROBE_TURNS_H
#define AQ_AGENT_PROBE_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct turn_queue {
    struct list waiting, slow_waiting; /* struct turn, by when they came */
    size_t max, count, slow_count;     /* under way; slow ones among them */
    bool is_running;
};

/* Part of what connects. */
struct turn {
    struct list link; /* while it waits */
    struct turn_queue *of;
    void (*begin)(struct turn *turn);
    int64_t begun_usec; /* monotonic; 0 = not under way */
    bool is_slow;
};

void turns_init(struct turn_queue *turns, size_t max);

/* begin() is called in its turn and may end it at once; it must not free it. */
void turn_init(struct turn *turn, struct turn_queue *of, void (*begin)(struct turn *turn));
/* It waits, and begins here if there is room. */
void turn_wait(struct turn *turn);
/* It is over, or waits no more; others may begin here. Nothing if it neither waits nor runs. */
void turn_over(struct turn *turn);

#endif
