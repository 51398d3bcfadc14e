/* resources.h - what this node has: cores and memory, and who got what */
#ifndef AQ_AGENT_RESOURCES_H
#define AQ_AGENT_RESOURCES_H

#include "agent/settings.h"
#include "alloc/map.h"

struct resources {
    struct alloc_map *map;
    struct slot_types *types;
    char *slots_json;   /* {"cpu":["count","4"],"mem":["bytes","..."]}: what is offered */
    char *devices_json; /* [{"id":"0","slot":"cpu","amount":"1"},...] */
};

/* Look at the machine: one cpu device per core that this process may use (or
 * settings->cpus), one mem device "root"; each times its overcommit factor,
 * less what is reserved. -EINVAL with the setting as field when nothing would
 * be left.
 */
int resources_init(struct resources *res, const struct settings *settings, struct aq_error *err);
void resources_done(struct resources *res);

/* The limit of the memory cgroup of this process, or of the machine. */
int64_t resources_host_memory(void);

#endif
