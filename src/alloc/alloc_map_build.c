/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_map_build.c - builds a map from the description of a node */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <string.h>

#include "alloc/alloc_map_internal.h"
#include "base/memory.h"

#define EXCLUSIVE_SETS_MAX 32

void alloc_map_free(struct alloc_map *map)
{
    if (!map)
        return;
    free(map->slots);
    free(map->devices);
    free(map->hardware);
    free(map->groups);
    free(map->order);
    map_done(&map->by_id);
    free(map->missing);
    alloc_grant_done(&map->pending);
    free(map->take);
    free(map->taken);
    free(map->list);
    free(map->order_groups);
    free(map->order_heads);
    free(map->hint_nodes);
    free(map);
}

struct map_slot *alloc_map_find_slot(const struct alloc_map *map, const char *name)
{
    for (size_t i = 0; i < map->slot_count; i++)
        if (map->slots[i].name == name || strcmp(map->slots[i].name, name) == 0)
            return &map->slots[i];
    return NULL;
}

/* "kind/id" into 'buf'; returns its length. */
#define HARDWARE_KEY_MAX (SLOT_NAME_MAX + 1 + DEVICE_ID_MAX + 1)
static size_t map_build_hardware_key(const char *slot_name, const char *id,
                                     char buf[HARDWARE_KEY_MAX])
{
    size_t kind = slot_name_device_len(slot_name), len = strlen(id);

    memcpy(buf, slot_name, kind);
    buf[kind] = '/';
    memcpy(buf + kind + 1, id, len);
    return kind + 1 + len;
}

struct physical_device *alloc_map_find_hardware(const struct alloc_map *map, const char *slot_name,
                                                const char *id)
{
    char key[HARDWARE_KEY_MAX];

    return map_get(&map->by_id, key, map_build_hardware_key(slot_name, id, key));
}

static void alloc_tables(struct alloc_map *map)
{
    size_t slots = map->slot_count, devices = map->device_count;

    map->slots = aq_alloc_array(slots + devices + 1,
                                sizeof(*map->slots)); /* each may have a quantum */
    map->devices = aq_alloc_array(devices + 1, sizeof(*map->devices));
    map->hardware = aq_alloc_array(devices + 1, sizeof(*map->hardware));
    map->groups = aq_alloc_array(devices + 1, sizeof(*map->groups));
    map->order = aq_alloc_array(devices + 1, sizeof(*map->order));
    map->pending.items = aq_alloc_array(devices + 1, sizeof(*map->pending.items));
    map->pending.cap = devices + 1;
    map->take = aq_alloc_array(devices + 1, sizeof(*map->take));
    map->taken = aq_alloc_array(devices / 64 + 1, sizeof(*map->taken));
    map->list = aq_alloc_array(devices + 1, sizeof(*map->list));
    map->order_groups = aq_alloc_array(devices + 1, sizeof(struct numa_group *));
    map->order_heads = aq_alloc_array(devices + 1, sizeof(*map->order_heads));
    map->hint_nodes = aq_alloc_array(2 * devices + 1, sizeof(*map->hint_nodes));
}

static bool map_build_is_kind(const char *slot_name, const char *kind)
{
    size_t len = slot_name_device_len(slot_name);

    return strlen(kind) == len && memcmp(slot_name, kind, len) == 0;
}

static bool map_build_is_same_kind(const char *a, const char *b)
{
    size_t len = slot_name_device_len(a);

    return slot_name_device_len(b) == len && memcmp(a, b, len) == 0;
}

/* When a slot takes its turn: as listed; what is not listed just before cpu;
 * cpu and mem, if not listed, last.
 */
static int map_build_turn_of(const char *slot_name, const char *const *order)
{
    int cpu = INT_MAX - 1;

    for (int i = 0; order && order[i]; i++) {
        if (map_build_is_kind(slot_name, order[i]))
            return 2 * i;
        if (strcmp(order[i], "cpu") == 0)
            cpu = 2 * i - 1;
    }
    if (map_build_is_kind(slot_name, "cpu") || map_build_is_kind(slot_name, "mem"))
        return INT_MAX;
    return cpu;
}

