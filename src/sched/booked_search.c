/* SPDX-License-Identifier: Apache-2.0 */
/* booked_search.c - agents that can keep what a booking wants, from its start until its end
 *
 * An agent has room if its timeline has (availability.c): sessions that run end by their lifetime,
 * other bookings keep what they keep; sessions that wait do not count. A booking that ignores
 * sessions prefers agents that have room beside them, and else goes by what agents offer less what
 * other bookings keep.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sched/forecast_internal.h"

struct booked_search {
    struct sched *s;
    const struct sched_booking_wish *wish;
    struct slot_request *req;
    struct arena *arena;
    int64_t from_usec;
    struct forecast *beside; /* sessions and other bookings */
    struct forecast *empty;  /* other bookings alone */
};

/* An agent with room, and how much of the most important slot the booking would leave. */
struct booked_choice {
    const struct cluster *c;
    struct forecast *forecast;
    uint32_t node;
    int64_t left;
    bool is_beside;                 /* also beside sessions */
    const struct booked_place *own; /* the booking is there already, and its devices stay free */
};

/* Agents as they are without any session. */
static struct forecast *booked_search_empty(const struct booked_search *b, int64_t now_usec)
{
    const struct cluster *c = &b->s->cluster;
    struct forecast *p = arena_alloc(b->arena, sizeof(*p));

    *p = (struct forecast){ .s = b->s, .arena = b->arena, .now_usec = now_usec };
    availability_init(p);
    for (uint32_t n = 0; n < c->node_count; n++) {
        const struct cluster_node *node = &c->nodes[n];
        int64_t *free = p->timelines[n].steps[0].free;

        for (size_t i = 0; i < c->columns; i++)
            if (free[i] != SCHED_ABSENT)
                free[i] = node->capacity[i];
        for (uint32_t d = 0; d < node->device_count; d++)
            free[c->width + d] = node->devices[d].capacity;
    }
    return p;
}

static bool booked_search_is_self(const struct booked_search *b, const struct booked *other)
{
    return b->wish->id && uuid_equals(b->wish->id, &other->id);
}

/* Take from 'p' what other bookings keep, or give back what is known of this one. */
static void booked_search_apply(const struct booked_search *b, struct forecast *p, bool is_self,
                                int sign)
{
    for (size_t i = 0; i < b->s->booking_count; i++) {
        const struct booked *other = &b->s->bookings[i];

        if (other->is_over || booked_search_is_self(b, other) != is_self)
            continue;
        for (uint32_t k = 0; k < other->place_count; k++)
            if (other->places[k].node != CLUSTER_NONE)
                availability_add(p, other->places[k].node, &other->amounts, other->places[k].parts,
                                 other->places[k].part_count,
                                 AQ_MAX(other->starts_usec, p->now_usec), other->ends_usec, sign);
    }
}

static bool booked_search_fits(const struct booked_search *b, struct forecast *p, uint32_t node)
{
    uint32_t last;

    return availability_fits(p, node, b->req,
                             availability_find_step(&p->timelines[node], b->from_usec),
                             b->wish->ends_usec, &last);
}

/* The least that the agent has of a column, or of a device behind the columns. */
static int64_t booked_search_least(const struct booked_search *b, const struct forecast *p,
                                   uint32_t node, size_t at)
{
    const struct availability *l = &p->timelines[node];
    uint32_t step = availability_find_step(l, b->from_usec);
    int64_t least = l->steps[step].free[at];

    while (++step < l->count && l->steps[step].from_usec < b->wish->ends_usec)
        least = AQ_MIN(least, l->steps[step].free[at]);
    return least;
}

/* May the booking be on this agent at all? */
static bool booked_search_allows(const struct booked_search *b, uint32_t node)
{
    const struct cluster *c = &b->s->cluster;

    if (!cluster_matches(c, b->req, node) || c->nodes[node].free[c->columns] == SCHED_ABSENT)
        return false;
    for (size_t i = 0; i < b->wish->agent_count; i++)
        if (strcmp(b->wish->agents[i], c->nodes[node].id) == 0)
            return true;
    return b->wish->agent_count == 0;
}

/* ---- agents with room ---- */

static int booked_search_compare(const void *a, const void *b)
{
    const struct booked_choice *x = a, *y = b;

    if (x->is_beside != y->is_beside)
        return x->is_beside ? -1 : 1;
    if (!x->own != !y->own)
        return x->own ? -1 : 1;
    if (x->left != y->left)
        return x->left < y->left ? -1 : 1;
    return strcmp(x->c->nodes[x->node].id, y->c->nodes[y->node].id);
}

