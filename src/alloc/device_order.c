/* SPDX-License-Identifier: Apache-2.0 */
/* device_order.c - the order in which devices are offered: a merge of NUMA groups, each of which is
 * sorted already, made device by device for as long as a plan wants more.
 */
#include "alloc/alloc_map_internal.h"

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

void device_order_begin(struct device_order *order, struct alloc_map *map,
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

void device_order_restrict(struct device_order *order, size_t first, size_t count)
{
    order->groups = order->map->order_groups + first;
    order->count = count;
    for (size_t i = 0; i < count; i++)
        order->heads[i] = 0;
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

struct map_device *device_order_next(struct device_order *order)
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
