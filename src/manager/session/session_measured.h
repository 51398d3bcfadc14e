/* SPDX-License-Identifier: Apache-2.0 */
/* session_measured.h - what a session uses: the sum over its kernels */
#ifndef AQ_MANAGER_SESSION_SESSION_MEASURED_H
#define AQ_MANAGER_SESSION_SESSION_MEASURED_H

#include "manager/core/core.h"

/* The sum of a metric; false if none of its kernels has it. On the loop's thread. */
bool session_sum_metric(const struct core *core, const struct session *s, const char *key,
                        struct metric *ret, struct metric_kind *ret_kind);

#endif
