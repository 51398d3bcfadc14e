/* SPDX-License-Identifier: Apache-2.0 */
/* statistics.h - what kernels and agents use, as their agents said last; part of
 * core.h, whose rules hold here
 *
 * It lives in memory; a row of a coarse series is written for each kernel and
 * agent every quarter of an hour, a few at a time (how long it is kept: retention.h). What
 * a kernel used all in all is kept with it when it ends.
 */
#ifndef AQ_MANAGER_CORE_STATISTICS_H
#define AQ_MANAGER_CORE_STATISTICS_H

#include "base/uuid.h"
#include "model/measured.h"

struct core;

/* NULL if it is not alive or was never measured. */
const struct measured *core_kernel_measured(const struct core *core, const struct uuid *kernel_id);

struct device_measured {
    char *id;
    struct measured measured;
};

struct agent_measured {
    struct measured node;
    struct device_measured *devices;
    size_t count, cap;
    int64_t heard_usec, interval_usec; /* monotonic; how long until it speaks again */
};

/* NULL if it is not known, or has not said anything for four intervals. */
const struct agent_measured *core_agent_measured(const struct core *core, const char *agent_id);

/* {"node":{metric:…},"devices":{metric:{device:…}}}, empty ones for NULL. */
void agent_measured_write(const struct agent_measured *m, struct jsonw *w);

#endif
