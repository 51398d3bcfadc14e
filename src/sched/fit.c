/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - whether an agent's amounts and devices can hold a request, and the cache of it
 *
 * An amount that does not fit on one device is divided into equal parts, or, if the request may be
 * split, into parts as equal as the devices' free amounts allow. What was found about a request and
 * a node state is kept in the request (struct fit) as long as the state exists.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sched/cluster_internal.h"
#include "sched/select_node.h"

/* ---- devices ---- */

struct device_split {
    size_t parts;
    int64_t each, rest; /* the first 'rest' parts are one unit larger */
    int64_t unit;
    uint8_t quantum; /* of the devices */
    bool is_uneven;  /* no device gives more than 'each', nor more than it has */
};

static bool fit_is_usable(const struct slot_request *req, const struct cluster_device *d,
                          uint8_t quantum)
{
    return (req->models >> d->model & 1) && d->quantum == quantum;
}

/* Of 'amount' over the devices [from, to) of one slot that have the quantum; parts = SIZE_MAX: it
 * does not divide it, or there are none.
 */
static struct device_split fit_split_least(const struct cluster *c, const struct slot_request *req,
                                           const struct cluster_device *devices, size_t from,
                                           size_t to, int64_t amount, uint8_t quantum)
{
    struct device_split d = { .parts = 1,
                              .quantum = quantum,
                              .unit = quantum ? c->quanta[quantum] : 1 };
    int64_t capacity = 0;

    for (size_t i = from; i < to; i++)
        if (fit_is_usable(req, &devices[i], quantum))
            capacity = AQ_MAX(capacity, devices[i].capacity);
    if (quantum)
        capacity -= capacity % d.unit;
    if (capacity == 0 || (quantum && amount % d.unit))
        d.parts = SIZE_MAX;
    else if (amount > capacity)
        d.parts = (size_t)((amount - 1) / capacity + 1);
    return d;
}

static void fit_set_parts(struct device_split *d, int64_t amount)
{
    int64_t units = amount / d->unit;

    d->each = units / (int64_t)d->parts * d->unit;
    d->rest = units % (int64_t)d->parts;
}

static size_t fit_count_devices(const struct slot_request *req,
                                const struct cluster_device *devices, size_t from, size_t to,
                                int64_t amount, uint8_t quantum)
{
    size_t count = 0;

    for (size_t i = from; i < to; i++)
        count += fit_is_usable(req, &devices[i], quantum) && devices[i].free >= amount;
    return count;
}

/* What the devices give if none gives more than 'level'. */
static int64_t fit_sum_to_level(const struct slot_request *req,
                                const struct cluster_device *devices, size_t from, size_t to,
                                const struct device_split *d, int64_t level)
{
    int64_t sum = 0;

    for (size_t i = from; i < to; i++)
        if (fit_is_usable(req, &devices[i], d->quantum) && devices[i].free > 0)
            sum += AQ_MIN(devices[i].free - devices[i].free % d->unit, level);
    return sum;
}

/* Parts that differ as little as the devices of one quantum allow, as alloc/distribute.c makes
 * them; false if all together have too little.
 */
static bool fit_split_unevenly(const struct slot_request *req, const struct cluster_device *devices,
                               size_t from, size_t to, int64_t amount, struct device_split *d)
{
    int64_t low = 0, high = amount / d->unit;

    if (amount % d->unit || fit_sum_to_level(req, devices, from, to, d, amount) < amount)
        return false;
    while (low < high) {
        int64_t level = high - (high - low) / 2;

        if (fit_sum_to_level(req, devices, from, to, d, level * d->unit) <= amount)
            low = level;
        else
            high = level - 1;
    }
    d->each = low * d->unit;
    d->rest = (amount - fit_sum_to_level(req, devices, from, to, d, d->each)) / d->unit;
    d->is_uneven = true;
    return true;
}

/* The least devices of one quantum that can hold equal parts; with may_split more than needed if
 * those are short, and unequal parts if there is no other way. parts = SIZE_MAX: none.
 */
