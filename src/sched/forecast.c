/* forecast.c - backfill: what every agent will have free, and when
 *
 * Each agent has a line of steps: from a time on, until the next step, it has
 * these amounts and devices free. Sessions that run end when their lifetime
 * is over; who is overdue is expected to take as long again as it is late.
 * Sessions that wait are put into the lines in order, each at its earliest
 * time, so none is moved by one behind it (conservative backfill). Times are
 * as good as the lifetimes; every pass plans anew from what really is.
 *
 * A line only ever loses room, so the earliest time of a request on an agent
 * never becomes earlier while its line is unchanged: that is remembered per
 * request and lifetime.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "sched/state_private.h"

#define LIFETIME_DEFAULT_USEC (24 * 3600 * USEC_PER_SEC)

struct step {
    int64_t from_usec;
    int64_t *free;          /* width amounts, then what each device has free */
};

struct line {
    struct step *steps;
    uint32_t count, cap;
    uint32_t version;       /* changes of the line; from 1 */
};

/* The earliest times of one (request, lifetime) on each agent. */
struct times {
    const struct request *req;
    int64_t lifetime_usec;
    int64_t *earliest;      /* not earlier, whatever the line has become */
    uint32_t *versions;     /* of the line when it was exact; 0 = never */
    struct times *next;
};

#define TIMES_BUCKETS 1024

struct forecast {
    struct sched *s;
    struct arena *arena;
    int64_t now_usec;
    bool is_plan;           /* nothing starts: unknown lifetimes have no end, nothing is held */
    struct line *lines;     /* per node */
    uint32_t *by_id;        /* nodes */
    uint32_t node_count;
    struct times *times[TIMES_BUCKETS];
    int64_t *least;         /* scratch: one step's amounts */
    struct device *devices; /* scratch */
    struct part *parts;
};

/* ---- lines ---- */

static size_t step_size(const struct forecast *p, uint32_t node)
{
    return p->s->cluster.width + p->s->cluster.nodes[node].device_count;
}

static bool line_reserve(struct forecast *p, struct line *l, uint32_t need)
{
    uint32_t cap = AQ_MAX(l->cap * 2, 4u);
    struct step *grown;

    if (need <= l->cap)
        return true;
    cap = AQ_MAX(cap, need);
    if (!(grown = arena_array(p->arena, cap, sizeof(*grown))))
        return false;
    if (l->count)
        memcpy(grown, l->steps, l->count * sizeof(*grown));
    l->steps = grown;
    l->cap = cap;
    return true;
}

/* The step that begins at 'usec', split off the one before; NULL without memory. */
static struct step *step_at(struct forecast *p, uint32_t node, int64_t usec, uint32_t *ret)
{
    struct line *l = &p->lines[node];
    uint32_t at = l->count;
    int64_t *free;

    while (at > 0 && l->steps[at - 1].from_usec >= usec)
        at--;
    *ret = at;
    if (at < l->count && l->steps[at].from_usec == usec)
        return &l->steps[at];
    free = arena_array(p->arena, step_size(p, node), sizeof(*free));
    if (!free || !line_reserve(p, l, l->count + 1))
        return NULL;
    memcpy(free, l->steps[at - 1].free, step_size(p, node) * sizeof(*free));
    memmove(&l->steps[at + 1], &l->steps[at], (l->count - at) * sizeof(*l->steps));
    l->steps[at] = (struct step){ usec, free };
    l->count++;
    return &l->steps[at];
}

static void add_to_step(const struct forecast *p, struct step *step, const struct request *req,
                        const struct part *parts, uint32_t part_count, int sign)
{
    const struct cluster *c = &p->s->cluster;

    for (size_t i = 0; i < c->width; i++)
        if (step->free[i] != SCHED_ABSENT && step->free[i] != AMOUNT_INFINITE)
            step->free[i] += sign * req->amounts[i];
    for (uint32_t i = 0; i < part_count; i++)
        step->free[c->width + parts[i].device] += sign * parts[i].amount;
}

