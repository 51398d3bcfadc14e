/* SPDX-License-Identifier: Apache-2.0 */
/* allocate.c - a whole kernel's request: checked, then given slot by slot, or not at all */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc/alloc_map_internal.h"

static int allocate_fail_argument(const struct map_slot *slot, int64_t amount, const char *why,
                                  struct aq_error *err)
{
    char text[AMOUNT_TEXT_MAX];

    slot_amount_format(amount, slot->type, text);
    return aq_fail_as(err, EINVAL, "invalid-resource-argument", slot->name, "%s: %s %s", slot->name,
                      text, why);
}

/* Does the quantum of any of the slot's devices divide the amount? */
static bool allocate_is_multiple(const struct alloc_map *map, const struct map_slot *slot,
                                 int64_t amount)
{
    for (; slot; slot = alloc_map_next_slot(map, slot))
        if (amount % slot->quantum == 0)
            return true;
    return false;
}

#define QUANTA_TEXT_MAX 120

/* "0.25 or 0.1" into 'text', and the nearest amounts that some device can give; *ret_below 0 if
 * there is none.
 */
static void allocate_find_nearest(const struct alloc_map *map, const struct map_slot *slot,
                                  int64_t amount, char text[QUANTA_TEXT_MAX], int64_t *ret_below,
                                  int64_t *ret_above)
{
    char quantum[AMOUNT_TEXT_MAX];
    size_t len = 0;

    *ret_below = 0;
    *ret_above = INT64_MAX;
    for (; slot; slot = alloc_map_next_slot(map, slot)) {
        int64_t lower = amount - amount % slot->quantum;

        *ret_below = AQ_MAX(*ret_below, lower);
        *ret_above = AQ_MIN(*ret_above, lower + slot->quantum);
        slot_amount_format(slot->quantum, slot->type, quantum);
        if (len < QUANTA_TEXT_MAX) /* what exceeds it is cut off */
            len += (size_t)snprintf(text + len, QUANTA_TEXT_MAX - len, "%s%s", len ? " or " : "",
                                    quantum);
    }
}

/* "ask for 0.2 or 0.3" */
static int allocate_fail_quantum(const struct alloc_map *map, const struct map_slot *slot,
                                 int64_t amount, struct aq_error *err)
{
    char quanta[QUANTA_TEXT_MAX] = "";
    char asked[AMOUNT_TEXT_MAX], below[AMOUNT_TEXT_MAX + 4] = "", above[AMOUNT_TEXT_MAX];
    int64_t lower, upper;

    allocate_find_nearest(map, slot, amount, quanta, &lower, &upper);
    slot_amount_format(amount, slot->type, asked);
    slot_amount_format(upper, slot->type, above);
    if (lower > 0) {
        slot_amount_format(lower, slot->type, below);
        strcat(below, " or ");
    }
    return aq_fail_as(err, EINVAL, "not-multiple-of-quantum", slot->name,
                      "%s: %s is not a multiple of %s, the smallest part of a device here; ask for"
                      " %s%s",
                      slot->name, asked, quanta, below, above);
}

static int allocate_check_amount(const struct alloc_map *map, const struct map_slot *slot,
                                 int64_t amount, struct aq_error *err)
{
    if (amount < 0)
        return allocate_fail_argument(slot, amount, "is negative", err);
    if (amount == AMOUNT_INFINITE)
        return allocate_fail_argument(slot, amount, "cannot be allocated", err);
    if (slot->type == SLOT_UNIFIED)
        return allocate_fail_argument(
            slot, amount, "was asked for, but the device is shared by all and has no amount", err);
    if (slot->type == SLOT_UNIQUE && amount != AMOUNT_ONE)
        return allocate_fail_argument(slot, amount, "was asked for, but only exactly 1 can be had",
                                      err);
    if (allocate_is_multiple(map, slot, amount))
        return 0;
    if (slot->fractional)
        return allocate_fail_quantum(map, slot, amount, err);
    return allocate_fail_argument(slot, amount,
                                  "is a fraction of devices that are only given whole", err);
}