static struct device_split fit_split_evenly(const struct cluster *c, const struct slot_request *req,
                                            const struct cluster_device *devices, size_t from,
                                            size_t to, int64_t amount, uint8_t quantum)
{
    struct device_split d = fit_split_least(c, req, devices, from, to, amount, quantum);
    bool is_divisible = d.parts != SIZE_MAX;

    for (; d.parts <= to - from; d.parts++) {
        fit_set_parts(&d, amount);
        if (fit_count_devices(req, devices, from, to, d.each + (d.rest > 0) * d.unit, quantum)
            >= d.parts)
            return d;
        if (!req->may_split)
            break;
    }
    d.parts = is_divisible && req->may_split
                      && fit_split_unevenly(req, devices, from, to, amount, &d)
                  ? to - from
                  : SIZE_MAX;
    return d;
}

/* The largest quantum of the devices that is below '*below', which it replaces. */
static bool fit_next_quantum(const struct cluster *c, const struct cluster_device *devices,
                             size_t from, size_t to, int64_t *below, uint8_t *ret)
{
    int64_t found = -1;

    for (size_t i = from; i < to; i++) {
        int64_t quantum = c->quanta[devices[i].quantum];

        if (quantum < *below && quantum > found) {
            found = quantum;
            *ret = devices[i].quantum;
        }
    }
    *below = found;
    return found >= 0;
}

/* From the devices of the largest quantum where it fits. */
static struct device_split fit_find_split(const struct cluster *c, const struct slot_request *req,
                                          const struct cluster_device *devices, size_t from,
                                          size_t to, int64_t amount)
{
    struct device_split d = { .parts = SIZE_MAX };
    int64_t below = INT64_MAX;
    uint8_t quantum = 0;

    if (c->quantum_count <= 1) /* nowhere is there one */
        return fit_split_evenly(c, req, devices, from, to, amount, 0);
    while (d.parts == SIZE_MAX && fit_next_quantum(c, devices, from, to, &below, &quantum))
        d = fit_split_evenly(c, req, devices, from, to, amount, quantum);
    return d;
}

/* The places [from, to) of a column; devices are sorted by it. */
static size_t fit_column_end(const struct cluster_device *devices, size_t count, size_t from)
{
    size_t to = from;

    while (to < count && devices[to].column == devices[from].column)
        to++;
    return to;
}

static bool fit_check_devices(const struct cluster *c, const struct slot_request *req,
                              const struct cluster_device *devices, size_t count)
{
    for (size_t from = 0, to; from < count; from = to) {
        int64_t amount = req->amounts[devices[from].column];

        to = fit_column_end(devices, count, from);
        if (amount > 0 && fit_find_split(c, req, devices, from, to, amount).parts == SIZE_MAX)
            return false;
    }
    return true;
}

/* ---- what devices lack ---- */

static int fit_compare_free(const void *a, const void *b)
{
    const struct cluster_device *x = a, *y = b;

    if (x->free != y->free)
        return x->free > y->free ? -1 : 1;
    return (x->unused > y->unused) - (x->unused < y->unused);
}

/* Of those with one quantum; most free come first. False if they could never hold it. */
static bool fit_find_shortage_of(const struct cluster *c, const struct slot_request *req,
                                 const struct cluster_device *devices, size_t count, int64_t amount,
                                 uint8_t quantum, struct shortage *ret)
{
    struct device_split d = fit_split_least(c, req, devices, 0, count, amount, quantum);

    if (d.parts == SIZE_MAX)
        return false;
    fit_set_parts(&d, amount);
    *ret = (struct shortage){ .parts = (int64_t)d.parts,
                              .each = d.each + (d.rest > 0) * d.unit,
                              .most = -1,
                              .sum = fit_sum_to_level(req, devices, 0, count, &d, INT64_MAX) };
    ret->is_whole = quantum == 0 && ret->each == AMOUNT_ONE;
    for (size_t i = 0; i < count; i++) {
        int64_t free = AQ_MAX(devices[i].free, 0);

        if (!fit_is_usable(req, &devices[i], quantum))
            continue;
        ret->ready += free >= ret->each;
        if (free < ret->each && ret->usable < ret->parts)
            ret->missing += ret->each - free;
        if (free < ret->each && ret->most < 0) {
            ret->most = free;
            ret->device = devices[i].unused;
        }
        ret->usable++;
    }
    if (ret->usable < ret->parts) /* how many more is not to be multiplied out */
        ret->missing = AQ_MAX(ret->missing + ret->each, amount - ret->sum);
    if (req->may_split)
        ret->missing = AQ_MAX(amount - ret->sum, 0);
    return true;
}

