/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c - conservative backfill: the earliest start of each session that waits
 *
 * Each agent has an availability timeline (availability.c). Sessions that run end when their
 * lifetime is over; one that is overdue is expected to take as long again as it is late. The end
 * of one without a lifetime is not known: what it holds never becomes free in a timeline.
 * Sessions that wait are put into the timelines in order, each at its earliest
 * time, so none is delayed by one behind it (conservative backfill); one whose start depends on
 * an end that is not known has no time and delays nobody (but see claim.c). Times are
 * as good as the lifetimes; every pass starts from what really is free.
 *
 * Bookings take their amounts out of the timelines from their start until their end. Once they
 * have begun they hold them, and the nodes of their parts have timelines of their own, in which
 * their sessions end with them at the latest (booked.c).
 *
 * A timeline only ever loses capacity, so the earliest start of a request on an agent
 * never becomes earlier while its timeline is unchanged: that is cached per
 * request and lifetime.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sched/forecast_internal.h"
#include "sched/gang.h"

#define LEAVING_USEC USEC_PER_SEC /* a victim is expected to need this long to end */

/* The earliest times of one (request, lifetime) on each agent. */
struct earliest_starts {
    const struct slot_request *req;
    int64_t lifetime_usec;
    int64_t *earliest;  /* not earlier, whatever the timeline has become */
    uint32_t *versions; /* of the timeline when it was exact; 0 = never */
    struct earliest_starts *next;
};

/* How long one with this lifetime stays, once it has started; INT64_MAX = not known. */
static int64_t forecast_duration(int64_t lifetime_usec)
{
    return lifetime_usec > 0 ? lifetime_usec : INT64_MAX;
}

int64_t forecast_expected_end(const struct forecast *p, const struct sched_entry *e)
{
    int64_t end = forecast_time_add(e->started_usec, forecast_duration(e->lifetime_usec));

    end = AQ_MIN(end, booked_end(p->s, e));
    if (end == INT64_MAX && p->assumes_ends)
        return forecast_time_add(p->now_usec, AQ_MAX(p->now_usec - e->started_usec, USEC_PER_SEC));

    return end > p->now_usec ? end
                             : forecast_time_add(p->now_usec, p->now_usec - end + USEC_PER_SEC);
}

/* ---- a new forecast ---- */

/* What holds these places now gives them back at 'end'. */
static void forecast_add_ends(struct forecast *p, struct slot_request *const *reqs,
                              const struct hold *holds, uint32_t count, int64_t end)
{
    for (uint32_t q = 0; q < count && end != INT64_MAX; q++)
        if (holds[q].node != CLUSTER_NONE)
            availability_add(p, holds[q].node, reqs[q], holds[q].parts, holds[q].part_count, end,
                             INT64_MAX, 1);
}

/* What bookings will keep, and what those that have begun give back. */
static void forecast_add_bookings(struct forecast *p)
{
    for (size_t i = 0; i < p->s->booking_count; i++) {
        const struct booked *b = &p->s->bookings[i];

        for (uint32_t k = 0; !b->is_over && k < b->place_count; k++) {
            const struct booked_place *at = &b->places[k];

            if (at->node == CLUSTER_NONE)
                continue;
            if (!b->is_active)
                availability_add(p, at->node, &b->amounts, at->parts, at->part_count,
                                 b->starts_usec, b->ends_usec, -1);
            else if (at->part != CLUSTER_NONE)
                availability_add(p, at->node, &b->amounts, at->parts, at->part_count, b->ends_usec,
                                 INT64_MAX, 1);
        }
    }
}

struct forecast *forecast_new(struct sched *s, int64_t now_usec, bool assumes_ends,
                              struct arena *arena)
{
    struct forecast *p = arena_alloc(arena, sizeof(*p));

