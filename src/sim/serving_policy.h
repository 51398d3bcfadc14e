/* SPDX-License-Identifier: Apache-2.0 */
/* serving_policy.h - ways to decide how many replicas a service has, to compare
 *
 *   aliquot   serving/autoscale.h with the given rules, each second
 *   hpa       Kubernetes' horizontal pod autoscaler: each 15 s ceil(in flight / (0.7 * slots)), nothing
 *             within 10 %, down to the highest of the last 300 s
 *   knative   its defaults: each 2 s the mean of 60 s over 0.7 * slots, or of 6 s while that is at
 *             least twice what is ready; at most half less at a time
 */
#ifndef AQ_SIM_SERVING_POLICY_H
#define AQ_SIM_SERVING_POLICY_H

#include <stdbool.h>

#include "base/error.h"
#include "serving/autoscale.h"

#define SERVING_POLICIES_MAX 3
#define SERVING_TICK_USEC INT64_C(1000000) /* how often a policy is asked */

/* What a policy sees. */
struct serving_view {
    struct autoscale_sample sample; /* but for the values of rules */
    int64_t slots;                  /* requests that one replica answers at a time */
    double in_flight_mean;          /* since the policy was asked last */
    double rate, latency, use;      /* likewise; NAN = unknown */
};

struct serving_policy; /* with what it remembers */

struct serving_policy_ops {
    const char *name;
    void (*decide)(struct serving_policy *p, const struct serving_view *view,
                   struct autoscale_wish *ret);
};

/* -EINVAL lists the known ones. */
int serving_policy_find(const char *name, const struct serving_policy_ops **ret,
                        struct aq_error *err);
/* 'scaling' is borrowed. */
struct serving_policy *serving_policy_new(const struct autoscale *scaling);
void serving_policy_free(struct serving_policy *p);
AQ_DEFINE_CLEANUP(struct serving_policy, serving_policy_free)

#endif
