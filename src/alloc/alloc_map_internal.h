/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_map_internal.h - inside an allocation map
 *
 * Devices lie by slot and, within a slot, as declared, so an index is also the
 * declaration order. The devices of a slot on one NUMA node are a NUMA group, which
 * keeps them sorted by free quanta at all times: a request looks only at the
 * devices it takes.
 */
#ifndef AQ_ALLOC_MAP_INTERNAL_H
#define AQ_ALLOC_MAP_INTERNAL_H

#include "alloc/alloc_map.h"
#include "base/map.h"

/* One piece of hardware: the devices of one kind and id, under whatever slot. */
struct physical_device {
    struct map_device *devices; /* linked by 'sibling' */
    uint32_t holders;           /* slot names under which something is allocated */
};

struct map_device {
    struct physical_device *hardware;
    struct map_device *sibling;
    struct map_slot *slot;
    struct numa_group *group; /* NULL for a unified device: it is never chosen */
    int64_t capacity, allocated;
    int64_t free; /* whole quanta that may be offered now */
    int numa_node;
    char id[DEVICE_ID_MAX + 1];
};

struct numa_group {
    uint32_t *order; /* device indices: most free first, then declared first */
    uint32_t count;
    int numa_node;
    int64_t allocated; /* amount */
    int64_t free;      /* quanta */
};

/* A kind's slots are neighbours, in the order in which they take their turn. A
 * slot whose devices differ in their quantum has one of these for each quantum,
 * neighbours, the largest first.
 */
struct map_slot {
    const char *name; /* interned */
    enum slot_type type;
    enum alloc_strategy strategy;
    bool fractional;
    int64_t quantum;
    int64_t minimum;       /* quanta a device must have free to be looked at; at least 1 */
    int64_t least;         /* the same as an amount; 0 = none */
    uint32_t exclusive;    /* bit per exclusive set */
    uint32_t first, count; /* devices */
    struct numa_group *groups;
    uint32_t group_count;
    int64_t free;      /* quanta */
    int64_t allocated; /* amount */
};

/* What is held of slots and devices that the node does not have. */
struct missing_device {
    struct grant_item item;
    struct physical_device *hardware; /* NULL if no slot has the device */
};

struct alloc_map {
    struct map_slot *slots;
    size_t slot_count;
    struct map_device *devices;
    size_t device_count;
    struct physical_device *hardware;
    struct numa_group *groups;
    uint32_t *order;  /* the groups' parts */
    struct map by_id; /* "kind/id" -> struct physical_device */
    struct missing_device *missing;
    size_t missing_count, missing_cap;
    enum alloc_affinity affinity;

    /* the request in progress */
    struct alloc_grant pending; /* has room for every device */
    int64_t *take;              /* quanta per device; all 0 between requests */
    uint64_t *taken;            /* a bit per device with take > 0 */
    uint32_t *list;             /* devices in the order in which they are offered */
    struct numa_group **order_groups;
    uint32_t *order_heads;
    int *hint_nodes; /* of the kind before, then of this kind */
};

/* The slot, or the first of its states; NULL if there is none. */
struct map_slot *alloc_map_find_slot(const struct alloc_map *map, const char *name);

/* One of several states of one slot: the next one, or NULL. */
static inline struct map_slot *alloc_map_next_slot(const struct alloc_map *map,
                                                   const struct map_slot *slot)
{
    const struct map_slot *next = slot + 1;

    return next < map->slots + map->slot_count && next->name == slot->name
               ? (struct map_slot *)(uintptr_t)next
               : NULL;
}

/* The hardware of that kind and id, or NULL. */
struct physical_device *alloc_map_find_hardware(const struct alloc_map *map, const char *slot_name,
                                                const char *id);

/* NULL if the node has it not. */
struct map_device *alloc_map_find_device(const struct alloc_map *map,
                                         const struct grant_item *item);

/* Change what is allocated on a device, and what follows from it. */
void alloc_device_add(struct alloc_map *map, struct map_device *d, int64_t amount);

/* ---- alloc_map_check.c ---- */

/* Debug builds: devices, groups and slots agree, orders are sorted, and nothing is half
 * distributed. Not during a request.
 */
#ifdef NDEBUG
static inline void alloc_map_assert_consistent(const struct alloc_map *map)
{
    (void)map;
}
#else
void alloc_map_assert_consistent(const struct alloc_map *map);
#endif

/* ---- distribute.c: how much each device gives ---- */

/* The NUMA nodes that the kind before used; 'count' 0 for the first kind. */
struct affinity_hint {
    int *nodes;
    size_t count;
};

/* Note in map->take and map->taken where 'units' quanta come from. On failure
 * nothing is noted. The request's arguments have been checked.
 */
int alloc_distribute(struct alloc_map *map, const struct map_slot *slot, int64_t units,
                     bool forbid_fragmentation, const struct affinity_hint *hint,
                     struct aq_error *err);

/* The same from the first n devices of map->list alone, which are most free first, and from
 * each of them something. -ENOSPC if they have less, or are more than 'units'.
 */
int alloc_distribute_over(struct alloc_map *map, const struct map_slot *slot, size_t n,
                          int64_t units);

#endif