    *p = (struct forecast){
        .s = s, .arena = arena, .now_usec = now_usec, .assumes_ends = assumes_ends
    };
    availability_init(p);
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];
        bool is_terminating = e->status == ENTRY_PLACED && e->is_victim;

        if (e->status == ENTRY_PLACED || e->status == ENTRY_PREEMPTING)
            forecast_add_ends(p, e->reqs, e->holds, e->req_count,
                              is_terminating ? forecast_time_add(now_usec, LEAVING_USEC)
                                             : forecast_expected_end(p, e));
    }
    for (size_t i = 0; i < s->reservation_count; i++) {
        const struct reservation *r = &s->reservations[i];

        forecast_add_ends(p, r->reqs, r->holds, r->count,
                          forecast_time_add(now_usec, forecast_duration(r->lifetime_usec)));
    }
    forecast_add_bookings(p);
    return p;
}

/* ---- over all agents ---- */

/* Remembered only for what several sessions ask for; NULL if it is not. */
static struct earliest_starts *forecast_find_earliest(struct forecast *p,
                                                      const struct slot_request *req,
                                                      int64_t lifetime)
{
    size_t bucket = (req->id * UINT64_C(31) + (uint64_t)lifetime / USEC_PER_SEC) % EARLIEST_BUCKETS;
    size_t count = p->s->cluster.node_count;
    struct earliest_starts *t;

    if (req->users < 2)
        return NULL;
    for (t = p->earliest[bucket]; t; t = t->next)
        if (t->req == req && t->lifetime_usec == lifetime)
            return t;
    t = arena_alloc(p->arena, sizeof(*t));
    t->earliest = arena_array(p->arena, count, sizeof(*t->earliest));
    t->versions = arena_array(p->arena, count, sizeof(*t->versions));
    t->req = req;
    t->lifetime_usec = lifetime;
    t->next = p->earliest[bucket];
    p->earliest[bucket] = t;
    return t;
}

/* When on 'node', if before 'limit'; else a time not before that. */
static int64_t forecast_earliest_on(struct forecast *p, uint32_t node,
                                    const struct slot_request *req, int64_t lifetime, int64_t from,
                                    int64_t limit, struct earliest_starts *t)
{
    int64_t at;

    if (t && t->versions[node] == p->timelines[node].version)
        return t->earliest[node];
    at = availability_earliest(p, node, req, lifetime, t ? AQ_MAX(from, t->earliest[node]) : from,
                               limit);
    if (t) {
        t->earliest[node] = AQ_MIN(at, limit);
        t->versions[node] = at < limit || limit == INT64_MAX ? p->timelines[node].version : 0;
    }
    return at;
}

/* The agent with the earliest time, of several the first by id. */
static uint32_t forecast_earliest_node(struct forecast *p, const struct slot_request *req,
                                       const struct placement_constraints *constraints,
                                       int64_t lifetime, int64_t from, bool is_alone,
                                       int64_t *ret_usec)
{
    /* what is found beside other parts of the same session is not to be remembered */
    struct earliest_starts *t = is_alone && from == p->now_usec
                                    ? forecast_find_earliest(p, req, lifetime)
                                    : NULL;
    uint32_t best = CLUSTER_NONE;

    *ret_usec = INT64_MAX;
    for (uint32_t i = 0; i<p->node_count && * ret_usec> from; i++) {
        uint32_t n = p->by_id[i];
        int64_t at, rank;

        if ((t && t->earliest[n] >= *ret_usec) || !cluster_matches(&p->s->cluster, req, n)
            || (constraints && !placement_allows(constraints, n, &rank)))
            continue;
        at = forecast_earliest_on(p, n, req, lifetime, from, *ret_usec, t);
        if (at < *ret_usec) {
            *ret_usec = at;
            best = n;
        }
    }
    return best;
}

/* ---- a session ---- */

void forecast_mark_promised(struct forecast *p, uint32_t node, const struct sched_entry *e)
{
    if (p->promised[node] == NO_HANDLE)
        p->promised[node] = (uint32_t)(e - p->s->entries);
}

