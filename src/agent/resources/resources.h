/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - cores, memory and accelerators of this node, and their allocation */
#ifndef AQ_AGENT_RESOURCES_RESOURCES_H
#define AQ_AGENT_RESOURCES_RESOURCES_H

#include "accelhost/accel.h"
#include "agent/resources/claims.h"
#include "agent/settings/settings.h"
#include "alloc/alloc_map.h"

struct resources {
    struct alloc_map *map;
    struct slot_types *types;              /* also of slots that were there once */
    int64_t reserved_cpu, reserved_memory; /* kept for the node: 10^-6 cores, bytes */
    char *slots_json;             /* {"cpu":["count","4"],"mem":["bytes","..."]}: what is offered */
    char *devices_json;           /* [{"id":"0","slot":"cpu","amount":"1"},...]: resources_json.c */
    char *plugins_json;           /* plugins_json.c */
    bool has_real_cores;          /* not more than the machine has */
    bool is_shared;               /* other agents of the machine may offer the same */
    struct claim_device *devices; /* accelerators that this agent offers, cordoned ones too */
    size_t device_count;
    struct arena arena; /* their texts */
};

/* Look at the machine: one cpu device per core that this process may use (or
 * settings->cpus), one mem device "root", each times its overcommit factor,
 * less what is reserved; and the devices of 'accel' (NULL = none) that are in
 * order. Of all that, what offer.h leaves to this agent. 'former' is what was
 * found before, or NULL: its slot types stay known, and with 'only_former'
 * accelerators that it does not have are left out. -EINVAL with the setting as
 * field when nothing would be left.
 */
int resources_init(struct resources *res, const struct settings *settings,
                   const struct accel *accel, const struct resources *former, bool only_former,
                   struct aq_error *err);
void resources_done(struct resources *res);

/* The limit of the memory cgroup of this process, or of the machine. */
int64_t resources_host_memory(void);

/* ---- resources_claim.c ---- */

/* Claim what is offered and what kernels hold. Errors are those of claims_set(). */
int resources_claim(const struct resources *res, const struct settings *settings,
                    struct claims *claims, bool add, struct aq_error *err);
/* Is anything held that is not offered any more? */
bool resources_has_strays(const struct resources *res);

/* ---- resources_json.c ---- */

/* Only slots_json, again: it follows what is held of devices that are gone. -EOVERFLOW. */
int resources_describe_slots(struct resources *res, struct aq_error *err);
/* plugins_json.c: caller frees. */
char *resources_describe_plugins(const struct accel *accel);
/* Fill in all texts from the map and 'accel', of whose devices 'offered' has
 * how much this agent offers, in their order.
 */
int resources_describe(struct resources *res, const struct accel *accel, const int64_t *offered,
                       struct aq_error *err);

#endif