static uint32_t map_build_exclusive_sets(const char *slot_name, const char *const *const *sets)
{
    uint32_t bits = 0;

    for (size_t i = 0; sets && sets[i] && i < EXCLUSIVE_SETS_MAX; i++)
        for (const char *const *pattern = sets[i]; *pattern; pattern++)
            if (fnmatch(*pattern, slot_name, 0) == 0)
                bits |= UINT32_C(1) << i;
    return bits;
}

static int map_build_check_slot(const struct alloc_slot *s, struct aq_error *err)
{
    if (s->quantum < 0 || s->minimum < 0 || s->quantum == AMOUNT_INFINITE)
        return aq_fail_field(err, EINVAL, s->name,
                             "%s: quantum and minimum must be finite and not negative", s->name);
    if (s->quantum > 0 && s->type != SLOT_COUNT)
        return aq_fail_field(err, EINVAL, s->name, "%s: only counted devices can be fractional",
                             s->name);
    return 0;
}

/* Put one slot among those before it: kinds stay together, in their turn. */
static int map_build_add_slot(struct alloc_map *map, const struct alloc_config *config, size_t i,
                              struct aq_error *err)
{
    const struct alloc_slot *s = &config->slots[i];
    const char *name = slot_name_intern(s->name, strlen(s->name));
    const char *const *order = config->allocation_order;
    int turn = map_build_turn_of(s->name, order);
    size_t at = i;
    int r;

    if (!name)
        return aq_fail_field(err, EINVAL, s->name, "'%.64s' is not a slot name", s->name);
    r = map_build_check_slot(s, err);
    if (r < 0)
        return r;
    for (size_t j = 0; j < i; j++)
        if (map->slots[j].name == name)
            return aq_fail_field(err, EINVAL, name, "slot '%s' is given twice", name);
    while (at > 0 && !map_build_is_same_kind(map->slots[at - 1].name, name))
        at--;
    for (at = at ? at : i; at > 0 && map_build_turn_of(map->slots[at - 1].name, order) > turn;)
        at--;
    memmove(&map->slots[at + 1], &map->slots[at], (i - at) * sizeof(*map->slots));
    map->slots[at] = (struct map_slot){
        .name = name,
        .type = s->type,
        .strategy = s->strategy,
        .fractional = s->quantum > 0,
        .quantum = s->quantum > 0          ? s->quantum
                   : s->type == SLOT_BYTES ? 1
                                           : AMOUNT_ONE,
        .minimum = 1,
        .exclusive = map_build_exclusive_sets(name, config->exclusive),
    };
    if (s->quantum > 0 && s->minimum > 0)
        map->slots[at].least = s->minimum;
    return 0;
}

static int map_build_check_device(const struct alloc_map *map, const struct alloc_device *dev,
                                  struct aq_error *err)
{
    const struct map_slot *slot = alloc_map_find_slot(map, dev->slot_name);

    if (!device_id_is_valid(dev->id, strlen(dev->id)))
        return aq_fail_field(err, EINVAL, dev->id,
                             "%s: '%.64s' is not a device id: 1 to %d of A-Za-z0-9._/+@-",
                             dev->slot_name, dev->id, DEVICE_ID_MAX);
    if (!slot)
        return aq_fail_field(err, EINVAL, dev->id,
                             "device '%s' is of slot '%.64s', which is not"
                             " configured",
                             dev->id, dev->slot_name);
    if (dev->capacity < 0 || dev->capacity == AMOUNT_INFINITE)
        return aq_fail_field(err, EINVAL, dev->id,
                             "device '%s' of %s: the capacity must be finite and not negative",
                             dev->id, slot->name);
    if (slot->type == SLOT_UNIQUE && dev->capacity != AMOUNT_ONE)
        return aq_fail_field(err, EINVAL, dev->id,
                             "device '%s' of %s: a unique device has a capacity of 1", dev->id,
                             slot->name);
    if (dev->quantum < 0 || dev->quantum == AMOUNT_INFINITE || (dev->quantum && !slot->fractional))
        return aq_fail_field(
            err, EINVAL, dev->id,
            "device '%s' of %s: a quantum is above 0 and for fractional slots only", dev->id,
            slot->name);
    return 0;
}