uint32_t forecast_find_promised(struct forecast *p, const struct sched_entry *e)
{
    struct cluster *c = &p->s->cluster;
    const struct placement_constraints *constraints = entry_constraints(p->s, e, p->arena);

    for (uint32_t q = 0; q < e->req_count; q++)
        for (uint32_t i = 0; i < p->node_count; i++) {
            uint32_t n = p->by_id[i];
            int64_t rank;

            if (p->promised[n] == NO_HANDLE || !cluster_matches(c, e->reqs[q], n)
                || (constraints && !placement_allows(constraints, n, &rank)))
                continue;
            if (cluster_fit(c, e->reqs[q], c->nodes[n].state, &p->s->options.selector)->has_room)
                return p->promised[n];
        }
    return NO_HANDLE;
}

/* Out of the timelines again. */
static void forecast_unreserve(struct forecast *p, struct sched_entry *e, uint32_t count,
                               int64_t at)
{
    for (uint32_t q = 0; q < count; q++) {
        struct hold *h = &e->holds[q];

        if (at != INT64_MAX)
            availability_add(p, h->node, e->reqs[q], h->parts, h->part_count, at,
                             forecast_time_add(at, forecast_duration(e->lifetime_usec)), 1);
        free(h->parts);
        *h = (struct hold){ .node = CLUSTER_NONE };
    }
}

static bool forecast_fits_at(struct forecast *p, const struct slot_request *req, uint32_t node,
                             int64_t at, int64_t stay)
{
    return availability_earliest(p, node, req, stay, at, forecast_time_add(at, 1)) != INT64_MAX;
}

uint32_t forecast_select_node(struct forecast *p, const struct sched_entry *e, uint32_t q,
                              const struct placement_constraints *constraints, bool *ret_full)
{
    struct cluster *c = &p->s->cluster;
    const struct selector *selector = &p->s->options.selector;
    struct slot_request *req = e->reqs[q];
    uint32_t best = CLUSTER_NONE;
    int64_t best_rank = 0, stay = forecast_duration(e->lifetime_usec);

    *ret_full = true;
    for (uint32_t i = 0; i < p->node_count; i++) {
        uint32_t n = p->by_id[i];
        const struct fit *fit;
        int64_t rank = 0;
        int order;

        if (!cluster_matches(c, req, n)
            || (constraints && !placement_allows(constraints, n, &rank)))
            continue;
        fit = cluster_fit(c, req, c->nodes[n].state, selector);
        *ret_full = *ret_full && !fit->has_room;
        if (!fit->has_room
            || (p->timelines[n].may_fall && !forecast_fits_at(p, req, n, p->now_usec, stay)))
            continue;
        order = best == CLUSTER_NONE ? -1 : (rank > best_rank) - (rank < best_rank);
        if (order == 0)
            order = select_compare(c, req, selector, c->nodes[n].state, c->nodes[best].state);
        if (order < 0) {
            best = n;
            best_rank = rank;
        }
    }
    return best;
}

/* The first time after 'at' at which an agent has more or less free; INT64_MAX = never. Where what
 * was reserved has been given back, a step begins that changes nothing.
 */
static int64_t forecast_next_change(const struct forecast *p, int64_t at)
{
    int64_t next = INT64_MAX;

    for (uint32_t i = 0; i < p->node_count; i++) {
        const struct availability *l = &p->timelines[p->by_id[i]];
        size_t size = availability_step_size(p, p->by_id[i]) * sizeof(*l->steps->free);

        for (uint32_t k = 1; k < l->count && l->steps[k].from_usec < next; k++)
            if (l->steps[k].from_usec > at
                && memcmp(l->steps[k].free, l->steps[k - 1].free, size) != 0)
                next = l->steps[k].from_usec;
    }
    return next;
}

/* All fit at 'at' but requirement 'q', for which 'found' is the earliest time beside them. That may
 * be the end of the session's own other parts, which go along with it, however late it starts.
 */
