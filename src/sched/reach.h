/* SPDX-License-Identifier: Apache-2.0 */
/* reach.h - which agents reach each other over the network between nodes
 *
 * Agents of one class of network do, except for pairs that are listed because a tunnel between them
 * is broken. Usually there are none, and seldom many.
 */
#ifndef AQ_SCHED_REACH_H
#define AQ_SCHED_REACH_H

#include "sched/cluster.h"

/* The agents that one agent does not reach although they are of its class, by index. */
struct cut_list {
    uint32_t *nodes;
    size_t count, cap;
};

void reach_set_cut(struct cluster *c, uint32_t a, uint32_t b, bool is_cut);
/* Borrowed; may be empty. */
const struct cut_list *reach_cuts(const struct cluster *c, uint32_t node);
bool reach_is_cut(const struct cluster *c, uint32_t a, uint32_t b);
/* Can kernels of one session run on both? An agent always reaches itself. */
bool reach_is_connected(const struct cluster *c, uint32_t a, uint32_t b);

#endif
