/* SPDX-License-Identifier: Apache-2.0 */
/* victim_search.h - the search for running sessions whose end would let another start
 *
 * What preempt.c, migrate.c and reservation.c share: an agent's amounts and devices as they
 * would be without some of the sessions there.
 */
#ifndef AQ_SCHED_VICTIM_SEARCH_H
#define AQ_SCHED_VICTIM_SEARCH_H

#include "sched/scheduler_internal.h"

struct victim_search {
    struct sched *s;
    const struct sched_entry *e;
    int64_t now_usec;
    struct arena *arena;
    struct forecast *forecast; /* preempt.c: with bookings that 'e' may run into; else NULL */
    int64_t *free;             /* scratch: of one agent */
    struct cluster_device *devices, *sorted;
    bool (*is_evictable)(const struct victim_search *vs, const struct sched_entry *v);
    uint32_t *starts,
        *by_node; /* evictable sessions: handles by node, and where each node begins */
    uint32_t *claimed, claimed_count; /* victims already */
    uint32_t *candidates;             /* handles, on one agent */
    uint32_t candidate_count;
    bool *is_chosen;   /* per candidate */
    uint32_t *victims; /* of the session so far */
    uint32_t victim_count;
};

/* Sort the evictable sessions by agent; 's', 'e', 'now_usec', 'arena' and 'is_evictable' are set.
 */
void victim_search_init(struct victim_search *vs);
/* Start from what the agent has free now. */
void victim_search_load_node(struct victim_search *vs, uint32_t node);
/* Add what the entry holds on the node to what is free (1), or take it back (-1). */
void victim_search_assume_gone(struct victim_search *vs, const struct sched_entry *victim,
                               uint32_t node, int sign);
/* Add what victims chosen before hold there. */
void victim_search_assume_claimed_gone(struct victim_search *vs, uint32_t node);
bool victim_search_fits(struct victim_search *vs, uint32_t node, const struct slot_request *req);
/* For victim_search.is_evictable, where nobody is. */
bool victim_search_none_evictable(const struct victim_search *vs, const struct sched_entry *v);
bool victim_search_is_same_scope(const struct sched_entry *a, const struct sched_entry *b);
/* The part of the request 'req' that another one is, of the slot of which it is most. */
double victim_search_relative_size(const struct victim_search *vs, const struct slot_request *of,
                                   const struct slot_request *req);
/* The same of the largest container that the victim has on the node. */
double victim_search_contribution(const struct victim_search *vs, const struct sched_entry *v,
                                  uint32_t node, const struct slot_request *req);
/* It becomes a victim, for this session. */
void victim_search_claim(struct victim_search *vs, uint32_t handle);
/* Hold a place for 'req' on the agent as it was made last, from devices that will be free; *ret
 * holds nothing before.
 */
void victim_search_hold(struct victim_search *vs, const struct slot_request *req, uint32_t node,
                        struct hold *ret);
/* No victims after all; the first 'count' places are given back. The search can be repeated. */
void victim_search_cancel(struct victim_search *vs, struct sched_entry *e, uint32_t count);

#endif
