/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_map_check.c - the invariants of an allocation map, checked as a whole in debug builds */
#include <assert.h>

#include "alloc/alloc_map_internal.h"

#ifndef NDEBUG
static void map_check_group(const struct alloc_map *map, const struct map_slot *slot,
                            const struct numa_group *group)
{
    int64_t allocated = 0, quanta = 0;

    for (uint32_t i = 0; i < group->count; i++) {
        const struct map_device *d = &map->devices[group->order[i]];

        assert(d->group == group && d->numa_node == group->numa_node);
        assert(d->slot == slot && d->allocated >= 0);
        assert(d->free >= 0 && d->free * slot->quantum <= AQ_MAX(d->capacity, INT64_C(0)));
        if (i > 0) { /* most free first, then declared first */
            const struct map_device *before = &map->devices[group->order[i - 1]];

            assert(before->free > d->free || (before->free == d->free && before < d));
        }
        allocated += d->allocated;
        quanta += d->free;
    }
    assert(allocated == group->allocated && quanta == group->free);
}

void alloc_map_assert_consistent(const struct alloc_map *map)
{
    for (size_t s = 0; s < map->slot_count; s++) {
        const struct map_slot *slot = &map->slots[s];
        int64_t allocated = 0, quanta = 0;
        uint32_t count = 0;

        for (uint32_t g = 0; g < slot->group_count; g++) {
            map_check_group(map, slot, &slot->groups[g]);
            allocated += slot->groups[g].allocated;
            quanta += slot->groups[g].free;
            count += slot->groups[g].count;
        }
        assert(slot->type == SLOT_UNIFIED || count == slot->count);
        assert(allocated == slot->allocated && quanta == slot->free);
    }
    for (size_t i = 0; i < map->device_count; i++)
        assert(map->take[i] == 0); /* nothing is half distributed */
    for (size_t i = 0; i < map->missing_count; i++)
        assert(map->missing[i].item.amount > 0);
}
#endif
