/* SPDX-License-Identifier: Apache-2.0 */
/* booked.c - bookings: amounts of agents that are kept for their sessions during a time
 *
 * Before its start a booking is in forecasts alone: it takes its amounts out of the timelines, so a
 * session that would run into it is placed by forecast. From its start on it holds its amounts
 * like a session, and each of its places is a node of its own, where only its sessions fit
 * (cluster_open_part()). So all that places, preempts or moves sessions treats a booking as agents
 * of its own.
 *
 * What sessions of others hold of a place when the booking begins is missing there until they end.
 * A session of the booking holds amounts of the part; when the booking is over these are
 * the agent's again. Slots that a booking does not name, such as cpu where only GPUs are booked,
 * its sessions share with all others of the agent.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/vec.h"
#include "sched/scheduler_internal.h"

static void booked_place_done(struct booked_place *p)
{
    free(p->agent_id);
    free(p->parts);
    free(p->missing.amounts);
    free(p->missing_parts);
}

void booked_done(struct booked *b)
{
    for (uint32_t i = 0; i < b->place_count; i++)
        booked_place_done(&b->places[i]);
    free(b->places);
    free(b->name);
    free(b->amounts.amounts);
    free(b->amounts.named);
}

/* ---- finding ---- */

static struct booked *booked_find_id(const struct sched *s, const struct uuid *id)
{
    for (size_t i = 0; i < s->booking_count; i++)
        if (uuid_equals(&s->bookings[i].id, id))
            return &s->bookings[i];
    return NULL;
}

uint32_t booked_number(const struct sched *s, const struct uuid *id)
{
    const struct booked *b = id ? booked_find_id(s, id) : NULL;

    return !id ? 0 : b ? b->number : BOOKED_UNKNOWN;
}

const struct booked *booked_find(const struct sched *s, uint32_t number)
{
    for (size_t i = 0; number && i < s->booking_count; i++)
        if (s->bookings[i].number == number)
            return &s->bookings[i];
    return NULL;
}

uint32_t booked_find_node(const struct sched *s, uint32_t number, const char *agent_id)
{
    uint32_t node = cluster_find_agent(&s->cluster, agent_id);
    const struct booked *b = booked_find(s, number);

    for (uint32_t i = 0; b && b->is_active && i < b->place_count; i++)
        if (b->places[i].node == node && b->places[i].part != CLUSTER_NONE)
            return b->places[i].part;
    return node;
}

int64_t booked_end(const struct sched *s, const struct sched_entry *e)
{
    const struct booked *b = booked_find(s, e->booking);

    return b && b->is_active ? b->ends_usec : INT64_MAX;
}

void booked_limit_lifetime(const struct sched *s, struct sched_entry *e, int64_t now_usec)
{
    int64_t end = booked_end(s, e), left = AQ_MAX(end - now_usec, 1);

    e->lifetime_usec = e->own_lifetime_usec;
    if (end != INT64_MAX && (e->lifetime_usec == 0 || e->lifetime_usec > left))
        e->lifetime_usec = left;
}

bool booked_is_near(const struct sched *s, const struct sched_entry *e, int64_t now_usec)
{
    int64_t stay = e->lifetime_usec > 0 ? e->lifetime_usec : INT64_MAX;

    return s->next_booking_usec != INT64_MAX
           && (stay > INT64_MAX - now_usec || now_usec + stay > s->next_booking_usec);
}

bool booked_has_devices(const struct sched *s, uint32_t node)
{
    for (size_t i = 0; i < s->booking_count; i++)
        for (uint32_t k = 0; !s->bookings[i].is_over && k < s->bookings[i].place_count; k++)
            if (s->bookings[i].places[k].node == s->cluster.nodes[node].agent
                && s->bookings[i].places[k].part_count)
                return true;
    return false;
}

/* ---- what sessions of a booking hold ---- */

