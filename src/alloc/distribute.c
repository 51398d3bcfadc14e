/* SPDX-License-Identifier: Apache-2.0 */
/* distribute.c - how a request is divided over the devices of a slot
 *
 * Everything here counts in quanta: whole units of discrete devices, smallest parts of fractional
 * ones.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "alloc/alloc_map_internal.h"

/* ---- the order in which devices are offered ----
 *
 * A merge of NUMA groups, each of which is sorted already, made device by device for as long as a
 * plan wants more.
 */

/* Groups [first, end) of order_groups, of which the first 'primary' are preferred. */
struct device_order {
    const struct alloc_map *map;
    struct numa_group **groups;
    uint32_t *heads; /* next position in each group */
    size_t count;
    size_t primary;
    bool in_turns; /* primary groups give one device each in turn */
    bool by_free;  /* more free quanta before everything else */
};

/* Stable, as groups lie in the order of their first device. */
static void device_order_sort_groups(struct numa_group **groups, size_t count,
                                     bool (*before)(const struct numa_group *,
                                                    const struct numa_group *, int64_t),
                                     int64_t units)
{
    for (size_t i = 1; i < count; i++) {
        struct numa_group *group = groups[i];
        size_t at = i;

        for (; at > 0 && before(group, groups[at - 1], units); at--)
            groups[at] = groups[at - 1];
        groups[at] = group;
    }
}

static bool device_order_is_less_used(const struct numa_group *a, const struct numa_group *b,
                                      int64_t units)
{
    (void)units;
    return a->allocated != b->allocated ? a->allocated < b->allocated : a->count > b->count;
}

static bool device_order_serves_all_or_is_less_used(const struct numa_group *a,
                                                    const struct numa_group *b, int64_t units)
{
    if ((a->free >= units) != (b->free >= units))
        return a->free >= units;
    return device_order_is_less_used(a, b, units);
}

static bool device_order_is_less_used_or_lower(const struct numa_group *a,
                                               const struct numa_group *b, int64_t units)
{
    (void)units;
    return a->allocated != b->allocated ? a->allocated < b->allocated : a->numa_node < b->numa_node;
}

static bool device_order_is_hinted(const struct affinity_hint *hint, int numa_node)
{
    for (size_t i = 0; i < hint->count; i++)
        if (hint->nodes[i] == numa_node)
            return true;
    return false;
}

/* Start over with groups [first, first + count) of those device_order_begin() ordered. */
static void device_order_restrict(struct device_order *order, size_t first, size_t count)
{
    order->groups = order->map->order_groups + first;
    order->count = count;
    for (size_t i = 0; i < count; i++)
        order->heads[i] = 0;
}

/* Order the slot's groups for a request of 'units'. */
static void device_order_begin(struct device_order *order, struct alloc_map *map,
                               const struct map_slot *slot, const struct affinity_hint *hint,
                               int64_t units)
{
    bool single = map->affinity == ALLOC_SINGLE_NODE;
    size_t rest = slot->group_count;

    *order = (struct device_order){ .map = map,
                                    .groups = map->order_groups,
                                    .heads = map->order_heads };
    order->count = slot->group_count;
    for (size_t i = slot->group_count; i-- > 0;)
        if (hint->count && !device_order_is_hinted(hint, slot->groups[i].numa_node))
            order->groups[--rest] = &slot->groups[i];
    for (size_t i = 0; i < slot->group_count; i++)
        if (!hint->count || device_order_is_hinted(hint, slot->groups[i].numa_node))
            order->groups[order->primary++] = &slot->groups[i];
    order->in_turns = hint->count || !single;
    device_order_sort_groups(order->groups, order->primary,
                             hint->count ? device_order_is_less_used_or_lower
                             : single    ? device_order_serves_all_or_is_less_used
                                         : device_order_is_less_used,
                             units);
    device_order_restrict(order, 0, order->count);
}

static struct map_device *device_order_head(const struct device_order *order, size_t i)
{
    const struct numa_group *group = order->groups[i];
    struct map_device *d;

    if (order->heads[i] == group->count)
        return NULL;
    d = &order->map->devices[group->order[order->heads[i]]];
    return d->free > 0 ? d : NULL;
}

/* Does the head 'a' of group i come before the head 'b' of a later group j? */
static bool device_order_precedes(const struct device_order *order, size_t i,
                                  const struct map_device *a, size_t j, const struct map_device *b)
{
    bool is_rest = i >= order->primary;
    bool differs = is_rest != (j >= order->primary); /* then 'a' is primary, 'b' rest */

    if ((order->by_free || is_rest) && a->free != b->free)
        return a->free > b->free;
    if (differs)
        return true;
    if (is_rest)
        return a < b;
    return !order->in_turns || order->heads[i] <= order->heads[j];
}

/* The next device that has something free, NULL at the end. */
static struct map_device *device_order_next(struct device_order *order)
{
    struct map_device *best = NULL;
    size_t best_group = 0;

    for (size_t i = 0; i < order->count; i++) {
        struct map_device *d = device_order_head(order, i);

        if (d && (!best || !device_order_precedes(order, best_group, best, i, d))) {
            best = d;
            best_group = i;
        }
    }
    if (best)
        order->heads[best_group]++;
    return best;
}