static int64_t forecast_next_try(struct forecast *p, const struct sched_entry *e, uint32_t q,
                                 const struct placement_constraints *constraints, int64_t at,
                                 int64_t found)
{
    if (q > 0)
        (void)forecast_earliest_node(p, e->reqs[q], constraints,
                                     forecast_duration(e->lifetime_usec), at, false, &found);
    return found > at ? found : forecast_next_change(p, at);
}

/* All requirements of a session at a time. */
struct forecast_gang {
    struct forecast *p;
    struct sched_entry *e;
    int64_t at, stay;
    int64_t found; /* when the requirement that did not fit does */
    int64_t next;  /* when to try again */
};

static uint32_t forecast_hold_any(void *data, uint32_t q,
                                  const struct placement_constraints *constraints)
{
    struct forecast_gang *g = data;
    uint32_t node = forecast_earliest_node(g->p, g->e->reqs[q], constraints, g->stay, g->at,
                                           g->e->req_count == 1, &g->found);

    if (node == CLUSTER_NONE || g->found > g->at)
        return CLUSTER_NONE;
    availability_take(g->p, node, g->e->reqs[q], g->stay, g->at, -1, &g->e->holds[q]);
    return node;
}

static void forecast_undo_any(void *data, uint32_t q,
                              const struct placement_constraints *constraints)
{
    struct forecast_gang *g = data;
    int64_t next;

    forecast_unreserve(g->p, g->e, q, g->at);
    next = forecast_next_try(g->p, g->e, q, constraints, g->at, g->found);
    g->next = AQ_MIN(g->next, next);
}

static uint32_t forecast_count_room(void *data, struct slot_request *req, uint32_t node)
{
    const struct forecast_gang *g = data;

    return availability_count(g->p, node, req, g->at, forecast_time_add(g->at, g->stay));
}

/* The agent that ranks first, of several the first by id. */
static uint32_t forecast_hold_near(void *data, uint32_t q,
                                   const struct placement_constraints *constraints)
{
    struct forecast_gang *g = data;
    const struct cluster *c = &g->p->s->cluster;
    const struct slot_request *req = g->e->reqs[q];
    uint32_t best = CLUSTER_NONE;
    int64_t best_rank = INT64_MAX;

    for (uint32_t i = 0; i < g->p->node_count; i++) {
        uint32_t n = constraints->is_single ? constraints->single : g->p->by_id[i];
        int64_t rank;

        if (cluster_matches(c, req, n) && placement_allows(constraints, n, &rank)
            && rank < best_rank && forecast_fits_at(g->p, req, n, g->at, g->stay)) {
            best = n;
            best_rank = rank;
        }
        if (constraints->is_single)
            break;
    }
    if (best != CLUSTER_NONE)
        availability_take(g->p, best, req, g->stay, g->at, -1, &g->e->holds[q]);
    return best;
}

static void forecast_undo_near(void *data, uint32_t q,
                               const struct placement_constraints *constraints)
{
    struct forecast_gang *g = data;

    (void)constraints;
    forecast_unreserve(g->p, g->e, q, g->at);
}

/* All requirements at 'at', which is returned, or none: then when to try next. Whether they fit is
 * found out first: most times that are tried are not the one where they go near to each other.
 */
static int64_t forecast_reserve_all(struct forecast *p, struct sched_entry *e,
                                    const struct placement_constraints *constraints, int64_t at)
{
    static const struct gang_ops any = { NULL, forecast_hold_any, forecast_undo_any };
    static const struct gang_ops near = { forecast_count_room, forecast_hold_near,
                                          forecast_undo_near };
    struct forecast_gang g = {
        .p = p, .e = e, .at = at, .stay = forecast_duration(e->lifetime_usec), .next = INT64_MAX
    };

    if (!gang_place(p->s, e, constraints, &any, &g, p->arena))
        return g.next;
    if (e->req_count == 1)
        return at;
    forecast_unreserve(p, e, e->req_count, at);
    if (!gang_place(p->s, e, constraints, &near, &g, p->arena))
        (void)gang_place(p->s, e, constraints, &any, &g, p->arena);
    return at;
}