/* From the agent to the booked part of it, or back. */
static void booked_move_hold(struct sched *s, const struct slot_request *req, struct hold *h,
                             uint32_t from, uint32_t to)
{
    if (h->node != from)
        return;
    cluster_release(&s->cluster, from, req, h->parts, h->part_count);
    cluster_hold_parts(&s->cluster, to, req, h->parts, h->part_count);
    h->node = to;
}

/* All that the booking's sessions hold on node 'from'. */
static void booked_move_holds(struct sched *s, const struct booked *b, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < s->entry_count; i++) {
        struct sched_entry *e = &s->entries[i];

        for (uint32_t q = 0; e->booking == b->number && entry_is_holding(e) && q < e->req_count;
             q++)
            booked_move_hold(s, e->reqs[q], &e->holds[q], from, to);
    }
    for (size_t i = 0; i < s->reservation_count; i++) {
        struct reservation *r = &s->reservations[i];

        for (uint32_t q = 0; q < r->count; q++)
            if (r->reqs[q]->booking == b->number)
                booked_move_hold(s, r->reqs[q], &r->holds[q], from, to);
    }
}

/* ---- start and end ---- */

/* Devices that the agent no longer has are missing for good. */
static void booked_drop_lost_parts(const struct cluster *c, struct booked_place *p)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; p->node != CLUSTER_NONE && i < p->part_count; i++)
        if (p->parts[i].device < c->nodes[p->node].device_count)
            p->parts[kept++] = p->parts[i];
    p->part_count = p->node != CLUSTER_NONE ? kept : p->part_count;
    for (uint32_t i = 0; i < p->part_count; i++)
        p->missing_parts[i] = (struct device_part){ p->parts[i].device, 0 };
}

/* The agent's amounts are for the booking's sessions from now on. */
static void booked_open_place(struct sched *s, const struct booked *b, struct booked_place *p)
{
    struct cluster *c = &s->cluster;

    if (p->node == CLUSTER_NONE)
        return;
    booked_drop_lost_parts(c, p);
    p->part = cluster_open_part(c, p->node, b->number, b->amounts.amounts, b->amounts.named,
                                p->parts, p->part_count);
    cluster_hold_parts(c, p->node, &b->amounts, p->parts, p->part_count);
    memset(p->missing.amounts, 0, c->width * sizeof(*p->missing.amounts));
    booked_move_holds(s, b, p->node, p->part);
}

static void booked_close_place(struct sched *s, const struct booked *b, struct booked_place *p)
{
    if (p->part == CLUSTER_NONE)
        return;
    booked_move_holds(s, b, p->part, p->node);
    cluster_close_part(&s->cluster, p->part);
    cluster_release(&s->cluster, p->node, &b->amounts, p->parts, p->part_count);
    p->part = CLUSTER_NONE;
}

static void booked_stop(struct sched *s, struct booked *b)
{
    for (uint32_t i = 0; b->is_active && i < b->place_count; i++)
        booked_close_place(s, b, &b->places[i]);
    b->is_active = false;
}

/* ---- what others still hold ---- */

/* What 'e' holds there was found without what others leave, and starts when those have left. */
static int64_t booked_sum_promised(const struct sched *s, uint32_t node, size_t column,
                                   uint32_t device)
{
    int64_t sum = 0;

    for (size_t i = 0; i < s->entry_count; i++) {
        const struct sched_entry *e = &s->entries[i];

        for (uint32_t q = 0; e->status == ENTRY_PREEMPTING && q < e->req_count; q++) {
            if (e->holds[q].node != node)
                continue;
            if (device == CLUSTER_NONE)
                sum += e->reqs[q]->amounts[column];
            for (uint32_t k = 0; device != CLUSTER_NONE && k < e->holds[q].part_count; k++)
                if (e->holds[q].parts[k].device == device)
                    sum += e->holds[q].parts[k].amount;
        }
    }
    return sum;
}

/* How much of 'amount', of which the agent has 'free' left, others hold. Of several bookings, those
 * that were made later lack first.
 */