bool fit_find_shortage(const struct cluster *c, const struct slot_request *req,
                       struct cluster_device *devices, size_t count, int64_t amount,
                       struct shortage *ret)
{
    int64_t below = INT64_MAX, finest = 0;
    uint8_t quantum = 0;
    bool is_found = false;

    *ret = (struct shortage){ .most = -1 };
    qsort(devices, count, sizeof(*devices), fit_compare_free);
    while (fit_next_quantum(c, devices, 0, count, &below, &quantum)) {
        struct shortage here;

        finest = c->quanta[quantum];
        if (!fit_find_shortage_of(c, req, devices, count, amount, quantum, &here)
            || (is_found && here.missing >= ret->missing))
            continue;
        *ret = here;
        is_found = true;
    }
    if (!is_found)
        *ret = (struct shortage){ .missing = amount, .most = -1, .finest = finest };
    return ret->missing > 0;
}

bool fit_check_row(const struct cluster *c, const struct slot_request *req, const int64_t *free,
                   const struct cluster_device *devices, size_t device_count)
{
    if (req->unknown)
        return false;
    for (size_t i = 0; i < c->width; i++)
        if (req->amounts[i] > 0 && free[i] < req->amounts[i])
            return false;
    return fit_check_devices(c, req, devices, device_count);
}

/* By the devices [from, to) of one slot: as the sum of what those have free that could be used. Where
 * one device holds an amount, what is left on each is worth nothing.
 */
static int64_t fit_count_on_devices(const struct slot_request *req,
                                    const struct cluster_device *devices, size_t from, size_t to,
                                    int64_t amount)
{
    int64_t sum = 0, whole = 0;
    bool is_on_one = !req->may_split;

    for (size_t i = from; i < to; i++) {
        if (!(req->models >> devices[i].model & 1))
            continue;
        is_on_one = is_on_one && devices[i].capacity >= amount;
        sum += AQ_MAX(devices[i].free, 0);
        whole += AQ_MAX(devices[i].free, 0) / amount;
    }
    return is_on_one ? whole : sum / amount;
}

uint32_t fit_count_row(const struct cluster *c, const struct slot_request *req, const int64_t *free,
                       const struct cluster_device *devices, size_t device_count)
{
    int64_t count = UINT16_MAX;

    if (req->unknown)
        return 0;
    for (size_t i = 0; i < c->width; i++)
        if (req->amounts[i] > 0)
            count = AQ_MIN(count, free[i] > 0 ? free[i] / req->amounts[i] : 0);
    for (size_t from = 0, to; from < device_count; from = to) {
        int64_t amount = req->amounts[devices[from].column];

        to = fit_column_end(devices, device_count, from);
        if (amount > 0)
            count = AQ_MIN(count, fit_count_on_devices(req, devices, from, to, amount));
    }
    return (uint32_t)count;
}

/* The fitting device with the least free that is not taken yet. */
static size_t fit_best_device(const struct slot_request *req, const struct cluster_device *devices,
                              size_t from, size_t to, int64_t amount, uint8_t quantum,
                              const struct device_part *taken, size_t taken_count)
{
    size_t best = SIZE_MAX;

    for (size_t i = from; i < to; i++) {
        bool is_taken = false;

        if (!fit_is_usable(req, &devices[i], quantum) || devices[i].free < amount
            || (best != SIZE_MAX && devices[i].free >= devices[best].free))
            continue;
        for (size_t t = 0; t < taken_count && !is_taken; t++)
            is_taken = taken[t].device == i;
        if (!is_taken)
            best = i;
    }
    return best;
}

/* The parts of an uneven split, the larger ones from those that have most free. How many. */
static size_t fit_take_unevenly(const struct slot_request *req,
                                const struct cluster_device *devices, size_t from, size_t to,
                                struct device_split d, struct device_part *ret)
{
    size_t taken = 0;

    for (size_t i = to; i-- > from;) {
        int64_t part;

        if (!fit_is_usable(req, &devices[i], d.quantum) || devices[i].free < d.unit)
            continue;
        part = AQ_MIN(devices[i].free - devices[i].free % d.unit, d.each);
        if (d.rest > 0 && devices[i].free >= d.each + d.unit) {
            part += d.unit;
            d.rest--;
        }
        if (part > 0)
            ret[taken++] = (struct device_part){ (uint32_t)i, part };
    }
    assert(d.rest == 0);
    return taken;
}

