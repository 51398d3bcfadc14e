/* SPDX-License-Identifier: Apache-2.0 */
/* capacity.c - what agents could give if nothing ran on them: which amounts fit, and the nearest */
#include "sched/capacity.h"

#include <string.h>

/* ---- the devices of one slot ---- */

/* The amounts that are divided into as many parts as there are devices with at least the capacity
 * of a certain one: the multiples of 'unit' in (from, to].
 */
struct capacity_range {
    int64_t from, to, unit;
};

static int64_t capacity_times(int64_t a, int64_t b)
{
    int64_t product;

    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static int64_t capacity_whole(int64_t amount, int64_t unit)
{
    return amount - amount % unit;
}

/* Any parts, of devices of the quantum of 'last'. */
static bool capacity_find_split_range(const struct capacity_device *devices, size_t count,
                                      size_t last, struct capacity_range *ret)
{
    int64_t unit = devices[last].quantum ? devices[last].quantum : 1;

    *ret = (struct capacity_range){ .unit = unit };
    for (size_t i = 0; i < count; i++)
        if (devices[i].quantum == devices[last].quantum
            && __builtin_add_overflow(ret->to, capacity_whole(devices[i].capacity, unit), &ret->to))
            ret->to = capacity_whole(INT64_MAX, unit);
    return ret->to > 0;
}

/* Of the parts whose smallest device is 'last'. False: no amount needs so many. */
static bool capacity_find_range(const struct capacity_device *devices, size_t count, size_t last,
                                bool may_split, struct capacity_range *ret)
{
    int64_t unit = devices[last].quantum ? devices[last].quantum : 1;
    int64_t least = capacity_whole(devices[last].capacity, unit), most = 0, parts = 0;

    if (may_split)
        return capacity_find_split_range(devices, count, last, ret);
    for (size_t i = 0; i < count; i++) {
        int64_t capacity = capacity_whole(devices[i].capacity, unit);

        if (devices[i].quantum != devices[last].quantum)
            continue;
        most = AQ_MAX(most, capacity);
        parts += capacity > least || (capacity == least && i <= last);
    }
    *ret = (struct capacity_range){ capacity_times(most, parts - 1),
                                    capacity_whole(capacity_times(least, parts), unit), unit };
    return ret->from < ret->to;
}

int64_t capacity_floor(const struct capacity_device *devices, size_t count, bool may_split,
                       int64_t amount)
{
    int64_t best = 0;

    for (size_t i = 0; i < count; i++) {
        struct capacity_range range;
        int64_t found;

        if (!capacity_find_range(devices, count, i, may_split, &range))
            continue;
        found = AQ_MIN(capacity_whole(amount, range.unit), range.to);
        if (found > range.from)
            best = AQ_MAX(best, found);
    }
    return best;
}

int64_t capacity_ceiling(const struct capacity_device *devices, size_t count, bool may_split,
                         int64_t amount)
{
    int64_t best = INT64_MAX;

    for (size_t i = 0; i < count; i++) {
        struct capacity_range range;
        int64_t found;

        if (!capacity_find_range(devices, count, i, may_split, &range))
            continue;
        found = AQ_MAX(amount, range.from + 1);
        if (found > range.to)
            continue;
        if (found % range.unit)
            found += range.unit - found % range.unit; /* 'to' is a multiple, too */
        best = AQ_MIN(best, found);
    }
    return best;
}

/* ---- one slot of an agent ---- */

/* What an agent has of a slot, and how it is given. */
struct capacity_offer {
    int64_t amount; /* the sum */
    int64_t step;   /* amounts are multiples of this, beside what devices demand */
    int64_t together;
    bool has_devices, may_split;
    const struct capacity_device *devices;
    size_t device_count;
};

/* Room for the devices of one slot, for one agent after another. */
struct capacity_scratch {
    struct arena *arena;
    struct capacity_device *devices;
    size_t cap;
};

static void capacity_read_offer(const struct capacity_request *req, const struct sched_agent *a,
                                const struct slot *slot, struct capacity_scratch *scratch,
                                struct capacity_offer *ret)
{
    bool is_bytes = slot_types_get(req->types, slot->name) == SLOT_BYTES;
    size_t count = 0;

    if (scratch->cap < a->device_count) {
        scratch->cap = a->device_count * 2;
        scratch->devices = arena_array(scratch->arena, scratch->cap, sizeof(*scratch->devices));
    }
    for (size_t i = 0; i < a->device_count; i++)
        if (a->devices[i].slot_name == slot->name)
            scratch->devices[count++] = (struct capacity_device){ a->devices[i].capacity,
                                                                  a->devices[i].quantum };
    *ret = (struct capacity_offer){ .amount = slots_get(a->capacity, slot->name),
                                    .step = is_bytes || slot->amount % AMOUNT_ONE ? 1 : AMOUNT_ONE,
                                    .together = req->together,
                                    .has_devices = count > 0,
                                    .may_split = req->may_split,
                                    .devices = scratch->devices,
                                    .device_count = count };
}

/* The largest of at most 'amount' that each of the containers could have; 0 = none. */
static int64_t capacity_offer_floor(const struct capacity_offer *o, int64_t amount)
{
    for (;;) {
        int64_t sum;

        amount = capacity_whole(AQ_MIN(amount, o->amount / o->together), o->step);
        if (amount > 0 && o->has_devices)
            amount = capacity_floor(o->devices, o->device_count, o->may_split, amount);
        if (amount <= 0)
            return 0;
        sum = o->has_devices
                  ? capacity_floor(o->devices, o->device_count, o->may_split, amount * o->together)
                  : amount * o->together;
        if (amount % o->step == 0 && sum == amount * o->together)
            return amount;
        amount = AQ_MIN(sum / o->together, amount - 1);
    }
}

/* The smallest of at least 'amount'; INT64_MAX = none. */
static int64_t capacity_offer_ceiling(const struct capacity_offer *o, int64_t amount)
{
    for (;;) {
        int64_t sum;

        if (amount % o->step)
            amount += o->step - amount % o->step;
        if (amount > o->amount / o->together)
            return INT64_MAX;
        if (!o->has_devices)
            return amount;
        amount = capacity_ceiling(o->devices, o->device_count, o->may_split, amount);
        if (amount > o->amount / o->together)
            return INT64_MAX;
        sum = capacity_ceiling(o->devices, o->device_count, o->may_split, amount * o->together);
        if (sum == INT64_MAX)
            return INT64_MAX;
        if (amount % o->step == 0 && sum == amount * o->together)
            return amount;
        amount = AQ_MAX(sum / o->together, amount + 1);
    }
}

/* ---- agents ---- */

static bool capacity_is_meant(const struct capacity_request *req, const struct sched_agent *a)
{
    if (req->architecture && a->architecture && strcmp(req->architecture, a->architecture) != 0)
        return false;
    for (size_t i = 0; i < req->designated_count; i++)
        if (strcmp(req->designated[i], a->id) == 0)
            return true;
    return req->designated_count == 0;
}

/* How many containers it could hold by its sums; 0 also if it can hold none by its devices. */
static void capacity_count(const struct capacity_request *req, const struct sched_agent *a,
                           struct capacity_scratch *scratch, int64_t *ret)
{
    struct capacity_offer offer;

    *ret = AMOUNT_INFINITE;
    for (size_t i = 0; i<req->each->count && * ret> 0; i++) {
        const struct slot *slot = &req->each->items[i];
        int64_t count = slot->amount > 0 ? slots_get(a->capacity, slot->name) / slot->amount
                                         : AMOUNT_INFINITE;

        *ret = AQ_MIN(*ret, count < req->together ? 0 : count);
    }
    for (size_t i = 0; i<req->each->count && * ret> 0; i++) {
        const struct slot *slot = &req->each->items[i];

        capacity_read_offer(req, a, slot, scratch, &offer);
        if (slot->amount > 0 && capacity_offer_floor(&offer, slot->amount) != slot->amount)
            *ret = 0;
    }
}

/* What 'a', which cannot hold it, would give instead. */
static void capacity_report_agent(const struct capacity_request *req, const struct sched_agent *a,
                                  struct capacity_scratch *scratch, struct capacity_report *report)
{
    size_t short_of = 0, which = 0;
    int64_t beside = 0;

    for (size_t i = 0; i < req->each->count; i++) {
        const struct slot *slot = &req->each->items[i];
        struct capacity_slot *to = &report->slots[i];
        struct capacity_offer offer;
        int64_t below;

        if (slot->amount <= 0)
            continue;
        capacity_read_offer(req, a, slot, scratch, &offer);
        below = capacity_offer_floor(&offer, slot->amount);
        to->sum = AQ_MAX(to->sum, offer.amount);
        to->largest = AQ_MAX(to->largest, capacity_offer_floor(&offer, INT64_MAX));
        to->below = AQ_MAX(to->below, below);
        to->above = AQ_MIN(to->above, capacity_offer_ceiling(&offer, slot->amount));
        if (below == slot->amount)
            continue;
        short_of++;
        which = i;
        beside = below;
    }
    if (short_of == 1)
        report->slots[which].beside = AQ_MAX(report->slots[which].beside, beside);
}

struct capacity_report capacity_report_begin(const struct capacity_request *req,
                                             struct arena *arena)
{
    struct capacity_report report = { .slots = arena_array(arena, req->each->count + 1,
                                                           sizeof(*report.slots)) };

    for (size_t i = 0; i < req->each->count; i++)
        report.slots[i].above = INT64_MAX;
    return report;
}

bool capacity_look(const struct capacity_request *req, int64_t containers, capacity_next_fn next,
                   const void *data, struct arena *arena, struct capacity_report *report)
{
    struct capacity_scratch scratch = { .arena = arena };
    struct sched_agent a = { 0 };

    for (size_t at = 0; report->containers < containers && next(data, &at, &a);) {
        int64_t count;

        if (!capacity_is_meant(req, &a))
            continue;
        report->agents++;
        capacity_count(req, &a, &scratch, &count);
        if (__builtin_add_overflow(report->containers, count, &report->containers))
            report->containers = AMOUNT_INFINITE;
    }
    if (report->containers >= containers)
        return true;
    for (size_t at = 0; next(data, &at, &a);)
        if (capacity_is_meant(req, &a))
            capacity_report_agent(req, &a, &scratch, report);
    return false;
}