static int64_t booked_find_missing(const struct sched *s, const struct booked *b,
                                   const struct booked_place *p, size_t column, uint32_t device,
                                   int64_t amount, int64_t free)
{
    int64_t missing = -free;

    if (free >= 0 || free == SCHED_ABSENT || amount <= 0)
        return 0;
    missing -= booked_sum_promised(s, p->node, column, device);
    for (const struct booked *later = b + 1; later < s->bookings + s->booking_count; later++)
        for (uint32_t i = 0; later->is_active && i < later->place_count; i++) {
            const struct booked_place *other = &later->places[i];

            if (other->node != p->node)
                continue;
            if (device == CLUSTER_NONE)
                missing -= other->missing.amounts[column];
            for (uint32_t k = 0; device != CLUSTER_NONE && k < other->part_count; k++)
                if (other->missing_parts[k].device == device)
                    missing -= other->missing_parts[k].amount;
        }
    return AQ_MIN(AQ_MAX(missing, 0), amount);
}

static void booked_refresh_place(struct sched *s, const struct booked *b, struct booked_place *p)
{
    struct cluster *c = &s->cluster;
    const struct cluster_node *n = &c->nodes[p->node];
    int64_t *row = aq_alloc_array(c->width, sizeof(*row));
    struct device_part *parts = aq_alloc_array(p->part_count + 1u, sizeof(*parts));
    bool is_changed = false;

    for (size_t i = 0; i < c->columns; i++) {
        row[i] = booked_find_missing(s, b, p, i, CLUSTER_NONE, b->amounts.amounts[i], n->free[i]);
        is_changed |= row[i] != p->missing.amounts[i];
    }
    for (uint32_t k = 0; k < p->part_count; k++) {
        uint32_t device = p->parts[k].device;

        parts[k] = (struct device_part){ device, booked_find_missing(
                                                     s, b, p, n->devices[device].column, device,
                                                     p->parts[k].amount, n->devices[device].free) };
        is_changed |= parts[k].amount != p->missing_parts[k].amount;
    }
    if (is_changed) {
        cluster_release(c, p->part, &p->missing, p->missing_parts, p->part_count);
        memcpy(p->missing.amounts, row, c->width * sizeof(*row));
        memcpy(p->missing_parts, parts, p->part_count * sizeof(*parts));
        cluster_hold_parts(c, p->part, &p->missing, p->missing_parts, p->part_count);
    }
    free(row);
    free(parts);
}

void booked_advance(struct sched *s, int64_t now_usec)
{
    s->next_booking_usec = INT64_MAX;
    for (size_t i = 0; i < s->booking_count; i++) {
        struct booked *b = &s->bookings[i];

        b->is_over = b->is_over || now_usec >= b->ends_usec;
        if (b->is_over) {
            booked_stop(s, b);
        } else if (now_usec < b->starts_usec && !b->is_active) {
            s->next_booking_usec = AQ_MIN(s->next_booking_usec, b->starts_usec);
        } else if (!b->is_active) {
            b->is_active = true;
            for (uint32_t k = 0; k < b->place_count; k++)
                booked_open_place(s, b, &b->places[k]);
        }
    }
    for (size_t i = s->booking_count; i-- > 0;)
        for (uint32_t k = 0; s->bookings[i].is_active && k < s->bookings[i].place_count; k++)
            if (s->bookings[i].places[k].part != CLUSTER_NONE)
                booked_refresh_place(s, &s->bookings[i], &s->bookings[i].places[k]);
}

void booked_take_agent(struct sched *s, uint32_t agent_node)
{
    struct cluster *c = &s->cluster;

    for (size_t i = 0; i < s->booking_count; i++) {
        struct booked *b = &s->bookings[i];

        for (uint32_t k = 0; k < b->place_count; k++) {
            struct booked_place *p = &b->places[k];

            if (strcmp(p->agent_id, c->nodes[agent_node].id) != 0)
                continue;
            p->node = agent_node;
            if (!b->is_active) {
                booked_drop_lost_parts(c, p);
                continue;
            }
            if (p->part != CLUSTER_NONE) {
                cluster_close_part(c, p->part);
                booked_move_holds(s, b, p->part, p->node);
            }
            booked_open_place(s, b, p);
        }
    }
}

