/* SPDX-License-Identifier: Apache-2.0 */
/* serving_metrics.h - metrics of the programs in replicas, which their agents read
 *
 * Every second the scaler names what its rules need; agents hear of it when that has changed, and
 * again when they have connected. Values are in memory: a manager that starts gets them within
 * seconds. Loop's thread only.
 */
#ifndef AQ_MANAGER_SERVING_SERVING_METRICS_H
#define AQ_MANAGER_SERVING_SERVING_METRICS_H

#include "manager/core/services.h"

#define SERVING_METRICS_AGE_USEC (INT64_C(30) * 1000000) /* an older value is not known */

struct serving_metrics;

/* A metric on a page of the program in a replica. Texts are borrowed for the call. */
struct serving_metric {
    const struct session *replica;
    int64_t port;
    const char *path;
    const char *name; /* http/exposition_scan.h */
};

struct serving_metrics *serving_metrics_new(struct core *core);
void serving_metrics_stop(struct serving_metrics *metrics);
/* NULL is fine. */
void serving_metrics_free(struct serving_metrics *metrics);

/* This one is needed. */
void serving_metrics_want(struct serving_metrics *metrics, const struct serving_metric *metric);
/* What was not wanted since the last call is not read any more; agents hear of changes. */
void serving_metrics_flush(struct serving_metrics *metrics);

/* The last value; NAN if none came in the last 30 s, and then *ret_text, unless NULL, says what is
 * known of the reason (else it is NULL), valid until the loop runs again.
 */
double serving_metrics_get(const struct serving_metrics *metrics,
                           const struct serving_metric *metric, const char **ret_text);

#endif