/* No two slots of one exclusive set. */
static int allocate_check_combination(const struct alloc_map *map, const struct slots *request,
                                      const struct map_slot *slot, struct aq_error *err)
{
    for (const struct map_slot *other = map->slots; other < slot; other++)
        if ((other->exclusive & slot->exclusive) && other->name != slot->name
            && slots_get(request, other->name) != 0)
            return aq_fail_as(err, EINVAL, "invalid-resource-combination", slot->name,
                              "%s and %s cannot be asked for together", other->name, slot->name);
    return 0;
}

static int allocate_check_request(const struct alloc_map *map, const struct slots *request,
                                  struct aq_error *err)
{
    int r;

    for (size_t i = 0; i < request->count; i++) {
        const struct slot *item = &request->items[i];

        if (item->amount != 0 && !alloc_map_find_slot(map, item->name))
            return slot_fail_unsupported(item->name, item->amount, err);
    }
    for (size_t i = 0; i < map->slot_count; i++) {
        const struct map_slot *slot = &map->slots[i];
        int64_t amount = slots_get(request, slot->name);

        if (amount == 0 || (i > 0 && slot[-1].name == slot->name))
            continue;
        r = allocate_check_combination(map, request, slot, err);
        if (r < 0 || (r = allocate_check_amount(map, slot, amount, err)) < 0)
            return r;
    }
    return 0;
}

static void allocate_append(struct alloc_map *map, const struct map_device *d, int64_t amount)
{
    struct grant_item *item = &map->pending.items[map->pending.count++];

    assert(map->pending.count <= map->pending.cap);

    item->slot_name = d->slot->name;
    item->type = d->slot->type;
    item->amount = amount;
    memcpy(item->device_id, d->id, sizeof(item->device_id));
}

static void allocate_hint_add(struct affinity_hint *hint, int node)
{
    for (size_t i = 0; i < hint->count; i++)
        if (hint->nodes[i] == node)
            return;
    hint->nodes[hint->count++] = node;
}

/* Turn what distribute.c noted into allocations, in the order of the devices; add
 * their nodes to 'used'.
 */
static void allocate_commit(struct alloc_map *map, const struct map_slot *slot,
                            struct affinity_hint *used)
{
    uint32_t end = slot->first + slot->count;

    for (uint32_t word = slot->first / 64; word * 64 < end; word++) {
        while (map->taken[word]) {
            uint32_t i = word * 64 + (uint32_t)__builtin_ctzll(map->taken[word]);
            int64_t amount = map->take[i] * slot->quantum;

            assert(i < end && map->take[i] > 0 && map->take[i] <= map->devices[i].free);

            map->taken[word] &= map->taken[word] - 1;
            map->take[i] = 0;
            allocate_append(map, &map->devices[i], amount);
            alloc_device_add(map, &map->devices[i], amount);
            allocate_hint_add(used, map->devices[i].numa_node);
        }
    }
}

static bool allocate_is_same_kind(const struct map_slot *a, const struct map_slot *b)
{
    size_t len = slot_name_device_len(a->name);

    return strncmp(a->name, b->name, len) == 0 && slot_name_device_len(b->name) == len;
}

static const struct grant_item *allocate_find_chosen(const struct alloc_request *request,
                                                     const char *slot_name)
{
    for (size_t i = 0; request->chosen && i < request->chosen->count; i++)
        if (strcmp(request->chosen->items[i].slot_name, slot_name) == 0)
            return &request->chosen->items[i];
    return NULL;
}

/* 'd' is NULL if there is no such device (any more). */
static int allocate_fail_chosen(const struct grant_item *item, const struct map_device *d,
                                struct aq_error *err)
{
    char asked[AMOUNT_TEXT_MAX], free[AMOUNT_TEXT_MAX];

    slot_amount_format(item->amount, item->type, asked);
    slot_amount_format(d ? d->free * d->slot->quantum : 0, item->type, free);
    return aq_fail_as(err, ENOSPC, "insufficient-resource", item->slot_name,
                      d ? "%s: %s of device %s was chosen, %s of it is free"
                        : "%s: %s of device %s was chosen, which is not here",
                      item->slot_name, asked, item->device_id, free);
}

/* Take from each device what was chosen of it, 'amount' together, or fail. 'first' is the first of
 * the slot's.
 */