/* The place of the booking itself, as it is known, where that has room for it. */
static const struct booked_place *booked_search_own(const struct booked_search *b,
                                                    const struct forecast *p, uint32_t node)
{
    size_t width = b->s->cluster.width;

    for (size_t i = 0; i < b->s->booking_count; i++) {
        const struct booked *self = &b->s->bookings[i];

        if (!booked_search_is_self(b, self)
            || memcmp(self->amounts.amounts, b->req->amounts,
                      b->s->cluster.columns * sizeof(*b->req->amounts))
                   != 0)
            continue;
        for (uint32_t k = 0; k < self->place_count; k++) {
            const struct booked_place *own = &self->places[k];
            bool is_free = own->node == node;

            for (uint32_t d = 0; is_free && d < own->part_count; d++)
                is_free = booked_search_least(b, p, node, width + own->parts[d].device)
                          >= own->parts[d].amount;
            if (is_free)
                return own;
        }
    }
    return NULL;
}

/* The best first. */
static size_t booked_search_list(const struct booked_search *b, struct booked_choice *ret)
{
    const struct cluster *c = &b->s->cluster;
    size_t lead = cluster_lead_column(c, b->req), count = 0;

    for (uint32_t n = 0; n < c->node_count; n++) {
        struct booked_choice choice = { .c = c, .forecast = b->beside, .node = n };

        if (!booked_search_allows(b, n))
            continue;
        choice.is_beside = booked_search_fits(b, b->beside, n);
        if (!choice.is_beside) {
            if (!b->wish->ignores_sessions || !booked_search_fits(b, b->empty, n))
                continue;
            choice.forecast = b->empty;
        }
        choice.left = booked_search_least(b, choice.forecast, n, lead);
        choice.own = booked_search_own(b, choice.forecast, n);
        ret[count++] = choice;
    }
    qsort(ret, count, sizeof(*ret), booked_search_compare);
    return count;
}

static void booked_search_take(const struct booked_search *b, const struct booked_choice *choice,
                               struct sched_place *ret)
{
    struct hold hold = { 0 };
    struct sched_part *parts;

    if (choice->own) {
        hold.part_count = choice->own->part_count;
        hold.parts = choice->own->parts;
    } else {
        availability_choose(choice->forecast, choice->node, b->req, b->from_usec,
                            b->wish->ends_usec, -1, &hold);
    }
    parts = arena_array(b->arena, hold.part_count + 1u, sizeof(*parts));
    for (uint32_t i = 0; i < hold.part_count; i++)
        parts[i] = (struct sched_part){ hold.parts[i].device, hold.parts[i].amount };
    if (!choice->own)
        free(hold.parts);
    *ret = (struct sched_place){ .agent_id = arena_strdup(b->arena,
                                                          choice->c->nodes[choice->node].id),
                                 .parts = parts,
                                 .part_count = hold.part_count };
}

/* ---- why there are too few ---- */

/* How much of the slot the agent has for the booking: less than it wants, or that. */
static int64_t booked_search_usable(const struct booked_search *b, struct forecast *p,
                                    uint32_t node, size_t column)
{
    const struct cluster *c = &b->s->cluster;
    const struct cluster_node *n = &c->nodes[node];
    int64_t amount = b->req->amounts[column], missing;
    struct shortage shortage = { 0 };
    size_t count = 0;

    missing = amount - AQ_MAX(booked_search_least(b, p, node, column), 0);
    for (uint32_t d = 0; d < n->device_count; d++)
        if (n->devices[d].column == column) {
            p->devices[count] = n->devices[d];
            p->devices[count].free = booked_search_least(b, p, node, c->width + d);
            p->devices[count++].unused = d;
        }
    if (count)
        (void)fit_find_shortage(c, b->req, p->devices, count, amount, &shortage);
    missing = AQ_MAX(missing, shortage.missing);
    return AQ_MAX(amount - AQ_MAX(missing, 0), 0);
}

/* Of the agent's slots the one of which the largest part is missing; and the sum of the parts. */
static double booked_search_missing(const struct booked_search *b, struct forecast *p,
                                    uint32_t node, size_t *ret_column)
{
    double sum = 0, most = 0;

    for (size_t i = 0; i < b->s->cluster.columns; i++) {
        int64_t amount = b->req->amounts[i];
        double part = amount > 0
                          ? (double)(amount - booked_search_usable(b, p, node, i)) / (double)amount
                          : 0;

        sum += part;
        if (part > most) {
            most = part;
            *ret_column = i;
        }
    }
    return sum;
}

