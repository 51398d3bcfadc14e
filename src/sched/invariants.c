/* SPDX-License-Identifier: Apache-2.0 */
/* invariants.c - what is always true of a scheduler between passes, checked in debug builds */
#include <assert.h>
#include <string.h>

#include "sched/cluster_internal.h"
#include "sched/scheduler_internal.h"

#ifndef NDEBUG
/* More takes too long to check after each pass. */
#define NODES_MAX 64
#define ENTRIES_MAX 256

/* Each agent is a member of the state that equals it; a state lists its members by id. */
static void invariants_check_states(const struct cluster *c)
{
    size_t members = 0, used = 0;

    for (uint32_t n = 0; n < c->node_count; n++) {
        const struct cluster_node *node = &c->nodes[n];
        const struct node_state *state = &c->states[node->state];

        assert(node->state < c->state_count && state->device_count == node->device_count);
        assert(memcmp(state->free, node->free, c->width * sizeof(*node->free)) == 0);
    }
    for (uint32_t i = 0; i < c->state_count; i++) {
        const struct node_state *state = &c->states[i];

        used += state->member_count > 0;
        members += state->member_count;
        for (size_t column = 0; column < c->width; column++)
            assert(cluster_free(c, column)[i]
                   == (state->member_count ? state->free[column] : SCHED_ABSENT));
        for (uint32_t m = 0; m < state->member_count; m++) {
            assert(c->nodes[state->members[m]].state == i);
            assert(m == 0
                   || strcmp(c->nodes[state->members[m - 1]].id, c->nodes[state->members[m]].id)
                          < 0);
        }
    }
    assert(members == c->node_count && used == c->used_state_count);
}

/* Parts of an agent have of shared columns what the agent has. */
static void invariants_check_parts(const struct cluster *c)
{
    for (uint32_t n = 0; n < c->node_count; n++)
        for (uint32_t part = c->nodes[n].first_part; part != CLUSTER_NONE;
             part = c->nodes[part].next_part) {
            assert(c->nodes[part].agent == n && c->nodes[part].booking && !c->nodes[n].booking);
            for (size_t i = 0; i < c->width; i++)
                assert(!c->nodes[part].shared[i] || c->nodes[part].free[i] == c->nodes[n].free[i]);
        }
}

/* What the fit cache says of a state is what the state says. */
static void invariants_check_fits(const struct cluster *c)
{
    for (size_t r = 0; r < c->request_count; r++) {
        const struct slot_request *req = c->requests[r];

        assert(req->id == r);
        for (uint32_t i = 0; i < AQ_MIN((size_t)req->fit_count, c->state_count); i++)
            if (c->states[i].member_count && req->fits[i].generation == c->states[i].generation
                && req->fits[i].epoch == c->epoch)
                assert(req->fits[i].has_room == fit_check_state(c, req, &c->states[i]));
    }
}

/* All that wait are in the queue, in order; all that hold something hold it on agents there are. */
static void invariants_check_entries(const struct sched *s)
{
    size_t waiting = 0, preempting = 0, gaps = 0;

    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];

        waiting += e->status == ENTRY_WAITING;
        preempting += e->status == ENTRY_PREEMPTING;
        for (uint32_t q = 0; q < e->req_count; q++) {
            assert(e->reqs[q]->users > 0);
            assert(e->holds[q].node == CLUSTER_NONE
                   || (entry_is_holding(e) && e->holds[q].node < s->cluster.node_count));
        }
    }
    assert(waiting == s->queue_count - s->queue_gaps && preempting == s->preempting);
    for (size_t i = 0; i < s->queue_count; i++) {
        const struct queue_item *q = &s->queue[i];

        gaps += q->handle == NO_HANDLE;
        assert(q->handle == NO_HANDLE
               || (s->entries[q->handle].status == ENTRY_WAITING
                   && s->entries[q->handle].row == q->row));
        assert(i == 0 || wait_queue_compare(&s->queue[i - 1], &s->queue[i]) < 0);
    }
    assert(gaps == s->queue_gaps);
}

void sched_assert_consistent(const struct sched *s)
{
    if (s->cluster.node_count > NODES_MAX || s->entry_count > ENTRIES_MAX)
        return;
    invariants_check_states(&s->cluster);
    invariants_check_parts(&s->cluster);
    invariants_check_fits(&s->cluster);
    invariants_check_entries(s);
}
#endif