static int allocate_chosen(struct alloc_map *map, const struct alloc_request *request,
                           const struct grant_item *first, int64_t amount,
                           struct affinity_hint *used, struct aq_error *err)
{
    const struct grant_item *end = request->chosen->items + request->chosen->count;
    int64_t left = amount;

    for (const struct grant_item *item = first; item < end; item++)
        if (strcmp(item->slot_name, first->slot_name) == 0
            && (item->amount < 0 || __builtin_sub_overflow(left, item->amount, &left)))
            left = -1;
    if (left != 0)
        return aq_fail_as(err, EINVAL, "invalid-resource-argument", first->slot_name,
                          "%s: other than what was asked for was chosen of device %s",
                          first->slot_name, first->device_id);
    for (const struct grant_item *item = first; item < end; item++) {
        const struct map_device *d;

        if (strcmp(item->slot_name, first->slot_name) != 0)
            continue;
        d = alloc_map_find_device(map, item);
        if (!d || d->free < d->slot->minimum || item->amount % d->slot->quantum)
            return allocate_fail_chosen(item, d, err);
        map->list[0] = (uint32_t)(d - map->devices);
        if (alloc_distribute_over(map, d->slot, 1, item->amount / d->slot->quantum) < 0)
            return allocate_fail_chosen(item, d, err);
        allocate_commit(map, d->slot, used);
    }
    return 0;
}

/* Take the amount from the chosen devices, else from those of the largest quantum that can give it.
 * If none can, the error tells of those of which most is free.
 */
static int allocate_slot(struct alloc_map *map, const struct map_slot *slot,
                         const struct alloc_request *request, const struct affinity_hint *hint,
                         struct affinity_hint *used, struct aq_error *err)
{
    const struct grant_item *chosen = allocate_find_chosen(request, slot->name);
    int64_t amount = slots_get(request->slots, slot->name), most = -1;
    int r = 0;

    if (chosen)
        return allocate_chosen(map, request, chosen, amount, used, err);
    for (; slot; slot = alloc_map_next_slot(map, slot)) {
        struct aq_error why = { 0 };
        int here;

        if (amount % slot->quantum)
            continue;
        here = alloc_distribute(map, slot, amount / slot->quantum, request->forbid_fragmentation,
                                hint, &why);
        if (here == 0) {
            allocate_commit(map, slot, used);
            return 0;
        }
        if (slot->free * slot->quantum <= most)
            continue;
        most = slot->free * slot->quantum;
        r = here;
        if (err)
            *err = why;
    }
    return r;
}

/* Give every slot of the request, kind after kind. A kind that gets something
 * leaves its nodes as the hint for the next one.
 */
static int allocate_all_slots(struct alloc_map *map, const struct alloc_request *request,
                              struct aq_error *err)
{
    struct affinity_hint hint = { .nodes = map->hint_nodes };
    struct affinity_hint used = { .nodes = map->hint_nodes + map->device_count };
    int r;

    for (size_t i = 0; i < map->slot_count; i++) {
        const struct map_slot *slot = &map->slots[i];

        if (i > 0 && slot[-1].name == slot->name)
            continue;
        if (i > 0 && !allocate_is_same_kind(slot - 1, slot) && used.count) {
            struct affinity_hint swap = hint;

            hint = used;
            used = (struct affinity_hint){ .nodes = swap.nodes };
        }
        if (slots_get(request->slots, slot->name) == 0)
            continue;
        r = allocate_slot(map, slot, request, &hint, &used, err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Unified devices belong to every kernel. */
static void allocate_attach_unified(struct alloc_map *map)
{
    for (size_t i = 0; i < map->device_count; i++)
        if (map->devices[i].slot->type == SLOT_UNIFIED)
            allocate_append(map, &map->devices[i], 0);
}

int alloc_map_allocate(struct alloc_map *map, const struct alloc_request *request,
                       struct alloc_grant *ret, struct aq_error *err)
{
    int r = allocate_check_request(map, request->slots, err);

    if (r < 0)
        return r;
    map->pending.count = 0;
    r = allocate_all_slots(map, request, err);
    if (r < 0) {
        (void)alloc_map_release(map, &map->pending, NULL);
        return r;
    }
    allocate_attach_unified(map);
    alloc_grant_copy(ret, &map->pending);
    return 0;
}
