/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_map.h - the devices of one node and what is allocated on them
 *
 * A map is built once from the node's devices, as the agent found them, and
 * then gives whole kernels their devices: all slots of a request or none.
 * Amounts are exact; a device never gets more than its capacity, what is
 * granted is what was asked for, and releasing a grant is its exact inverse.
 * The same state and request always give the same grant.
 *
 * Order of devices, when several would do:
 *  1. Kinds (the device part of slot names) take their turn as in
 *     'allocation_order'; accelerators it does not name come before cpu.
 *  2. The first kind asked for sees its NUMA nodes with least allocated first
 *     (then more devices, then first declared; with ALLOC_SINGLE_NODE, nodes
 *     that can serve the whole request precede the others). A later kind sees
 *     the nodes that the kind before it used, interleaved, then the rest.
 *  3. Within a node: most free first, then first declared.
 *  FILL, and EVENLY on discrete devices, walk that order. EVENLY on
 *  fractional devices wants, in this order: the least difference between the
 *  largest and the smallest part, the fewest devices, the preferred nodes
 *  (ALLOC_SINGLE_NODE: as few as possible), the least free devices that do
 *  (best fit), and of equals the last in the walk.
 *
 * Devices of one slot may differ in their quantum. A request then goes to
 * those of one quantum alone: of the quanta that divide the amount the largest
 * where the request fits, so that finer ones are left for requests that need them.
 *
 * Devices of different slots that have the same kind and id are the same
 * piece of hardware (cuda.shares beside cuda.device): while it is held under
 * one slot name, it is not offered under another.
 *
 * Not thread-safe. Allocating, releasing and failing use no heap once the
 * grant has room.
 */
#ifndef AQ_ALLOC_MAP_H
#define AQ_ALLOC_MAP_H

#include "alloc/grant.h"

enum alloc_strategy { ALLOC_EVENLY, ALLOC_FILL };
enum alloc_affinity { ALLOC_INTERLEAVED, ALLOC_SINGLE_NODE };

/* How a slot's devices are divided. */
struct alloc_slot {
    const char *name;
    enum slot_type type;
    enum alloc_strategy strategy;
    int64_t quantum; /* fractional if > 0: the smallest part of a device. 0 = discrete: whole
                        units (SLOT_BYTES: bytes) */
    int64_t minimum; /* fractional and EVENLY: devices with less free are left alone; 0 = none */
};

struct alloc_device {
    const char *id;
    const char *slot_name; /* one of the slots */
    int64_t capacity; /* less what is reserved (alloc/system_reserved.h); SLOT_UNIQUE: AMOUNT_ONE */
    int numa_node;    /* -1 = not known, a node of its own */
    int64_t quantum;  /* of a fractional slot's device; 0 = the slot's */
};

/* Everything is copied by alloc_map_new(). */
struct alloc_config {
    const struct alloc_slot *slots;
    size_t slot_count;
    const struct alloc_device *devices;
    size_t device_count;
    const char *const *allocation_order; /* NULL-terminated kinds ("cuda", "cpu"), or NULL */
    /* NULL-terminated list of NULL-terminated sets of slot names or patterns
     * with '*'; a request may name only one slot of each set. May be NULL.
     */
    const char *const *const *exclusive;
    enum alloc_affinity affinity;
};

struct alloc_map;

/* -EINVAL with the slot or device as field: a duplicate, a name or capacity
 * that cannot be.
 */
int alloc_map_new(const struct alloc_config *config, struct alloc_map **ret, struct aq_error *err);
void alloc_map_free(struct alloc_map *map);
AQ_DEFINE_CLEANUP(struct alloc_map, alloc_map_free)

struct alloc_request {
    const struct slots *slots;
    bool forbid_fragmentation; /* fractional: only parts that differ by no more than one quantum,
                                  and one device if one device's capacity would do */
    /* What was decided elsewhere: of a slot that it names, all comes from the devices that it
     * names, from each the amount that it names. NULL = nothing.
     */
    const struct alloc_grant *chosen;
};

/* Give a kernel all it asks for. *ret is replaced; it lists unified devices
 * too. On failure neither the map nor *ret has changed, err->field is the
 * slot, and err->kind one of
 *   unsupported-resource            no such slot here
 *   insufficient-resource           less is free (-ENOSPC), also on a chosen device alone
 *   fractional-resource-fragmented  enough is free but in too many pieces (-ENOSPC)
 *   not-multiple-of-quantum         cannot be divided so finely
 *   invalid-resource-combination    two slots of one exclusive set
 *   invalid-resource-argument       a fraction of a whole device, a negative amount, other
 *                                   than one of a unique device, any of a unified one,
 *                                   chosen devices with another amount than is asked for
 */
int alloc_map_allocate(struct alloc_map *map, const struct alloc_request *request,
                       struct alloc_grant *ret, struct aq_error *err);

/* What 'grant', which is held, would be with other amounts of its fractional slots. 'wanted' has
 * the whole amount of every slot of it; the map stays as it is, *ret is replaced. It keeps its
 * devices, and each of them keeps a part. How they share an amount is as when it was given: EVENLY
 * as even as their room allows, what remains to those that have most, FILL one after another. So
 * an amount may also move from one of them to another. Errors as alloc_map_allocate(), with the
 * slot as field; the text says how much would do.
 */
int alloc_map_resize(struct alloc_map *map, const struct alloc_grant *grant,
                     const struct slots *wanted, struct alloc_grant *ret, struct aq_error *err);

/* Take a grant back. -EINVAL, nothing changed, if it is not held as it says. */
int alloc_map_release(struct alloc_map *map, const struct alloc_grant *grant, struct aq_error *err);

/* Note what is held already, as found in resource.txt after a restart. Slots
 * and devices that the node no longer has are noted too, and a device may be
 * held beyond a capacity that has shrunk: nothing more is offered there until
 * it is released. -EINVAL for a negative amount, -EOVERFLOW, with nothing
 * changed.
 */
int alloc_map_apply(struct alloc_map *map, const struct alloc_grant *grant, struct aq_error *err);

/* What the devices of each slot are together; *ret is replaced. */
void alloc_map_sum(const struct alloc_map *map, struct slots *ret);

struct alloc_device_state {
    const char *id;
    const char *slot_name;
    enum slot_type type;
    int numa_node;
    int64_t quantum;  /* the smallest part of it; whole units and bytes: 0 */
    int64_t capacity; /* 0 for what the node no longer has */
    int64_t allocated;
    bool known;          /* false: only noted by alloc_map_apply() */
    const char *held_as; /* the other slot name it is held under, or NULL */
};

/* for (size_t i = 0; alloc_map_device(map, i, &state); i++): devices as
 * declared, then those not known. Pointers are good until the map changes.
 */
bool alloc_map_device(const struct alloc_map *map, size_t i, struct alloc_device_state *ret);

/* The gpu_alloc_map of the API: {"<device>":"0.80",…}, two decimals, of every
 * accelerator that has something allocated, except slots with a minor part
 * (slices of a device).
 */
void alloc_map_write_gpu(const struct alloc_map *map, struct jsonw *w);

#endif
