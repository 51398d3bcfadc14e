/* SPDX-License-Identifier: Apache-2.0 */
/* retention.h - how long rows are kept, and the job that removes old ones; part of
 * core.h, whose rules hold here
 *
 * Once an hour, for the first time ten minutes after the start, and when it is asked
 * for, each entity that has a limit is gone through, a piece after the other, with
 * pauses in which others write.
 */
#ifndef AQ_MANAGER_CORE_RETENTION_H
#define AQ_MANAGER_CORE_RETENTION_H

#include "store/retention.h"

struct audit_who;
struct core;

struct core_retention {
    int64_t keep_usec;   /* 0 = forever */
    int64_t before_usec; /* what is older goes now (wall clock); 0 = nothing */
    bool is_running;     /* it is being removed, or will be at once */
};
struct core_retention core_get_retention(const struct core *core, enum retention_entity entity);

/* Begin to remove the old rows of these (bits 1u << RETENTION_...), as far as it is not
 * under way, once the entry of the audit log is durable: then 'done' is called. -EBUSY while the
 * cluster is being restored.
 */
void core_run_retention(struct core *core, unsigned entities, const struct audit_who *by,
                        store_done_fn done, void *data);

#endif