/* ---- devices with a quantum of their own ---- */

static int64_t map_build_quantum_of(const struct alloc_device *dev, int64_t initial)
{
    return dev->quantum ? dev->quantum : initial;
}

/* The largest quantum below 'below' of the slot's devices; 0 = none. */
static int64_t map_build_next_quantum(const struct alloc_config *config,
                                      const struct map_slot *slot, int64_t initial, int64_t below)
{
    int64_t found = 0;

    for (size_t i = 0; i < config->device_count; i++) {
        int64_t quantum = map_build_quantum_of(&config->devices[i], initial);

        if (quantum > found && quantum < below
            && strcmp(config->devices[i].slot_name, slot->name) == 0)
            found = quantum;
    }
    return found;
}

/* Make one state of each quantum; 'at' becomes the last of them. */
static void map_build_split_slot(struct alloc_map *map, const struct alloc_config *config,
                                 size_t *at)
{
    struct map_slot *slot = &map->slots[*at];
    const int64_t initial = slot->quantum;
    int64_t quantum = slot->fractional ? map_build_next_quantum(config, slot, initial, INT64_MAX)
                                       : 0;

    if (quantum == 0)
        return; /* whole, or no devices */
    slot->quantum = quantum;
    while ((quantum = map_build_next_quantum(config, slot, initial, quantum)) > 0) {
        memmove(slot + 1, slot, (map->slot_count - *at) * sizeof(*slot));
        map->slot_count++;
        slot = &map->slots[++*at];
        slot->quantum = quantum;
    }
}

static void map_build_split_slots(struct alloc_map *map, const struct alloc_config *config)
{
    for (size_t i = 0; i < map->slot_count; i++)
        map_build_split_slot(map, config, &i);
    for (size_t i = 0; i < map->slot_count; i++) {
        struct map_slot *slot = &map->slots[i];

        if (slot->least > 0)
            slot->minimum = (slot->least - 1) / slot->quantum + 1;
    }
}

/* Join the device with those of the same kind and id. */
static int map_build_join_hardware(struct alloc_map *map, struct map_device *d,
                                   struct aq_error *err)
{
    struct physical_device *hardware = alloc_map_find_hardware(map, d->slot->name, d->id);
    char key[HARDWARE_KEY_MAX];

    if (!hardware) {
        hardware = &map->hardware[d - map->devices];
        map_set(&map->by_id, key, map_build_hardware_key(d->slot->name, d->id, key), hardware);
    }
    for (struct map_device *other = hardware->devices; other; other = other->sibling)
        if (other->slot->name == d->slot->name)
            return aq_fail_field(err, EINVAL, d->id, "device '%s' of %s is given twice", d->id,
                                 d->slot->name);
    d->sibling = hardware->devices;
    hardware->devices = d;
    d->hardware = hardware;
    return 0;
}

/* Does the state of a slot have the device? 'initial' is the quantum of those without one. */
static bool map_build_is_of(const struct alloc_device *dev, const struct map_slot *slot,
                            int64_t initial)
{
    return strcmp(dev->slot_name, slot->name) == 0
           && (!slot->fractional || map_build_quantum_of(dev, initial) == slot->quantum);
}

static int64_t map_build_initial_quantum(const struct alloc_config *config,
                                         const struct map_slot *slot)
{
    for (size_t i = 0; i < config->slot_count; i++)
        if (strcmp(config->slots[i].name, slot->name) == 0)
            return config->slots[i].quantum;
    return 0;
}

/* The devices of one state, in their order, behind those of the states before;
 * '*total' is what the slot has so far.
 */