/* It starts now: hold for real what was reserved. */
static void forecast_hold_now(struct forecast *p, struct sched_entry *e)
{
    for (uint32_t q = 0; q < e->req_count; q++) {
        candidates_note(p->s, e, q, e->holds[q].node);
        cluster_hold_parts(&p->s->cluster, e->holds[q].node, e->reqs[q], e->holds[q].parts,
                           e->holds[q].part_count);
    }
}

/* It waits on; what was reserved stays in the timelines. */
static void forecast_leave_reserved(struct forecast *p, struct sched_entry *e)
{
    for (uint32_t q = 0; q < e->req_count; q++)
        if (e->holds[q].node != CLUSTER_NONE)
            forecast_mark_promised(p, e->holds[q].node, e);
    forecast_unreserve(p, e, e->req_count, INT64_MAX);
}

int64_t forecast_reserve_earliest(struct forecast *p, struct sched_entry *e, int64_t from_usec)
{
    const struct placement_constraints *constraints = entry_constraints(p->s, e, p->arena);
    int64_t at, next = from_usec;

    do {
        at = next;
        next = forecast_reserve_all(p, e, constraints, at);
    } while (next != at && next != INT64_MAX);
    if (next != INT64_MAX && next >= booked_end(p->s, e)) {
        forecast_unreserve(p, e, e->req_count, next);
        return INT64_MAX;
    }
    return next;
}

int64_t forecast_schedule(struct forecast *p, struct sched_entry *e, bool only_now)
{
    const struct cluster *c = &p->s->cluster;
    const struct placement_constraints *constraints = entry_constraints(p->s, e, p->arena);
    int64_t at = p->now_usec;
    uint32_t node = CLUSTER_NONE;
    bool is_full = false, is_selected = false;

    /* one that has not been told a time goes where the selector prefers */
    if (e->req_count == 1 && !e->reported_start_usec && !entry_is_put_off(p->s, e)
        && e->reqs[0]->no_room_version != c->free_version) {
        node = forecast_select_node(p, e, 0, constraints, &is_full);
        is_selected = true;
    }
    if (is_full && !constraints)
        e->reqs[0]->no_room_version = c->free_version;
    if (node != CLUSTER_NONE) {
        availability_take(p, node, e->reqs[0], forecast_duration(e->lifetime_usec), at,
                          e->reqs[0]->fits[c->nodes[node].state].device, &e->holds[0]);
        forecast_hold_now(p, e);
        return at;
    }
    if (only_now && is_selected)
        return INT64_MAX;
    if (only_now) {
        at = forecast_reserve_all(p, e, constraints, p->now_usec);
        at = at == p->now_usec ? at : INT64_MAX;
    } else {
        at = forecast_reserve_earliest(p, e, p->now_usec);
    }
    if (at <= p->now_usec)
        forecast_hold_now(p, e);
    else
        forecast_leave_reserved(p, e);
    return at;
}

int64_t forecast_estimate_start(struct forecast *p, struct sched_entry *e, int64_t from_usec)
{
    int64_t at = forecast_reserve_earliest(p, e, from_usec);

    forecast_leave_reserved(p, e);
    return at;
}

/* ---- preemption and migration ---- */

bool forecast_has_room(struct forecast *p, const struct sched_entry *e)
{
    bool is_full;

    for (uint32_t q = 0; q < e->req_count; q++)
        if ((q == 0 || e->reqs[q] != e->reqs[q - 1])
            && forecast_select_node(p, e, q, NULL, &is_full) == CLUSTER_NONE)
            return false;
    return true;
}

bool forecast_fits(struct forecast *p, const struct sched_entry *e, uint32_t q, uint32_t node)
{
    uint32_t last;

    return availability_fits(p, node, e->reqs[q], 0,
                             forecast_time_add(p->now_usec, forecast_duration(e->lifetime_usec)),
                             &last);
}

