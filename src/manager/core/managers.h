/* SPDX-License-Identifier: Apache-2.0 */
/* managers.h - the managers of the cluster, as the leader sees them; the rules of core.h hold here
 *
 * A manager is a row, made when it joined; the leader's own is made when it begins to lead.
 * Standbys are connected by the agents' link as FRONT_MANAGER.
 */
#ifndef AQ_MANAGER_CORE_MANAGERS_H
#define AQ_MANAGER_CORE_MANAGERS_H

#include "manager/core/core.h"

struct core_manager {
    const char *name;
    const char *link, *api; /* where others reach it: host:port, URL */
    const char *version;
    bool is_leader, is_connected; /* the leader is connected, to itself */
    int64_t heard_usec; /* wall clock: when bytes came last from it; 0 = not under this leader */
};

/* All by name. */
void core_each_manager(const struct core *core,
                       void (*fn)(void *data, const struct core_manager *manager), void *data);

/* Number of this leader, and since when it leads (wall clock); 0 and 0 with a database in a file.
 */
int64_t core_get_epoch(const struct core *core, int64_t *ret_taken_usec);

/* Accept the manager no longer: its connection ends, and it does not lead again. -ENOENT; -EBUSY
 * for the leader itself.
 */
void core_remove_manager(struct core *core, const char *name, const struct audit_who *by,
                         core_done_fn done, void *data);

#endif
