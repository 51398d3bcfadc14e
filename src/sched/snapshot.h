/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.h - a scheduler made of a snapshot, inside src/sched */
#ifndef AQ_SCHED_SNAPSHOT_H
#define AQ_SCHED_SNAPSHOT_H

#include "sched/scheduler.h"

/* With everything but the sessions that wait. */
int sched_from_snapshot(const struct sched_snapshot *snap, struct sched **ret,
                        struct aq_error *err);

#endif