static int map_build_add_devices(struct alloc_map *map, struct map_slot *slot, uint32_t first,
                                 const struct alloc_config *config, int64_t *total,
                                 struct aq_error *err)
{
    int64_t initial = map_build_initial_quantum(config, slot);
    int r;

    slot->first = first;
    for (size_t i = 0; i < config->device_count; i++) {
        const struct alloc_device *dev = &config->devices[i];
        struct map_device *d = &map->devices[first + slot->count];

        if (!map_build_is_of(dev, slot, initial))
            continue;
        d->slot = slot;
        d->numa_node = dev->numa_node;
        d->capacity = slot->type == SLOT_UNIFIED ? 0 : dev->capacity;
        memcpy(d->id, dev->id, strlen(dev->id));
        if (__builtin_add_overflow(*total, d->capacity, total))
            return aq_fail_field(err, EOVERFLOW, d->id, "%s: the capacities add up to too much",
                                 slot->name);
        r = map_build_join_hardware(map, d, err);
        if (r < 0)
            return r;
        slot->count++;
    }
    return 0;
}

static struct numa_group *map_build_find_group(const struct map_slot *slot, int numa_node)
{
    for (uint32_t i = 0; i < slot->group_count; i++)
        if (slot->groups[i].numa_node == numa_node)
            return &slot->groups[i];
    return NULL;
}

/* Group the slot's devices by NUMA node, most capacity first. */
static void map_build_groups(struct alloc_map *map, struct map_slot *slot)
{
    uint32_t *order = &map->order[slot->first];
    struct numa_group *group;

    slot->groups = &map->groups[slot->first];
    if (slot->type == SLOT_UNIFIED)
        return;
    for (uint32_t i = slot->first; i < slot->first + slot->count; i++) {
        group = map_build_find_group(slot, map->devices[i].numa_node);
        if (!group) {
            group = &slot->groups[slot->group_count++];
            group->numa_node = map->devices[i].numa_node;
        }
        group->count++;
        map->devices[i].group = group;
    }
    for (uint32_t i = 0; i < slot->group_count; i++) {
        slot->groups[i].order = order;
        order += slot->groups[i].count;
        slot->groups[i].count = 0;
    }
    for (uint32_t i = slot->first; i < slot->first + slot->count; i++) {
        group = map->devices[i].group;
        group->order[group->count++] = i;
        alloc_device_add(map, &map->devices[i], 0);
    }
}

static int map_build_all(struct alloc_map *map, const struct alloc_config *config,
                         struct aq_error *err)
{
    uint32_t first = 0;
    int64_t total = 0;
    int r;

    for (size_t i = 0; i < config->slot_count; i++) {
        r = map_build_add_slot(map, config, i, err);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < config->device_count; i++) {
        r = map_build_check_device(map, &config->devices[i], err);
        if (r < 0)
            return r;
    }
    map_build_split_slots(map, config);
    for (size_t i = 0; i < map->slot_count; i++) {
        if (i == 0 || map->slots[i].name != map->slots[i - 1].name)
            total = 0;
        r = map_build_add_devices(map, &map->slots[i], first, config, &total, err);
        if (r < 0)
            return r;
        first += map->slots[i].count;
    }
    for (size_t i = 0; i < map->slot_count; i++)
        map_build_groups(map, &map->slots[i]);
    return 0;
}

int alloc_map_new(const struct alloc_config *config, struct alloc_map **ret, struct aq_error *err)
{
    AQ_CLEANUP(alloc_map_freep) struct alloc_map *map = aq_alloc(sizeof(*map));
    int r;

    if (config->device_count >= UINT32_MAX || config->slot_count >= UINT32_MAX)
        return aq_fail(err, EINVAL, "too many devices");
    map->affinity = config->affinity;
    map->slot_count = config->slot_count;
    map->device_count = config->device_count;
    alloc_tables(map);
    r = map_build_all(map, config, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE(map);
    return 0;
}