/* ---- how much each gives ---- */

static void distribute_take(struct alloc_map *map, const struct map_device *d, int64_t units)
{
    size_t i = (size_t)(d - map->devices);

    assert(i < map->device_count && units > 0 && units <= d->free);
    map->take[i] = units;
    map->taken[i / 64] |= UINT64_C(1) << (i % 64);
}

static int distribute_fail_insufficient(const struct map_slot *slot, int64_t units,
                                        struct aq_error *err)
{
    char asked[AMOUNT_TEXT_MAX], available[AMOUNT_TEXT_MAX];

    slot_amount_humanize(units * slot->quantum, slot->type, asked);
    slot_amount_humanize(slot->free * slot->quantum, slot->type, available);
    if (strcmp(asked, available) == 0) { /* two decimals do not tell them apart */
        slot_amount_format(units * slot->quantum, slot->type, asked);
        slot_amount_format(slot->free * slot->quantum, slot->type, available);
    }
    return aq_fail_as(err, ENOSPC, "insufficient-resource", slot->name,
                      "%s: %s was asked for, %s is free on %u devices", slot->name, asked,
                      available, slot->count);
}

static void distribute_fill(struct alloc_map *map, struct device_order *order, int64_t units)
{
    while (units > 0) {
        struct map_device *d = device_order_next(order);
        int64_t part;

        assert(d); /* the slot has as much free */
        part = AQ_MIN(units, d->free);

        distribute_take(map, d, part);
        units -= part;
    }
}

static int64_t distribute_free_of(const struct alloc_map *map, uint32_t device)
{
    return map->devices[device].free;
}

/* What the n devices give if none gives more than 'level'. */
static int64_t distribute_sum_to_level(const struct alloc_map *map, const uint32_t *list, size_t n,
                                       int64_t level)
{
    int64_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += AQ_MIN(distribute_free_of(map, list[i]), level);
    return sum;
}

/* Fill all n devices to the highest common level; the first ones that can go
 * one above it take what is left. The parts then differ as little as possible.
 */
static void distribute_to_level(struct alloc_map *map, const uint32_t *list, size_t n,
                                int64_t units)
{
    int64_t low = 0, high = units;

    while (low < high) {
        int64_t level = high - (high - low) / 2;

        if (distribute_sum_to_level(map, list, n, level) <= units)
            low = level;
        else
            high = level - 1;
    }
    units -= distribute_sum_to_level(map, list, n, low);
    for (size_t i = 0; i < n; i++) {
        int64_t space = distribute_free_of(map, list[i]);
        int64_t extra = space > low && units > 0;

        units -= extra;
        if (space > 0 && low + extra > 0)
            distribute_take(map, &map->devices[list[i]], AQ_MIN(space, low) + extra);
    }
}

/* Discrete devices: one each to as many as possible, then more in equal parts. */
static void distribute_discrete_evenly(struct alloc_map *map, struct device_order *order,
                                       int64_t units)
{
    struct map_device *d;
    int64_t n = 0;

    while (n < units && (d = device_order_next(order)))
        map->list[n++] = (uint32_t)(d - map->devices);
    distribute_to_level(map, map->list, (size_t)n, units);
}

/* The least difference between the largest and the smallest part if the n
 * devices, most free first, give 'units' together; -1 if they cannot. Devices
 * that have less than an equal part give all they have, the others share.
 */
static int64_t distribute_spread(const struct alloc_map *map, const uint32_t *list, size_t n,
                                 int64_t units)
{
    int64_t k = (int64_t)n, left = units, largest, smallest;

    while (k > 0 && distribute_free_of(map, list[k - 1]) <= (left - 1) / k) {
        left -= distribute_free_of(map, list[k - 1]);
        k--;
    }
    if (k == 0)
        return -1;
    largest = (left - 1) / k + 1;
    smallest = k < (int64_t)n ? distribute_free_of(map, list[n - 1]) : left / k;
    return largest - smallest;
}

/* The devices in order that are worth a look, most free first, into map->list. */
static size_t distribute_list_by_free(struct alloc_map *map, struct device_order *order,
                                      int64_t minimum)
{
    struct map_device *d;
    size_t n = 0;

    while ((d = device_order_next(order)) && d->free >= minimum)
        map->list[n++] = (uint32_t)(d - map->devices);
    return n;
}

struct distribution {
    size_t devices;
    int64_t spread;
};

/* The most even division there is, of those the one with the fewest devices.
 * Of n devices, the n with most free divide most evenly, so only they are
 * tried. False if all together have too little.
 */
static bool distribute_find_division(const struct alloc_map *map, size_t count, int64_t units,
                                     struct distribution *ret)
{
    ret->devices = 0;
    for (size_t n = 1; n <= count; n++) {
        int64_t spread = distribute_spread(map, map->list, n, units);

        if (spread < 0 || (ret->devices && spread >= ret->spread))
            continue;
        *ret = (struct distribution){ n, spread };
        if (spread == 0)
            break;
    }
    return ret->devices > 0;
}

