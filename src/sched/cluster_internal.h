/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_internal.h - what cluster.c, node_state.c and slot_request.c share */
#ifndef AQ_SCHED_CLUSTER_INTERNAL_H
#define AQ_SCHED_CLUSTER_INTERNAL_H

#include "sched/cluster.h"

/* ---- node_state.c ---- */

void node_state_reserve_scratch(struct cluster *c, size_t devices);
/* Find or make the state of 'n', with 'node' as a member. */
uint32_t node_state_enter(struct cluster *c, const struct cluster_node *n, uint32_t node);
/* Without its last member it ends. */
void node_state_leave(struct cluster *c, uint32_t state, uint32_t node);
void node_states_done(struct cluster *c);

/* ---- fit.c ---- */

/* Can an agent in this state hold the request, now? Not from the cache. */
bool fit_check_state(const struct cluster *c, const struct slot_request *req,
                     const struct node_state *s);

/* ---- slot_request.c ---- */

void slot_requests_done(struct cluster *c);

/* ---- topology.c, reach.c ---- */

void topology_forget(struct cluster *c);
void reach_done(struct cluster *c);

/* ---- cluster.c: words to small numbers ---- */

/* -ENOSPC if there are too many. */
int cluster_model(struct cluster *c, const char *model, uint8_t *ret);
int cluster_architecture(struct cluster *c, const char *architecture, uint16_t *ret);

#endif
