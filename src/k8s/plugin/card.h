/* SPDX-License-Identifier: Apache-2.0 */
/* card.h - the GPUs of this node of which pods get parts */
#ifndef AQ_K8S_PLUGIN_CARD_H
#define AQ_K8S_PLUGIN_CARD_H

#include "accelhost/accel.h"
#include "k8s/device_id.h"

enum resource_kind { RESOURCE_MEMORY, RESOURCE_COMPUTE, RESOURCE_KINDS };

struct card {
    char id[DEVICE_CARD_MAX + 1];
    char model[64];
    const char *slot_name; /* interned; with type and amount what a grant of the whole says */
    enum slot_type slot_type;
    int64_t amount;
    int numa_node; /* -1 = not known */
    bool is_healthy;
    uint32_t units[RESOURCE_KINDS];
    uint32_t free[RESOURCE_KINDS]; /* as last heard of the kubelet, less what was given since */
    struct accel_attachment attachment; /* what a container needs for it, as the plugin said ... */
    int64_t attached_usec;              /* ... at this monotonic time; 0 = never */
};

/* Zero-initialise. In the order of the plugins. */
struct cards {
    struct card *items;
    size_t count, cap;
};

struct card_units {
    int64_t memory_unit; /* bytes */
    int64_t compute_units;
};

/* Replace *cards by what the plugins have now; of a card of the same id stays what it had free.
 * Only whole cards that libaliquot-gpu can hold containers to parts of.
 */
void cards_read(const struct accel *accel, const struct card_units *units, struct cards *cards);
void cards_done(struct cards *cards);

/* NULL if there is none. */
struct card *cards_find(const struct cards *cards, const char *id, size_t len);

#endif