/* Add (1) or take (-1) during [from, to). */
static int add_to_line(struct forecast *p, uint32_t node, const struct request *req,
                       const struct part *parts, uint32_t part_count, int64_t from, int64_t to,
                       int sign)
{
    struct line *l = &p->lines[node];
    uint32_t first, last = 0;

    if (!step_at(p, node, from, &first))
        return -ENOMEM;
    if (to != INT64_MAX && !step_at(p, node, to, &last))
        return -ENOMEM;
    if (to == INT64_MAX)
        last = l->count;
    for (uint32_t i = first; i < last; i++)
        add_to_step(p, &l->steps[i], req, parts, part_count, sign);
    l->version++;
    return 0;
}

static int64_t lifetime_of(const struct forecast *p, const struct entry *e)
{
    if (e->lifetime_usec > 0)
        return e->lifetime_usec;
    if (p->is_plan)
        return INT64_MAX;
    return p->s->options.lifetime_usec > 0 ? p->s->options.lifetime_usec : LIFETIME_DEFAULT_USEC;
}

static int64_t add_time(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static int64_t expected_end(const struct forecast *p, const struct entry *e)
{
    int64_t end = add_time(e->started_usec, lifetime_of(p, e));

    return end > p->now_usec ? end : add_time(p->now_usec, p->now_usec - end + USEC_PER_SEC);
}

/* ---- a new forecast ---- */

static int compare_ids(const void *a, const void *b, void *data)
{
    const struct cluster *c = data;

    return strcmp(c->nodes[*(const uint32_t *)a].id, c->nodes[*(const uint32_t *)b].id);
}

static int begin_lines(struct forecast *p)
{
    struct cluster *c = &p->s->cluster;
    size_t devices_max = 0;

    p->lines = arena_array(p->arena, c->node_count + 1, sizeof(*p->lines));
    p->by_id = arena_array(p->arena, c->node_count + 1, sizeof(*p->by_id));
    if (!p->lines || !p->by_id)
        return -ENOMEM;
    for (uint32_t n = 0; n < c->node_count; n++) {
        const struct node *node = &c->nodes[n];
        int64_t *free;

        if (!node->id)
            continue;
        free = arena_array(p->arena, step_size(p, n), sizeof(*free));
        if (!free || !line_reserve(p, &p->lines[n], 1))
            return -ENOMEM;
        memcpy(free, node->free, c->width * sizeof(*free));
        for (uint32_t d = 0; d < node->device_count; d++)
            free[c->width + d] = node->devices[d].free;
        p->lines[n].steps[0] = (struct step){ p->now_usec, free };
        p->lines[n].count = p->lines[n].version = 1;
        devices_max = AQ_MAX(devices_max, (size_t)node->device_count);
        p->by_id[p->node_count++] = n;
    }
    qsort_r(p->by_id, p->node_count, sizeof(*p->by_id), compare_ids, c);
    p->least = arena_array(p->arena, c->width + devices_max, sizeof(*p->least));
    p->devices = arena_array(p->arena, devices_max + 1, sizeof(*p->devices));
    p->parts = arena_array(p->arena, devices_max + 1, sizeof(*p->parts));
    return p->least && p->devices && p->parts ? 0 : -ENOMEM;
}

struct forecast *forecast_new(struct sched *s, int64_t now_usec, bool is_plan,
                              struct arena *arena)
{
    struct forecast *p = arena_alloc(arena, sizeof(*p));

    if (!p)
        return NULL;
    *p = (struct forecast){ .s = s, .arena = arena, .now_usec = now_usec,
        .is_plan = is_plan };
    if (begin_lines(p) < 0)
        return NULL;
    for (size_t i = 0; i < s->entry_count; i++) {
        const struct entry *e = &s->entries[i];

        for (uint32_t q = 0; e->status == ENTRY_PLACED && q < e->req_count; q++) {
            const struct hold *h = &e->holds[q];
            int64_t end = expected_end(p, e);

            if (h->node != CLUSTER_NONE && end != INT64_MAX &&
                add_to_line(p, h->node, e->reqs[q], h->parts, h->part_count, end, INT64_MAX, 1) < 0)
                return NULL;
        }
    }
    return p;
}

/* ---- the earliest time on one agent ---- */

static bool amounts_fit(const struct cluster *c, const struct request *req, const int64_t *free)
{
    for (size_t i = 0; i < c->width; i++)
        if (req->amounts[i] > 0 && free[i] < req->amounts[i])
            return false;
    return true;
}

/* The devices of a node with what is free in 'p->least', grouped by column. */
static void list_devices(struct forecast *p, uint32_t node)
{
    const struct node *n = &p->s->cluster.nodes[node];
    bool is_grouped = true;

    for (uint32_t d = 0; d < n->device_count; d++) {
        p->devices[d] = n->devices[d];
        p->devices[d].free = p->least[p->s->cluster.width + d];
        p->devices[d].unused = d; /* its place in the agent's order */
        is_grouped = is_grouped && (d == 0 || n->devices[d].column >= n->devices[d - 1].column);
    }
    if (!is_grouped)
        sort_devices(p->devices, n->device_count);
}

/* Can 'req' be there from step 'first' until 'to'? The same devices all the
 * time, so what counts is the least of each; it is left in p->devices. If not,
 * *ret_last is a step before whose end it cannot begin.
 */
static bool fits_during(struct forecast *p, uint32_t node, const struct request *req,
                        uint32_t first, int64_t to, uint32_t *ret_last)
{
    const struct cluster *c = &p->s->cluster;
    const struct line *l = &p->lines[node];
    size_t size = step_size(p, node);

    *ret_last = first;
    if (!amounts_fit(c, req, l->steps[first].free))
        return false;
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        if (!amounts_fit(c, req, l->steps[i].free)) {
            *ret_last = i;
            return false;
        }
    memcpy(p->least, l->steps[first].free, size * sizeof(*p->least));
    for (uint32_t i = first + 1; i < l->count && l->steps[i].from_usec < to; i++)
        for (size_t k = c->width; k < size; k++)
            p->least[k] = AQ_MIN(p->least[k], l->steps[i].free[k]);
    list_devices(p, node);
    return row_has_room(c, req, p->least, p->devices, c->nodes[node].device_count);
}

/* Not before 'from'; INT64_MAX if never, or not before 'until'. */
static int64_t earliest_on(struct forecast *p, uint32_t node, const struct request *req,
                           int64_t lifetime, int64_t from, int64_t until)
{
    const struct line *l = &p->lines[node];
    uint32_t last = 0;

    for (uint32_t i = 0; i < l->count; i = last + 1) {
        int64_t start = AQ_MAX(from, l->steps[i].from_usec);

        last = i;
        if (start >= until)
            return INT64_MAX;
        if (i + 1 < l->count && l->steps[i + 1].from_usec <= from)
            continue;
        if (fits_during(p, node, req, i, add_time(start, lifetime), &last))
            return start;
    }
    return INT64_MAX;
}

/* ---- over all agents ---- */

/* Remembered only for what several sessions ask for; NULL if it is not. */
static struct times *find_times(struct forecast *p, const struct request *req, int64_t lifetime)
{
    size_t bucket = (req->id * UINT64_C(31) + (uint64_t)lifetime / USEC_PER_SEC) % TIMES_BUCKETS;
    size_t count = p->s->cluster.node_count;
    struct times *t;

    if (req->users < 2)
        return NULL;
    for (t = p->times[bucket]; t; t = t->next)
        if (t->req == req && t->lifetime_usec == lifetime)
            return t;
    if (!(t = arena_alloc(p->arena, sizeof(*t))))
        return NULL;
    t->earliest = arena_array(p->arena, count, sizeof(*t->earliest));
    t->versions = arena_array(p->arena, count, sizeof(*t->versions));
    if (!t->earliest || !t->versions)
        return NULL;
    t->req = req;
    t->lifetime_usec = lifetime;
    t->next = p->times[bucket];
    p->times[bucket] = t;
    return t;
}

/* When on 'node', if before 'limit'; else a time not before that. */
static int64_t time_on(struct forecast *p, uint32_t node, const struct request *req,
                       int64_t lifetime, int64_t from, int64_t limit, struct times *t)
{
    int64_t at;

    if (t && t->versions[node] == p->lines[node].version)
        return t->earliest[node];
    at = earliest_on(p, node, req, lifetime, t ? AQ_MAX(from, t->earliest[node]) : from, limit);
    if (t) {
        t->earliest[node] = AQ_MIN(at, limit);
        t->versions[node] = at < limit || limit == INT64_MAX ? p->lines[node].version : 0;
    }
    return at;
}

/* The agent with the earliest time, of several the first by id. */
static uint32_t earliest_node(struct forecast *p, const struct request *req,
                              const struct wish *wish, int64_t lifetime, int64_t from,
                              bool is_alone, int64_t *ret_usec)
{
    /* what is found beside other parts of the same session is not to be remembered */
    struct times *t = is_alone && from == p->now_usec ? find_times(p, req, lifetime) : NULL;
    uint32_t best = CLUSTER_NONE;

    *ret_usec = INT64_MAX;
    for (uint32_t i = 0; i < p->node_count && *ret_usec > from; i++) {
        uint32_t n = p->by_id[i];
        int64_t at, rank;

        if ((t && t->earliest[n] >= *ret_usec) || !cluster_matches(&p->s->cluster, req, n) ||
            (wish && !wish_allows(wish, n, &rank)))
            continue;
        at = time_on(p, n, req, lifetime, from, *ret_usec, t);
        if (at < *ret_usec) {
            *ret_usec = at;
            best = n;
        }
    }
    return best;
}

/* ---- a session ---- */

/* Of p->devices the one that is as the state's 'device' now, -1 for none. */
static int32_t find_device(const struct forecast *p, uint32_t node, int32_t device)
{
    const struct node *n = &p->s->cluster.nodes[node];
    const struct device *wanted = &p->s->cluster.states[n->state].devices[device < 0 ? 0 : device];

    for (uint32_t d = 0; device >= 0 && d < n->device_count; d++)
        if (memcmp(&n->devices[p->devices[d].unused], wanted, sizeof(*wanted)) == 0)
            return (int32_t)d;
    return -1;
}

/* Reserve requirement 'q' on 'node' from 'at' on; its parts go into its hold.
 * 'device' is the state's that a single part would best be of, if it is still
 * free as long as that; -1 = any.
 */
static int reserve(struct forecast *p, struct entry *e, uint32_t q, uint32_t node, int64_t at,
                   int32_t device)
{
    const struct request *req = e->reqs[q];
    int64_t end = add_time(at, lifetime_of(p, e));
    struct hold *h = &e->holds[q];
    uint32_t step = 0, last;
    int count;

    while (step + 1 < p->lines[node].count && p->lines[node].steps[step + 1].from_usec <= at)
        step++;
    (void)fits_during(p, node, req, step, end, &last);
    device = find_device(p, node, device);
    if (device >= 0 && p->devices[device].free < req->amounts[p->devices[device].column])
        device = -1;
    count = state_choose_devices(&p->s->cluster, req, p->devices,
                                 p->s->cluster.nodes[node].device_count, device, p->parts);
    count = AQ_MAX(count, 0);
    if (!(h->parts = calloc((size_t)count + 1, sizeof(*h->parts))))
        return -ENOMEM;
    for (int i = 0; i < count; i++)
        h->parts[i] = (struct part){ p->devices[p->parts[i].device].unused, p->parts[i].amount };
    h->part_count = (uint32_t)count;
    h->node = node;
    return add_to_line(p, node, req, h->parts, h->part_count, at, end, -1);
}

/* Out of the lines again. */
static int unreserve(struct forecast *p, struct entry *e, uint32_t count, int64_t at)
{
    int r = 0;

    for (uint32_t q = 0; q < count; q++) {
        struct hold *h = &e->holds[q];

        if (r == 0 && at != INT64_MAX)
            r = add_to_line(p, h->node, e->reqs[q], h->parts, h->part_count, at,
                            add_time(at, lifetime_of(p, e)), 1);
        free(h->parts);
        *h = (struct hold){ .node = CLUSTER_NONE };
    }
    return r;
}

/* Of the agents on which it can start now and stay, the one that the selector
 * prefers: for a session that nobody was planned around. 0, or -ENOMEM.
 */
static int preferred_node(struct forecast *p, struct entry *e, const struct wish *wish,
                          uint32_t *ret)
{
    struct cluster *c = &p->s->cluster;
    const struct selector *selector = &p->s->options.selector;
    int64_t best_rank = 0;
    bool is_full = true;

    for (uint32_t i = 0; i < p->node_count; i++) {
        uint32_t n = p->by_id[i];
        const struct fit *fit;
        int64_t rank = 0;
        int order;

        if (!cluster_matches(c, e->reqs[0], n) || (wish && !wish_allows(wish, n, &rank)))
            continue;
        if (!(fit = cluster_fit(c, e->reqs[0], c->nodes[n].state, selector)))
            return -ENOMEM;
        is_full = is_full && !fit->has_room;
        if (!fit->has_room || earliest_on(p, n, e->reqs[0], lifetime_of(p, e), p->now_usec,
                                          add_time(p->now_usec, 1)) == INT64_MAX)
            continue;
        order = *ret == CLUSTER_NONE ? -1 : (rank > best_rank) - (rank < best_rank);
        if (order == 0)
            order = select_compare(c, e->reqs[0], selector, c->nodes[n].state, c->nodes[*ret].state);
        if (order < 0) {
            *ret = n;
            best_rank = rank;
        }
    }
    if (is_full && !wish)
        e->reqs[0]->full_at = c->grown;
    return 0;
}

/* All requirements at 'at', or none: then *ret is when to try next. */
static int reserve_all(struct forecast *p, struct entry *e, const struct wish *wish, int64_t at,
                       int64_t *ret)
{
    for (uint32_t q = 0; q < e->req_count; q++) {
        int64_t found;
        uint32_t node = earliest_node(p, e->reqs[q], wish, lifetime_of(p, e), at,
                                      e->req_count == 1, &found);

        if (node == CLUSTER_NONE || found > at) {
            *ret = found;
            return unreserve(p, e, q, at) < 0 ? -ENOMEM : 0;
        }
        if (reserve(p, e, q, node, at, -1) < 0)
            return -ENOMEM;
    }
    *ret = at;
    return 0;
}

/* It starts now: hold for real what was reserved. */
static int hold_now(struct forecast *p, struct entry *e)
{
    for (uint32_t q = 0; q < e->req_count; q++)
        if (choice_note(p->s, e, q, e->holds[q].node) < 0 ||
            cluster_hold_parts(&p->s->cluster, e->holds[q].node, e->reqs[q], e->holds[q].parts,
                               e->holds[q].part_count) < 0) {
            while (q-- > 0)
                (void)cluster_release(&p->s->cluster, e->holds[q].node, e->reqs[q],
                                      e->holds[q].parts, e->holds[q].part_count);
            return -ENOMEM;
        }
    return 0;
}

int forecast_entry(struct forecast *p, struct entry *e, bool only_now, int64_t *ret_usec)
{
    const struct cluster *c = &p->s->cluster;
    int r;
    const struct wish *wish = entry_wish(p->s, e, p->arena, &r);
    int64_t at = p->now_usec, next = at;
    uint32_t node = CLUSTER_NONE;

    if (r == 0 && e->req_count == 1 && !e->planned_usec &&
        e->reqs[0]->full_at != c->grown)
        r = preferred_node(p, e, wish, &node);
    if (r == 0 && node != CLUSTER_NONE) {
        *ret_usec = at;
        r = reserve(p, e, 0, node, at, e->reqs[0]->fits[c->nodes[node].state].device);
        return r < 0 ? r : hold_now(p, e);
    }
    while (r == 0) {
        at = next;
        if (only_now && at > p->now_usec) {
            *ret_usec = INT64_MAX;
            return 0;
        }
        r = reserve_all(p, e, wish, at, &next);
        if (r < 0 || next == at || next == INT64_MAX)
            break;
    }
    if (r == 0 && next != INT64_MAX && at <= p->now_usec)
        r = hold_now(p, e);
    if (r < 0 || next == INT64_MAX || at > p->now_usec)
        (void)unreserve(p, e, e->req_count, INT64_MAX); /* stays in the lines */
    *ret_usec = next;
    return r;
}

int forecast_plan(struct forecast *p, struct entry *e, int64_t from_usec, int64_t *ret_usec)
{
    int r;
    const struct wish *wish = entry_wish(p->s, e, p->arena, &r);
    int64_t at, next = from_usec;

    do {
        at = next;
        if (r == 0)
            r = reserve_all(p, e, wish, at, &next);
    } while (r == 0 && next != at && next != INT64_MAX);
    (void)unreserve(p, e, e->req_count, INT64_MAX); /* stays in the lines */
    *ret_usec = next;
    return r;
}