/* ---- told by the owner ---- */

static void booked_read_place(struct sched *s, const struct sched_place *from,
                              struct booked_place *ret)
{
    size_t parts = from->part_count;
    uint32_t node = cluster_find_agent(&s->cluster, from->agent_id);

    *ret = (struct booked_place){ .agent_id = aq_strdup(from->agent_id),
                                  .node = node,
                                  .part = CLUSTER_NONE,
                                  .parts = aq_alloc_array(parts + 1, sizeof(*ret->parts)),
                                  .missing_parts = aq_alloc_array(parts + 1,
                                                                  sizeof(*ret->missing_parts)) };
    ret->missing.amounts = aq_alloc_array(s->cluster.width, sizeof(*ret->missing.amounts));
    for (size_t i = 0; i < parts; i++)
        ret->parts[ret->part_count++] = (struct device_part){ from->parts[i].device,
                                                              from->parts[i].amount };
    booked_drop_lost_parts(&s->cluster, ret);
}

int sched_booking_set(struct sched *s, const struct sched_booking *booking, int64_t now_usec,
                      struct aq_error *err)
{
    struct booked *b = booked_find_id(s, &booking->id);
    struct booked fresh = { .id = booking->id,
                            .starts_usec = booking->starts_usec,
                            .ends_usec = booking->ends_usec };

    if (booking->ends_usec <= booking->starts_usec)
        return aq_fail_field(err, EINVAL, "ends", "reservation '%s' ends before it starts",
                             booking->name);
    for (size_t i = 0; i < booking->amounts->count; i++)
        if (booking->amounts->items[i].amount > 0
            && cluster_column(&s->cluster, booking->amounts->items[i].name) == SIZE_MAX)
            return aq_fail_field(err, EINVAL, "amounts", "no agent has the slot '%s'",
                                 booking->amounts->items[i].name);
    if (b) {
        booked_stop(s, b);
        fresh.number = b->number;
        booked_done(b);
    } else {
        vec_grow(&s->bookings, &s->booking_cap, s->booking_count + 1, sizeof(*s->bookings));
        b = &s->bookings[s->booking_count++];
        fresh.number = ++s->last_booking;
    }
    fresh.name = aq_strdup(booking->name);
    fresh.amounts.amounts = aq_alloc_array(s->cluster.width, sizeof(int64_t));
    fresh.amounts.named = aq_alloc_array(s->cluster.width, sizeof(bool));
    cluster_fill_row(&s->cluster, booking->amounts, 0, fresh.amounts.amounts);
    for (size_t i = 0; i < booking->amounts->count; i++) {
        size_t column = cluster_column(&s->cluster, booking->amounts->items[i].name);

        if (column != SIZE_MAX)
            fresh.amounts.named[column] = true;
    }
    fresh.places = aq_alloc_array(booking->place_count + 1, sizeof(*fresh.places));
    fresh.place_count = (uint32_t)booking->place_count;
    for (uint32_t i = 0; i < fresh.place_count; i++)
        booked_read_place(s, &booking->places[i], &fresh.places[i]);
    *b = fresh;
    booked_advance(s, now_usec);
    s->cluster.free_version++; /* it may keep less than before */
    return 0;
}

void sched_booking_remove(struct sched *s, const struct uuid *id)
{
    struct booked *b = booked_find_id(s, id);
    size_t at = b ? (size_t)(b - s->bookings) : 0;

    if (!b)
        return;
    booked_stop(s, b);
    booked_done(b);
    memmove(b, b + 1, (s->booking_count - at - 1) * sizeof(*b));
    s->booking_count--;
    s->next_booking_usec = INT64_MAX;
    for (size_t i = 0; i < s->booking_count; i++)
        if (!s->bookings[i].is_active && !s->bookings[i].is_over)
            s->next_booking_usec = AQ_MIN(s->next_booking_usec, s->bookings[i].starts_usec);
    s->cluster.free_version++;
}
