/* run.h - a scheduler made of a snapshot, inside src/sched */
#ifndef AQ_SCHED_RUN_H
#define AQ_SCHED_RUN_H

#include "sched/state.h"

/* With everything but the sessions that wait. */
int run_begin(const struct sched_snapshot *snap, struct sched **ret, struct aq_error *err);

#endif
