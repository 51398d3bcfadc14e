/* reserve.c - places set aside for sessions that do not wait (yet)
 *
 * Whoever is moved has its new place before it is stopped, and takes it, ahead
 * of the queue, when it waits again. After a restart of the owner the same is
 * said again by name of agent, and of the sessions that others made room for,
 * too: a place may then be made of what those leave that are about to go.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sched/hunt.h"

struct reserved *state_find_reserved(struct sched *s, int64_t row)
{
    for (size_t i = 0; i < s->reserved_count; i++)
        if (s->reserved[i].row == row)
            return &s->reserved[i];
    return NULL;
}

/* ---- records ---- */

struct reserved *state_reserve(struct sched *s, int64_t row, int64_t lifetime_usec,
                               struct request *const *reqs, uint32_t count)
{
    struct reserved *to;

    if (!vec_grow(&s->reserved, &s->reserved_cap, s->reserved_count + 1, sizeof(*s->reserved)))
        return NULL;
    to = &s->reserved[s->reserved_count];
    *to = (struct reserved){ .row = row, .lifetime_usec = lifetime_usec,
        .reqs = calloc(count, sizeof(*to->reqs)), .holds = calloc(count, sizeof(*to->holds)) };
    if (!to->reqs || !to->holds) {
        free(to->reqs);
        free(to->holds);
        return NULL;
    }
    for (uint32_t q = 0; q < count; q++) {
        to->reqs[q] = reqs[q];
        to->reqs[q]->users++;
        to->holds[q].node = CLUSTER_NONE;
    }
    to->count = count;
    s->reserved_count++;
    return to;
}

/* The record alone; its places are somebody else's now, or nobody's. */
static void forget(struct sched *s, struct reserved *r)
{
    for (uint32_t q = 0; q < r->count; q++)
        cluster_request_release(&s->cluster, r->reqs[q]);
    free(r->reqs);
    free(r->holds);
    *r = s->reserved[--s->reserved_count];
}

int state_unreserve(struct sched *s, int64_t row)
{
    struct reserved *r = state_find_reserved(s, row);

    for (uint32_t q = 0; r && q < r->count; q++) {
        struct hold *h = &r->holds[q];

        if (h->node == CLUSTER_NONE)
            continue;
        if (cluster_release(&s->cluster, h->node, r->reqs[q], h->parts, h->part_count) < 0)
            return -ENOMEM;
        free(h->parts);
        *h = (struct hold){ .node = CLUSTER_NONE };
    }
    if (r)
        forget(s, r);
    return 0;
}

int sched_unreserve(struct sched *s, int64_t row)
{
    return state_unreserve(s, row);
}

/* ---- by name ---- */

/* All of them, as if those had gone that are about to. 0, -ENOENT, -ENOMEM. */
static int hold_named(struct sched *s, struct reserved *to, const char *const *agent_ids)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct hunt h = { .s = s, .arena = &arena, .may_go = hunt_spares };
    int r = hunt_init(&h);

    for (uint32_t q = 0; q < to->count && r == 0; q++) {
        uint32_t node = cluster_find_agent(&s->cluster, agent_ids[q]);

        if (node == CLUSTER_NONE || !cluster_matches(&s->cluster, to->reqs[q], node))
            return -ENOENT;
        hunt_begin(&h, node);
        hunt_forget_claimed(&h, node);
        r = hunt_fits(&h, node, to->reqs[q])
                ? hunt_hold(&h, to->reqs[q], node, &to->holds[q])
                : -ENOENT;
    }
    return r;
}

int sched_reserve(struct sched *s, const struct sched_session *session,
                  const char *const *agent_ids)
{
    uint64_t grown = s->cluster.grown;
    struct request **reqs;
    struct reserved *to;
    uint32_t count;
    int r;

    if (state_find_reserved(s, session->row))
        return -EEXIST;
    if ((r = state_requests(s, session, &reqs, &count)) < 0)
        return r;
    to = state_reserve(s, session->row, session->lifetime_usec, reqs, count);
    for (uint32_t q = 0; q < count; q++)
        cluster_request_release(&s->cluster, reqs[q]);
    free(reqs);
    if (!to)
        return -ENOMEM;
    if ((r = hold_named(s, to, agent_ids)) < 0 && state_unreserve(s, session->row) < 0)
        return -ENOMEM;
    if (r < 0)
        s->cluster.grown = grown; /* nothing has become free */
    return r;
}

/* ---- coming back ---- */

static bool is_for(const struct sched *s, const struct reserved *r, const struct entry *e)
{
    const struct cluster *c = &s->cluster;

    for (uint32_t q = 0; q < r->count; q++)
        if (q >= e->req_count || e->reqs[q] != r->reqs[q] ||
            c->nodes[r->holds[q].node].free[c->columns] == SCHED_ABSENT)
            return false;
    return r->count == e->req_count;
}

int reserve_start(struct sched *s, struct entry *e)
{
    struct reserved *r = state_find_reserved(s, e->row);

    if (!r)
        return 0;
    if (!is_for(s, r, e))
        return state_unreserve(s, e->row);
    memcpy(e->holds, r->holds, r->count * sizeof(*e->holds));
    forget(s, r);
    return 1;
}
