/* SPDX-License-Identifier: Apache-2.0 */
/* retention_job.h - the job that removes old rows; what others want of it is in core/retention.h */
#ifndef AQ_MANAGER_CORE_RETENTION_RETENTION_JOB_H
#define AQ_MANAGER_CORE_RETENTION_RETENTION_JOB_H

#include <stdint.h>

struct core;

/* Each second; 'now' is monotonic. */
void retention_tick(struct core *core, int64_t now);

#endif
