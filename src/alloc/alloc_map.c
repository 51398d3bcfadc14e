/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_map.c - what is held of a node's devices, and what is free */
#include "alloc/alloc_map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "alloc/alloc_map_internal.h"
#include "base/vec.h"

static bool map_is_before(const struct alloc_map *map, uint32_t a, uint32_t b)
{
    const struct map_device *first = &map->devices[a], *second = &map->devices[b];

    return first->free != second->free ? first->free > second->free : a < b;
}

/* Where the device belongs in its group's order; its own place if it is there. */
static uint32_t map_find_place(const struct alloc_map *map, const struct numa_group *group,
                               uint32_t device)
{
    uint32_t low = 0, high = group->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (map_is_before(map, group->order[middle], device))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void map_set_free(struct alloc_map *map, struct map_device *d, int64_t quanta)
{
    uint32_t index = (uint32_t)(d - map->devices), *order = d->group->order, from, to;

    from = map_find_place(map, d->group, index);
    assert(from < d->group->count && order[from] == index);
    d->group->count--;
    memmove(&order[from], &order[from + 1], (d->group->count - from) * sizeof(*order));
    d->group->free += quanta - d->free;
    d->slot->free += quanta - d->free;
    assert(quanta >= 0 && d->group->free >= 0 && d->slot->free >= 0);
    d->free = quanta;
    to = map_find_place(map, d->group, index);
    memmove(&order[to + 1], &order[to], (d->group->count - to) * sizeof(*order));
    order[to] = index;
    d->group->count++;
}

/* Is the hardware held under another slot name than the device's? */
static bool map_is_held_elsewhere(const struct map_device *d)
{
    return d->hardware->holders > (d->allocated > 0);
}

static void map_refresh(struct alloc_map *map, struct map_device *d)
{
    int64_t quanta = 0;

    if (!d->group)
        return;
    if (!map_is_held_elsewhere(d) && d->capacity > d->allocated)
        quanta = (d->capacity - d->allocated) / d->slot->quantum;
    if (quanta != d->free)
        map_set_free(map, d, quanta);
}

/* One slot name more or less holds the hardware. */
static void map_change_holders(struct alloc_map *map, struct physical_device *hardware, bool more)
{
    assert(more || hardware->holders > 0);
    hardware->holders += more ? 1 : -1u;
    for (struct map_device *d = hardware->devices; d; d = d->sibling)
        map_refresh(map, d);
}

void alloc_device_add(struct alloc_map *map, struct map_device *d, int64_t amount)
{
    bool was_held = d->allocated > 0;

    d->allocated += amount;
    d->group->allocated += amount;
    d->slot->allocated += amount;
    assert(d->allocated >= 0 && d->group->allocated >= 0 && d->slot->allocated >= 0);
    if ((d->allocated > 0) != was_held)
        map_change_holders(map, d->hardware, !was_held);
    else
        map_refresh(map, d);
}

struct map_device *alloc_map_find_device(const struct alloc_map *map, const struct grant_item *item)
{
    struct physical_device *hardware = alloc_map_find_hardware(map, item->slot_name,
                                                               item->device_id);

    for (struct map_device *d = hardware ? hardware->devices : NULL; d; d = d->sibling)
        if (strcmp(d->slot->name, item->slot_name) == 0)
            return d;
    return NULL;
}

static struct missing_device *map_find_missing(const struct alloc_map *map,
                                               const struct grant_item *item)
{
    for (size_t i = 0; i < map->missing_count; i++)
        if (strcmp(map->missing[i].item.slot_name, item->slot_name) == 0
            && strcmp(map->missing[i].item.device_id, item->device_id) == 0)
            return &map->missing[i];
    return NULL;
}

static int map_add_missing(struct alloc_map *map, const struct grant_item *item,
                           struct aq_error *err)
{
    struct missing_device *missing = map_find_missing(map, item);
    int64_t sum;

    if (missing) {
        if (__builtin_add_overflow(missing->item.amount, item->amount, &sum))
            return aq_fail_field(err, EOVERFLOW, item->slot_name, "%s: device '%s' holds too much",
                                 item->slot_name, item->device_id);
        missing->item.amount = sum;
        return 0;
    }
    vec_grow(&map->missing, &map->missing_cap, map->missing_count + 1, sizeof(*missing));
    missing = &map->missing[map->missing_count++];
    missing->item = *item;
    missing->hardware = alloc_map_find_hardware(map, item->slot_name, item->device_id);
    if (missing->hardware)
        map_change_holders(map, missing->hardware, true);
    return 0;
}

static int map_apply_item(struct alloc_map *map, const struct grant_item *item,
                          struct aq_error *err)
{
    struct map_device *d = alloc_map_find_device(map, item);
    int64_t sum;

    if (item->amount < 0)
        return aq_fail_field(err, EINVAL, item->slot_name,
                             "%s: device '%s' holds less than nothing", item->slot_name,
                             item->device_id);
    if (item->amount == 0 || (d && !d->group))
        return 0;
    if (!d)
        return map_add_missing(map, item, err);
    if (__builtin_add_overflow(d->slot->allocated, item->amount, &sum))
        return aq_fail_field(err, EOVERFLOW, item->slot_name, "%s: device '%s' holds too much",
                             item->slot_name, item->device_id);
    alloc_device_add(map, d, item->amount);
    return 0;
}

static int map_release_item(struct alloc_map *map, const struct grant_item *item,
                            struct aq_error *err)
{
    struct map_device *d = alloc_map_find_device(map, item);
    struct missing_device *missing = d ? NULL : map_find_missing(map, item);
    int64_t held = d ? d->allocated : missing ? missing->item.amount : 0;

    if (item->amount == 0 || (d && !d->group))
        return 0;
    if (item->amount < 0 || held < item->amount)
        return aq_fail_field(err, EINVAL, item->slot_name,
                             "%s: device '%s' does not hold what is to be released",
                             item->slot_name, item->device_id);
    if (d) {
        alloc_device_add(map, d, -item->amount);
        return 0;
    }
    missing->item.amount -= item->amount;
    if (missing->item.amount == 0) {
        struct physical_device *hardware = missing->hardware;

        map->missing_count--;
        memmove(missing, missing + 1,
                (size_t)(map->missing + map->missing_count - missing) * sizeof(*missing));
        if (hardware)
            map_change_holders(map, hardware, false);
    }
    return 0;
}

int alloc_map_apply(struct alloc_map *map, const struct alloc_grant *grant, struct aq_error *err)
{
    for (size_t i = 0; i < grant->count; i++) {
        int r = map_apply_item(map, &grant->items[i], err);

        if (r < 0) {
            while (i-- > 0)
                (void)map_release_item(map, &grant->items[i], NULL);
            return r;
        }
    }
    alloc_map_assert_consistent(map);
    return 0;
}

int alloc_map_release(struct alloc_map *map, const struct alloc_grant *grant, struct aq_error *err)
{
    for (size_t i = 0; i < grant->count; i++) {
        int r = map_release_item(map, &grant->items[i], err);

        if (r < 0) {
            /* what was held a moment ago has room to be held again */
            while (i-- > 0)
                (void)map_apply_item(map, &grant->items[i], NULL);
            return r;
        }
    }
    alloc_map_assert_consistent(map);
    return 0;
}

void alloc_map_sum(const struct alloc_map *map, struct slots *ret)
{
    int64_t all = 0;

    slots_done(ret);
    for (size_t i = 0; i < map->slot_count; i++) {
        const struct map_slot *slot = &map->slots[i];

        if (i == 0 || slot[-1].name != slot->name)
            all = 0;
        for (uint32_t j = slot->first; j < slot->first + slot->count; j++)
            all += map->devices[j].capacity;
        slots_put(ret, slot->name, all);
    }
}

/* Another slot name under which the hardware is held, or NULL. */
static const char *map_find_other_holder(const struct alloc_map *map,
                                         const struct physical_device *hardware,
                                         const char *slot_name)
{
    for (struct map_device *d = hardware ? hardware->devices : NULL; d; d = d->sibling)
        if (d->slot->name != slot_name && d->allocated > 0)
            return d->slot->name;
    for (size_t i = 0; hardware && i < map->missing_count; i++)
        if (map->missing[i].hardware == hardware && map->missing[i].item.slot_name != slot_name)
            return map->missing[i].item.slot_name;
    return NULL;
}

bool alloc_map_device(const struct alloc_map *map, size_t i, struct alloc_device_state *ret)
{
    if (i < map->device_count) {
        const struct map_device *d = &map->devices[i];

        *ret = (struct alloc_device_state){
            .id = d->id,
            .slot_name = d->slot->name,
            .type = d->slot->type,
            .numa_node = d->numa_node,
            .quantum = d->slot->fractional ? d->slot->quantum : 0,
            .capacity = d->capacity,
            .allocated = d->allocated,
            .known = true,
            .held_as = map_find_other_holder(map, d->hardware, d->slot->name),
        };
        return true;
    }
    i -= map->device_count;
    if (i < map->missing_count) {
        const struct missing_device *missing = &map->missing[i];

        *ret = (struct alloc_device_state){
            .id = missing->item.device_id,
            .slot_name = missing->item.slot_name,
            .type = missing->item.type,
            .numa_node = -1,
            .allocated = missing->item.amount,
            .held_as = map_find_other_holder(map, missing->hardware, missing->item.slot_name),
        };
        return true;
    }
    return false;
}