void forecast_hold(struct forecast *p, const struct sched_entry *e, uint32_t q, uint32_t node,
                   int32_t device, struct hold *ret)
{
    availability_take(p, node, e->reqs[q], forecast_duration(e->lifetime_usec), p->now_usec, device,
                      ret);
    cluster_hold_parts(&p->s->cluster, node, e->reqs[q], ret->parts, ret->part_count);
}

void forecast_change_holds(struct forecast *p, const struct sched_entry *e,
                           const struct hold *holds, int sign)
{
    int64_t end = forecast_time_add(p->now_usec, forecast_duration(e->lifetime_usec));

    for (uint32_t q = 0; q < e->req_count; q++)
        if (holds[q].node != CLUSTER_NONE)
            availability_add(p, holds[q].node, e->reqs[q], holds[q].parts, holds[q].part_count,
                             p->now_usec, end, sign);
}

void forecast_assume_gone_from(struct forecast *p, const struct sched_entry *e, uint32_t node,
                               int sign)
{
    int64_t end = forecast_expected_end(p, e);

    for (uint32_t q = 0; q < e->req_count; q++)
        if (e->holds[q].node == node || node == CLUSTER_NONE)
            availability_add(p, e->holds[q].node, e->reqs[q], e->holds[q].parts,
                             e->holds[q].part_count, p->now_usec, end, sign);
}

void forecast_assume_gone(struct forecast *p, const struct sched_entry *e, int sign)
{
    forecast_assume_gone_from(p, e, CLUSTER_NONE, sign);
}

bool forecast_may_stay(const struct forecast *p, const struct sched_entry *e)
{
    size_t width = p->s->cluster.width;
    int64_t from = forecast_time_add(p->now_usec, LEAVING_USEC);
    int64_t end = forecast_time_add(p->now_usec, forecast_duration(e->lifetime_usec));

    for (uint32_t q = 0; q < e->req_count; q++) {
        const struct hold *h = &e->holds[q];
        const struct availability *l = &p->timelines[h->node];

        for (uint32_t i = availability_find_step(l, from);
             i < l->count && l->steps[i].from_usec < end; i++) {
            const int64_t *free = l->steps[i].free;

            for (size_t column = 0; column < width; column++)
                if (e->reqs[q]->amounts[column] > 0 && free[column] < 0)
                    return false;
            for (uint32_t k = 0; k < h->part_count; k++)
                if (free[width + h->parts[k].device] < 0)
                    return false;
        }
    }
    return true;
}

bool forecast_fits_later(struct forecast *p, const struct sched_entry *e,
                         const struct slot_request *req, uint32_t node)
{
    int64_t from = forecast_time_add(p->now_usec, LEAVING_USEC);
    uint32_t last;

    return availability_fits(p, node, req, availability_find_step(&p->timelines[node], from),
                             forecast_time_add(p->now_usec, forecast_duration(e->lifetime_usec)),
                             &last);
}

void forecast_hold_later(struct forecast *p, const struct sched_entry *e, uint32_t q, uint32_t node,
                         struct hold *ret)
{
    int64_t end = forecast_time_add(p->now_usec, forecast_duration(e->lifetime_usec));

    availability_choose(p, node, e->reqs[q], forecast_time_add(p->now_usec, LEAVING_USEC), end, -1,
                        ret);
    availability_add(p, node, e->reqs[q], ret->parts, ret->part_count, p->now_usec, end, -1);
    cluster_hold_parts(&p->s->cluster, node, e->reqs[q], ret->parts, ret->part_count);
}

void forecast_mark_terminating(struct forecast *p, const struct sched_entry *e)
{
    int64_t end = AQ_MIN(forecast_expected_end(p, e), forecast_time_add(p->now_usec, LEAVING_USEC));

    for (uint32_t q = 0; q < e->req_count; q++)
        availability_add(p, e->holds[q].node, e->reqs[q], e->holds[q].parts, e->holds[q].part_count,
                         p->now_usec, end, -1);
    memset(p->earliest, 0, sizeof(p->earliest)); /* there is more room than before */
}
