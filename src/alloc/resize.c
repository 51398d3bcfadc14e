/* SPDX-License-Identifier: Apache-2.0 */
/* resize.c - other amounts of what a grant holds
 *
 * The map is as if it held nothing while
 * its parts are planned, by the rules of any request, but on its devices alone.
 */
#include <errno.h>
#include <string.h>

#include "alloc/alloc_map_internal.h"

static int64_t resize_held_of(const struct alloc_grant *grant, const char *slot_name)
{
    int64_t sum = 0;

    for (size_t i = 0; i < grant->count; i++)
        if (strcmp(grant->items[i].slot_name, slot_name) == 0)
            sum += grant->items[i].amount;
    return sum;
}

/* Most free first, then declared first. */
static void resize_list_add(struct alloc_map *map, size_t count, const struct map_device *d)
{
    size_t at = count;

    for (; at > 0 && map->devices[map->list[at - 1]].free < d->free; at--)
        map->list[at] = map->list[at - 1];
    map->list[at] = (uint32_t)(d - map->devices);
}

/* The devices of the slot's items into map->list; how many, or -EINVAL. */
static int resize_list_devices(struct alloc_map *map, const struct alloc_grant *grant,
                               const char *name, const struct map_slot **ret, struct aq_error *err)
{
    int count = 0;

    for (size_t i = 0; i < grant->count; i++) {
        const struct grant_item *item = &grant->items[i];
        const struct map_device *d;

        if (strcmp(item->slot_name, name) != 0)
            continue;
        d = alloc_map_find_device(map, item);
        if (!d || !d->slot->fractional)
            return aq_fail_as(err, EINVAL, "invalid-resource-argument", name,
                              d ? "%s: device '%s' is not given in parts"
                                : "%s: device '%s' is not here any more",
                              name, item->device_id);
        if (count && d->slot != *ret)
            return aq_fail_as(err, EINVAL, "invalid-resource-argument", name,
                              "%s: the smallest "
                              "parts of its devices differ, so no amount can be divided over them",
                              name);
        *ret = d->slot;
        resize_list_add(map, (size_t)count++, d);
    }
    return count;
}

static int resize_fail_quantum(const struct map_slot *slot, int64_t amount, struct aq_error *err)
{
    char asked[AMOUNT_TEXT_MAX], quantum[AMOUNT_TEXT_MAX];

    return aq_fail_as(err, EINVAL, "not-multiple-of-quantum", slot->name,
                      "%s: %s is not a multiple"
                      " of %s, the smallest part of its devices",
                      slot->name, slot_amount_format(amount, slot->type, asked),
                      slot_amount_format(slot->quantum, slot->type, quantum));
}

/* "ask for 0.4 or more": each device keeps one part at least. */
static int resize_fail_space(const struct alloc_map *map, const struct map_slot *slot, size_t count,
                             int64_t amount, struct aq_error *err)
{
    char asked[AMOUNT_TEXT_MAX], least[AMOUNT_TEXT_MAX], most[AMOUNT_TEXT_MAX];
    int64_t room = 0;

    for (size_t i = 0; i < count; i++)
        room += map->devices[map->list[i]].free * slot->quantum;
    slot_amount_format(amount, slot->type, asked);
    slot_amount_format((int64_t)count * slot->quantum, slot->type, least);
    slot_amount_format(room, slot->type, most);
    if (amount > room)
        return aq_fail_as(err, ENOSPC, "insufficient-resource", slot->name,
                          "%s: %s was asked for,"
                          " but it stays on its %s, where it can have %s at most",
                          slot->name, asked, count == 1 ? "device" : "devices", most);
    if (amount <= 0)
        return aq_fail_as(err, EINVAL, "invalid-resource-argument", slot->name,
                          "%s: %s is no part"
                          " of a device; end the session to free it",
                          slot->name, asked);
    return aq_fail_as(err, EINVAL, "invalid-resource-argument", slot->name,
                      "%s: %s is too little"
                      " for %zu devices, each of which keeps a part; ask for %s or more",
                      slot->name, asked, count, least);
}

static int resize_slot(struct alloc_map *map, const struct alloc_grant *grant, const char *name,
                       int64_t amount, struct aq_error *err)
{
    const struct map_slot *slot = NULL;
    int count = resize_list_devices(map, grant, name, &slot, err);

    if (count < 0)
        return count;
    if (count == 0)
        return aq_fail_as(err, EINVAL, "invalid-resource-argument", name,
                          "%s: it has none that"
                          " could become more or less",
                          name);
    if (amount == AMOUNT_INFINITE || amount % slot->quantum)
        return resize_fail_quantum(slot, amount, err);
    if (alloc_distribute_over(map, slot, (size_t)count, amount / slot->quantum) < 0)
        return resize_fail_space(map, slot, (size_t)count, amount, err);
    return 0;
}

/* What resize_slot() has noted becomes the parts of 'fresh'. */
static void resize_take_distribution(struct alloc_map *map, const char *name,
                                     struct alloc_grant *fresh)
{
    for (size_t i = 0; i < fresh->count; i++) {
        struct grant_item *item = &fresh->items[i];
        const struct map_device *d = strcmp(item->slot_name, name) == 0
                                         ? alloc_map_find_device(map, item)
                                         : NULL;
        size_t at = d ? (size_t)(d - map->devices) : 0;

        if (!d)
            continue;
        item->amount = map->take[at] * d->slot->quantum;
        map->take[at] = 0;
        map->taken[at / 64] &= ~(UINT64_C(1) << (at % 64));
    }
}

static int resize_all(struct alloc_map *map, const struct alloc_grant *grant,
                      const struct slots *wanted, struct alloc_grant *fresh, struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < wanted->count; i++) {
        const struct slot *slot = &wanted->items[i];

        if (slot->amount == resize_held_of(grant, slot->name))
            continue;
        r = resize_slot(map, grant, slot->name, slot->amount, err);
        if (r == 0)
            resize_take_distribution(map, slot->name, fresh);
    }
    for (size_t i = 0; r == 0 && i < grant->count; i++)
        if (grant->items[i].amount && !slots_get(wanted, grant->items[i].slot_name))
            r = aq_fail_as(err, EINVAL, "invalid-resource-argument", grant->items[i].slot_name,
                           "%s: it keeps something of each kind that it has",
                           grant->items[i].slot_name);
    return r;
}

int alloc_map_resize(struct alloc_map *map, const struct alloc_grant *grant,
                     const struct slots *wanted, struct alloc_grant *ret, struct aq_error *err)
{
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant fresh = { .items = NULL };
    int r;

    alloc_grant_copy(&fresh, grant);
    r = alloc_map_release(map, grant, err);
    if (r < 0)
        return r;
    r = resize_all(map, grant, wanted, &fresh, err);
    (void)alloc_map_apply(map, grant, NULL); /* what was held a moment ago has room */
    if (r == 0)
        AQ_SWAP(*ret, fresh);
    return r;
}
