/* map_private.h - inside an allocation map
 *
 * Devices lie by slot and, within a slot, as declared, so an index is also the
 * declaration order. The devices of a slot on one NUMA node are a group, which
 * keeps them sorted by free quanta at all times: a request looks only at the
 * devices it takes.
 */
#ifndef AQ_ALLOC_MAP_PRIVATE_H
#define AQ_ALLOC_MAP_PRIVATE_H

#include "alloc/map.h"
#include "base/map.h"

/* One piece of hardware: the devices of one kind and id, under whatever slot. */
struct hardware {
    struct device *devices; /* linked by 'sibling' */
    uint32_t holders;       /* slot names under which something is allocated */
};

struct device {
    struct hardware *hardware;
    struct device *sibling;
    struct slot_state *slot;
    struct group *group; /* NULL for a unified device: it is never chosen */
    int64_t capacity, allocated;
    int64_t free; /* whole quanta that may be offered now */
    int numa_node;
    char id[DEVICE_ID_MAX + 1];
};

struct group {
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
struct slot_state {
    const char *name; /* interned */
    enum slot_type type;
    enum alloc_strategy strategy;
    bool fractional;
    int64_t quantum;
    int64_t minimum;    /* quanta a device must have free to be looked at; at least 1 */
    int64_t least;      /* the same as an amount; 0 = none */
    uint32_t exclusive; /* bit per exclusive set */
    uint32_t first, count; /* devices */
    struct group *groups;
    uint32_t group_count;
    int64_t free;      /* quanta */
    int64_t allocated; /* amount */
};

/* What is held of slots and devices that the node does not have. */
struct foreign {
    struct grant_item item;
    struct hardware *hardware; /* NULL if no slot has the device */
};

struct alloc_map {
    struct slot_state *slots;
    size_t slot_count;
    struct device *devices;
    size_t device_count;
    struct hardware *hardware;
    struct group *groups;
    uint32_t *order; /* the groups' parts */
    struct map by_id; /* "kind/id" -> struct hardware */
    struct foreign *foreign;
    size_t foreign_count, foreign_cap;
    enum alloc_affinity affinity;

    /* the request in progress */
    struct alloc_grant pending; /* has room for every device */
    int64_t *take;              /* quanta per device; all 0 between requests */
    uint64_t *taken;            /* a bit per device with take > 0 */
    uint32_t *list;             /* devices in the order of the walk */
    struct group **walk_groups;
    uint32_t *walk_heads;
    int *hint_nodes;            /* of the kind before, then of this kind */
};

/* The slot, or the first of its states; NULL if there is none. */
struct slot_state *alloc_map_find_slot(const struct alloc_map *map, const char *name);

/* One of several states of one slot: the next one, or NULL. */
static inline struct slot_state *alloc_map_next_slot(const struct alloc_map *map,
                                                     const struct slot_state *slot)
{
    const struct slot_state *next = slot + 1;

    return next < map->slots + map->slot_count && next->name == slot->name
               ? (struct slot_state *)(uintptr_t)next : NULL;
}

/* The hardware of that kind and id, or NULL. */
struct hardware *alloc_map_find_hardware(const struct alloc_map *map, const char *slot_name,
                                         const char *id);

/* NULL if the node has it not. */
struct device *alloc_map_find_device(const struct alloc_map *map, const struct grant_item *item);

/* Change what is allocated on a device, and what follows from it. */
void alloc_device_add(struct alloc_map *map, struct device *d, int64_t amount);

/* ---- walk.c: the order in which devices are offered ---- */

/* The NUMA nodes that the kind before used; 'count' 0 for the first kind. */
struct affinity_hint {
    int *nodes;
    size_t count;
};

/* Groups [first, end) of walk_groups, of which the first 'primary' are preferred. */
struct walk {
    const struct alloc_map *map;
    struct group **groups;
    uint32_t *heads; /* next position in each group */
    size_t count;
    size_t primary;
    bool in_turns; /* primary groups give one device each in turn */
    bool by_free;  /* more free quanta before everything else */
};

/* Order the slot's groups for a request of 'units'. */
void alloc_walk_begin(struct walk *walk, struct alloc_map *map, const struct slot_state *slot,
                      const struct affinity_hint *hint, int64_t units);

/* Start over with groups [first, first + count) of those alloc_walk_begin() ordered. */
void alloc_walk_restrict(struct walk *walk, size_t first, size_t count);

/* The next device that has something free, NULL at the end. */
struct device *alloc_walk_next(struct walk *walk);

/* ---- plan.c: how much each device gives ---- */

/* Note in map->take and map->taken where 'units' quanta come from. On failure
 * nothing is noted. The request's arguments have been checked.
 */
int alloc_plan_slot(struct alloc_map *map, const struct slot_state *slot, int64_t units,
              bool forbid_fragmentation, const struct affinity_hint *hint, struct aq_error *err);

/* The same from the first n devices of map->list alone, which are most free first, and from
 * each of them something. -ENOSPC if they have less, or are more than 'units'.
 */
int alloc_plan_over(struct alloc_map *map, const struct slot_state *slot, size_t n, int64_t units);

#endif