/* Take the division from groups [first, first + count) of the order: from the
 * least free devices there that allow it. False if none do.
 */
static bool distribute_from_groups(struct alloc_map *map, const struct map_slot *slot,
                                   struct device_order *order, size_t first, size_t count,
                                   int64_t units, const struct distribution *division)
{
    size_t n = division->devices, total, at = 0;

    device_order_restrict(order, first, count);
    total = distribute_list_by_free(map, order, slot->minimum);
    /* the spread only grows from window to window */
    while (at + n <= total && distribute_spread(map, map->list + at, n, units) == division->spread)
        at++;
    if (at == 0)
        return false;
    distribute_to_level(map, map->list + at - 1, n, units);
    return true;
}

static int distribute_fraction_evenly(struct alloc_map *map, const struct map_slot *slot,
                                      struct device_order *order, int64_t units,
                                      struct aq_error *err)
{
    size_t groups = order->count;
    struct distribution division;

    order->by_free = true;
    if (!distribute_find_division(map, distribute_list_by_free(map, order, slot->minimum), units,
                                  &division))
        return distribute_fail_insufficient(slot, units, err);
    if (order->primary < groups) {
        if (distribute_from_groups(map, slot, order, 0, order->primary, units, &division))
            return 0;
    } else if (map->affinity == ALLOC_SINGLE_NODE && division.devices > 1) {
        /* as few neighbouring nodes as possible, the most used ones first */
        for (size_t m = 1; m < groups; m++)
            for (size_t first = groups - m + 1; first-- > 0;)
                if (distribute_from_groups(map, slot, order, first, m, units, &division))
                    return 0;
    }
    (void)distribute_from_groups(map, slot, order, 0, groups, units, &division);
    return 0;
}

/* Can n devices share so that no two parts differ by more than one quantum? */
static bool distribute_divides_over(const struct alloc_map *map, const struct map_slot *slot,
                                    int64_t units, int64_t n)
{
    int64_t part = units / n, extra = units % n, high = 0, low = 0;

    for (uint32_t i = slot->first; i < slot->first + slot->count; i++) {
        high += distribute_free_of(map, i) > part;
        low += distribute_free_of(map, i) == part;
    }
    return high >= extra && high + low >= n;
}

/* The guard against fragmentation: one device if the largest could serve the
 * request when empty, else any number of them in equal parts.
 */
static int distribute_check_fragmentation(const struct alloc_map *map, const struct map_slot *slot,
                                          int64_t units, struct aq_error *err)
{
    char asked[AMOUNT_TEXT_MAX];
    int64_t largest = 0, n, last;

    for (uint32_t i = slot->first; i < slot->first + slot->count; i++)
        largest = AQ_MAX(largest, map->devices[i].capacity / slot->quantum);
    n = largest ? (units - 1) / largest + 1 : 1;
    last = units <= largest ? n : slot->count;
    for (; n <= last; n++)
        if (distribute_divides_over(map, slot, units, n))
            return 0;
    slot_amount_humanize(units * slot->quantum, slot->type, asked);
    return aq_fail_as(err, ENOSPC, "fractional-resource-fragmented", slot->name,
                      "%s: no %s of %u devices can give %s in equal parts; allow fragmentation or"
                      " wait until a device is free",
                      slot->name, units <= largest ? "one" : "number", slot->count, asked);
}

int alloc_distribute(struct alloc_map *map, const struct map_slot *slot, int64_t units,
                     bool forbid_fragmentation, const struct affinity_hint *hint,
                     struct aq_error *err)
{
    struct device_order order;
    int r;

    if (slot->fractional && forbid_fragmentation) {
        r = distribute_check_fragmentation(map, slot, units, err);
        if (r < 0)
            return r;
    }
    if (slot->free < units)
        return distribute_fail_insufficient(slot, units, err);
    device_order_begin(&order, map, slot, hint, units);
    if (slot->fractional && slot->strategy == ALLOC_EVENLY)
        return distribute_fraction_evenly(map, slot, &order, units, err);
    if (slot->strategy == ALLOC_EVENLY)
        distribute_discrete_evenly(map, &order, units);
    else
        distribute_fill(map, &order, units);
    return 0;
}

int alloc_distribute_over(struct alloc_map *map, const struct map_slot *slot, size_t n,
                          int64_t units)
{
    int64_t room = 0;

    for (size_t i = 0; i < n; i++) {
        if (distribute_free_of(map, map->list[i]) <= 0)
            return -ENOSPC;
        room += distribute_free_of(map, map->list[i]);
    }
    if (units < (int64_t)n || units > room)
        return -ENOSPC;
    if (slot->strategy == ALLOC_EVENLY)
        distribute_to_level(map, map->list, n, units);
    for (size_t i = 0; slot->strategy == ALLOC_FILL && i < n; i++) {
        int64_t rest = units
                       - ((int64_t)(n - i) - 1); /* something is left for each of the others */
        int64_t part = AQ_MIN(rest, distribute_free_of(map, map->list[i]));

        distribute_take(map, &map->devices[map->list[i]], part);
        units -= part;
    }
    return 0;
}
