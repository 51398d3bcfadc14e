/* SPDX-License-Identifier: Apache-2.0 */
/* reservation.c - places reserved for sessions that do not wait (yet)
 *
 * A session that migrates has its new place before it is stopped, and takes it, ahead
 * of the queue, when it waits again. After a restart of the owner the same is
 * said again by name of agent, and of the sessions that others are preempted for,
 * too: a place may then be made of what those leave that are about to go.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/gang.h"
#include "sched/victim_search.h"

struct reservation *reservation_find(struct sched *s, int64_t row)
{
    for (size_t i = 0; i < s->reservation_count; i++)
        if (s->reservations[i].row == row)
            return &s->reservations[i];
    return NULL;
}

/* ---- records ---- */

struct reservation *reservation_add(struct sched *s, int64_t row, int64_t lifetime_usec,
                                    struct slot_request *const *reqs, uint32_t count)
{
    struct reservation *to;

    vec_grow(&s->reservations, &s->reservation_cap, s->reservation_count + 1,
             sizeof(*s->reservations));
    to = &s->reservations[s->reservation_count++];
    *to = (struct reservation){ .row = row,
                                .lifetime_usec = lifetime_usec,
                                .reqs = aq_alloc_array(count, sizeof(*to->reqs)),
                                .holds = aq_alloc_array(count, sizeof(*to->holds)),
                                .count = count };
    for (uint32_t q = 0; q < count; q++) {
        to->reqs[q] = reqs[q];
        to->reqs[q]->users++;
        to->holds[q].node = CLUSTER_NONE;
    }
    return to;
}

/* The record alone; its places are somebody else's now, or nobody's. */
static void reservation_remove(struct sched *s, struct reservation *r)
{
    assert(r >= s->reservations && r < s->reservations + s->reservation_count);
    for (uint32_t q = 0; q < r->count; q++)
        slot_request_release(&s->cluster, r->reqs[q]);
    free(r->reqs);
    free(r->holds);
    *r = s->reservations[--s->reservation_count];
}

void reservation_release(struct sched *s, int64_t row)
{
    struct reservation *r = reservation_find(s, row);

    for (uint32_t q = 0; r && q < r->count; q++) {
        struct hold *h = &r->holds[q];

        if (h->node == CLUSTER_NONE)
            continue;
        cluster_release(&s->cluster, h->node, r->reqs[q], h->parts, h->part_count);
        free(h->parts);
    }
    if (r)
        reservation_remove(s, r);
}

void sched_unreserve(struct sched *s, int64_t row)
{
    reservation_release(s, row);
}

/* ---- by name ---- */

/* All of them, as if those about to end had ended. 0 or -ENOENT. */
static int reservation_hold_named(struct sched *s, struct reservation *to,
                                  const char *const *agent_ids)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct victim_search h = { .s = s,
                               .arena = &arena,
                               .is_evictable = victim_search_none_evictable };

    victim_search_init(&h);
    for (uint32_t q = 0; q < to->count; q++) {
        uint32_t node = booked_find_node(s, to->reqs[q]->booking, agent_ids[q]);

        if (node == CLUSTER_NONE || !cluster_matches(&s->cluster, to->reqs[q], node))
            return -ENOENT;
        victim_search_load_node(&h, node);
        victim_search_assume_claimed_gone(&h, node);
        if (!victim_search_fits(&h, node, to->reqs[q]))
            return -ENOENT;
        victim_search_hold(&h, to->reqs[q], node, &to->holds[q]);
    }
    return 0;
}

int sched_reserve(struct sched *s, const struct sched_session *session,
                  const char *const *agent_ids)
{
    uint64_t free_version = s->cluster.free_version;
    struct slot_request **reqs;
    struct reservation *to;
    uint32_t count;
    int r;

    if (reservation_find(s, session->row))
        return -EEXIST;
    reqs = entry_read_requests(s, session, &count);
    to = reservation_add(s, session->row, session->lifetime_usec, reqs, count);
    for (uint32_t q = 0; q < count; q++)
        slot_request_release(&s->cluster, reqs[q]);
    free(reqs);
    if ((r = reservation_hold_named(s, to, agent_ids)) < 0) {
        reservation_release(s, session->row);
        s->cluster.free_version = free_version; /* nothing has become free */
    }
    return r;
}

/* ---- coming back ---- */

static bool reservation_matches(const struct sched *s, const struct reservation *r,
                                const struct sched_entry *e)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t q = 0; q < r->count; q++)
        if (q >= e->req_count || e->reqs[q] != r->reqs[q]
            || c->nodes[r->holds[q].node].free[c->columns] == SCHED_ABSENT)
            return false;
    return r->count == e->req_count && gang_is_connected(s, e, r->holds);
}

bool reservation_start(struct sched *s, struct sched_entry *e)
{
    struct reservation *r = reservation_find(s, e->row);

    if (!r)
        return false;
    if (!reservation_matches(s, r, e)) {
        reservation_release(s, e->row);
        return false;
    }
    memcpy(e->holds, r->holds, r->count * sizeof(*e->holds));
    reservation_remove(s, r);
    return true;
}
