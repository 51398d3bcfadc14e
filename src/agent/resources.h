/* resources.h - what this node has: cores, memory and accelerators, and who got what */
#ifndef AQ_AGENT_RESOURCES_H
#define AQ_AGENT_RESOURCES_H

#include "agent/accel/accel.h"
#include "agent/settings.h"
#include "alloc/map.h"

struct resources {
    struct alloc_map *map;
    struct slot_types *types; /* also of slots that were there once */
    int64_t reserved_cpu, reserved_memory; /* kept for the node: 10^-6 cores, bytes */
    char *slots_json;   /* {"cpu":["count","4"],"mem":["bytes","..."]}: what is offered */
    char *devices_json; /* [{"id":"0","slot":"cpu","amount":"1"},...]: resources_text.c */
};

/* Look at the machine: one cpu device per core that this process may use (or
 * settings->cpus), one mem device "root", each times its overcommit factor,
 * less what is reserved; and the devices of 'accel' (NULL = none) that are in
 * order. 'known' are slot types of before, or NULL. -EINVAL with the setting as
 * field when nothing would be left.
 */
int resources_init(struct resources *res, const struct settings *settings,
                   const struct accel *accel, struct slot_types *known, struct aq_error *err);
void resources_done(struct resources *res);

/* The limit of the memory cgroup of this process, or of the machine. */
int64_t resources_host_memory(void);

/* ---- resources_text.c ---- */

/* Fill in slots_json and devices_json from the map and 'accel'. -ENOMEM. */
/* Only slots_json, anew: it follows what is held of devices that are gone. -ENOMEM. */
int resources_describe_slots(struct resources *res, struct aq_error *err);
int resources_describe(struct resources *res, const struct accel *accel, struct aq_error *err);

#endif
