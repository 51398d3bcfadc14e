/* SPDX-License-Identifier: Apache-2.0 */
/* gang.h - the agents of a session whose kernels may be on several: all of them, or none
 *
 * The kernels go as near to each other as there is room: to one agent; else to agents of the
 * deepest subtree of the topology that can hold all, of equally deep ones to that with the least
 * room left; there to as few agents as possible. Between agents that are equal so far the selector
 * chooses. A selector that spreads (selector_ops.spreads) chooses all agents, within the same
 * subtree.
 *
 * Agents that a session would rather avoid (named ones, those of its group, its failed one, those
 * with slots that it does not ask for) are looked at once the others have no room.
 *
 * A session that needs a network has all its kernels on one agent, or on agents of one class of
 * which each reaches each other. The search for such agents is bounded: with many broken pairs in
 * no pattern it may miss a placement, with a network that fell apart into parts it does not.
 */
#ifndef AQ_SCHED_GANG_H
#define AQ_SCHED_GANG_H

#include "sched/scheduler_internal.h"

/* How requirements are held: now, at a later time, or where others leave. */
struct gang_ops {
    /* An upper bound of how many of 'req' the agent can hold at once. NULL: unknown; the kernels
     * then go to any agents that reach each other, near or not.
     */
    uint32_t (*count_room)(void *data, struct slot_request *req, uint32_t node);
    /* Hold requirement 'q' on one of the agents that 'constraints' (may be NULL) allows. The node,
     * CLUSTER_NONE if none has room.
     */
    uint32_t (*hold)(void *data, uint32_t q, const struct placement_constraints *constraints);
    /* Requirement 'q' found no agent: release those before it. */
    void (*undo)(void *data, uint32_t q, const struct placement_constraints *constraints);
};

/* Hold all requirements of 'e', whose constraints are 'base' (may be NULL), or none: false. */
bool gang_place(struct sched *s, const struct sched_entry *e,
                const struct placement_constraints *base, const struct gang_ops *ops, void *data,
                struct arena *arena);
/* Do the agents of these places, one per requirement of 'e', reach each other if it needs that? */
bool gang_is_connected(const struct sched *s, const struct sched_entry *e,
                       const struct hold *holds);

#endif