int fit_choose_devices(const struct cluster *c, const struct slot_request *req,
                       const struct cluster_device *devices, size_t count, int device,
                       struct device_part *ret)
{
    size_t taken = 0;

    for (size_t from = 0, to; from < count; from = to) {
        int64_t amount = req->amounts[devices[from].column];
        struct device_split d;

        to = fit_column_end(devices, count, from);
        if (amount <= 0)
            continue;
        d = fit_find_split(c, req, devices, from, to, amount);
        if (d.parts == SIZE_MAX)
            return -ENOSPC;
        if (d.is_uneven) {
            taken += fit_take_unevenly(req, devices, from, to, d, ret + taken);
            continue;
        }
        for (size_t p = 0; p < d.parts; p++) {
            int64_t part = d.each + ((int64_t)p < d.rest) * d.unit;
            size_t at = d.parts == 1 && device >= (int)from && device < (int)to
                                && devices[device].quantum == d.quantum
                            ? (size_t)device
                            : fit_best_device(req, devices, from, to, part, d.quantum, ret, taken);

            if (at == SIZE_MAX)
                return -ENOSPC;
            ret[taken++] = (struct device_part){ (uint32_t)at, part };
            amount -= part;
        }
        assert(amount == 0); /* the parts are what was asked for */
    }
    return (int)taken;
}

bool fit_check_state(const struct cluster *c, const struct slot_request *req,
                     const struct node_state *s)
{
    return req->booking == s->booking
           && (!req->architecture || !s->architecture || req->architecture == s->architecture)
           && !(req->volumes & ~s->volumes)
           && fit_check_row(c, req, s->free, s->devices, s->device_count);
}

/* Is there room only if what would go on one device, or in the least parts, is split further? */
static bool fit_needs_split(const struct cluster *c, const struct slot_request *req,
                            const struct node_state *s)
{
    struct slot_request whole = *req;

    whole.may_split = false;
    return req->may_split && !fit_check_devices(c, &whole, s->devices, s->device_count);
}

/* Slots that are free and not wanted. */
static int fit_count_unutilized(const struct cluster *c, const struct slot_request *req,
                                const struct node_state *s)
{
    int count = 0;

    for (size_t i = 0; i < c->columns; i++)
        count += s->free[i] > 0 && req->amounts[i] == 0;
    return count;
}

static struct fit *fit_cache_slot(const struct cluster *c, struct slot_request *req, uint32_t state)
{
    if (state >= req->fit_count) {
        uint32_t count = AQ_MAX(state + 1,
                                (uint32_t)AQ_MIN(c->state_cap, (size_t)req->fit_count * 2));
        struct fit *grown = aq_realloc(req->fits, count * sizeof(*grown));

        memset(grown + req->fit_count, 0, (count - req->fit_count) * sizeof(*grown));
        req->fits = grown;
        req->fit_count = count;
    }
    return &req->fits[state];
}

const struct fit *cluster_compute_fit(const struct cluster *c, struct slot_request *req,
                                      uint32_t state, const struct selector *selector)
{
    const struct node_state *s = &c->states[state];
    const struct selector_ops *ops = selector->ops;
    struct fit *fit = fit_cache_slot(c, req, state);

    *fit = (struct fit){ .generation = s->generation,
                         .epoch = c->epoch,
                         .device = -1,
                         .has_room = fit_check_state(c, req, s) };
    if (!fit->has_room)
        return fit;
    fit->is_split = fit_needs_split(c, req, s);
    fit->is_bound = ops->upper_bound != NULL;
    if (ops->upper_bound)
        fit->score = ops->upper_bound(selector->data, c, req, s);
    else if (ops->score)
        fit->score = ops->score(selector->data, c, req, s, &fit->device);
    else if (ops->compare)
        fit->score = fit_count_unutilized(c, req, s);
    return fit;
}

const struct fit *cluster_fit(const struct cluster *c, struct slot_request *req, uint32_t state,
                              const struct selector *selector)
{
    struct fit *fit = (struct fit *)(uintptr_t)cluster_fit_bound(c, req, state, selector);

    if (fit->is_bound) {
        assert(fit->has_room);
        fit->score = selector->ops->score(selector->data, c, req, &c->states[state], &fit->device);
        fit->is_bound = false;
    }
    return fit;
}