/* Sessions and bookings that keep some of a column of the agent in this time. */
static void booked_search_blame(const struct booked_search *b, uint32_t node, size_t column,
                                struct sched_booking_obstacle *ret)
{
    struct sched *s = b->s;
    uint32_t *holders = arena_array(b->arena, s->entry_count + 1, sizeof(*holders));
    struct uuid *bookings = arena_array(b->arena, s->booking_count + 1, sizeof(*bookings));

    for (uint32_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];

        for (uint32_t q = 0; entry_is_holding(e) && q < e->req_count; q++)
            if (e->holds[q].node == node && e->reqs[q]->amounts[column] > 0
                && forecast_expected_end(b->beside, e) > b->from_usec) {
                holders[ret->holder_count++] = i;
                break;
            }
    }
    for (size_t i = 0; i < s->booking_count; i++) {
        const struct booked *other = &s->bookings[i];

        if (other->is_over || booked_search_is_self(b, other) || other->amounts.amounts[column] == 0
            || other->starts_usec >= b->wish->ends_usec || other->ends_usec <= b->from_usec)
            continue;
        for (uint32_t k = 0; k < other->place_count; k++)
            if (other->places[k].node == node)
                bookings[ret->booking_count++] = other->id;
    }
    ret->holders = holders;
    ret->bookings = bookings;
}

/* The agent that lacks least, the first by id of several. */
static void booked_search_explain(const struct booked_search *b, struct sched_booking_obstacle *ret)
{
    const struct cluster *c = &b->s->cluster;
    struct forecast *p = b->wish->ignores_sessions ? b->empty : b->beside;
    uint32_t nearest = CLUSTER_NONE;
    size_t nearest_column = SIZE_MAX;
    double least = 0;

    for (uint32_t n = 0; n < c->node_count; n++) {
        size_t column = SIZE_MAX;
        double missing;

        if (!booked_search_allows(b, n) || booked_search_fits(b, p, n))
            continue;
        missing = booked_search_missing(b, p, n, &column);
        if (nearest != CLUSTER_NONE
            && (missing > least
                || (missing >= least && strcmp(c->nodes[n].id, c->nodes[nearest].id) > 0)))
            continue;
        nearest = n;
        nearest_column = column;
        least = missing;
    }
    if (nearest == CLUSTER_NONE)
        return;
    ret->agent_id = arena_strdup(b->arena, c->nodes[nearest].id);
    if (nearest_column == SIZE_MAX)
        return;
    ret->slot_name = c->names[nearest_column];
    ret->needed = b->req->amounts[nearest_column];
    ret->free = booked_search_usable(b, p, nearest, nearest_column);
    ret->is_beyond = c->nodes[nearest].capacity[nearest_column] < ret->needed;
    booked_search_blame(b, nearest, nearest_column, ret);
}

int sched_booking_place(struct sched *s, const struct sched_booking_wish *wish, int64_t now_usec,
                        struct arena *arena, struct sched_place **ret,
                        struct sched_booking_obstacle *ret_obstacle)
{
    struct booked_search b = {
        .s = s, .wish = wish, .arena = arena, .from_usec = AQ_MAX(wish->starts_usec, now_usec)
    };
    struct booked_choice *choices = arena_array(arena, s->cluster.node_count + 1, sizeof(*choices));
    size_t count;

    booked_advance(s, now_usec);
    b.req = slot_request_get(
        &s->cluster, &(struct slot_request_spec){ .kernels = &wish->amounts, .kernel_count = 1 });
    b.beside = forecast_new(s, now_usec, false, arena);
    b.empty = booked_search_empty(&b, now_usec);
    booked_search_apply(&b, b.beside, true, 1);
    booked_search_apply(&b, b.empty, false, -1);
    count = booked_search_list(&b, choices);
    *ret_obstacle = (struct sched_booking_obstacle){ .fitting = count };
    if (count < wish->place_count)
        booked_search_explain(&b, ret_obstacle);
    else
        *ret = arena_array(arena, wish->place_count + 1, sizeof(**ret));
    for (size_t i = 0; count >= wish->place_count && i < wish->place_count; i++)
        booked_search_take(&b, &choices[i], &(*ret)[i]);
    slot_request_release(&s->cluster, b.req);
    return count >= wish->place_count ? 0 : -EBUSY;
}
