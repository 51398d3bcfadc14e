/* SPDX-License-Identifier: Apache-2.0 */
/* serving_replay.h - replay requests to a model service under a policy of scaling
 *
 * A replica starts for a while, then answers as many requests at a time as it has slots; each takes a
 * time that its tokens determine. Requests wait in one queue, and go to the ready replica with the
 * fewest under way. A replica that is to end finishes those first. With shares, slots are
 * proportional to the share.
 */
#ifndef AQ_SIM_SERVING_REPLAY_H
#define AQ_SIM_SERVING_REPLAY_H

#include "base/error.h"
#include "serving/autoscale.h"
#include "sim/request_trace.h"
#include "sim/serving_policy.h"

#define SERVING_REPLICAS_MAX 1024
#define SERVING_DECISIONS_MAX 100000 /* that are kept; further ones are counted */

struct serving_model {
    int64_t slots;
    int64_t start_usec;
    int64_t prompt_usec, output_usec; /* of 1000 tokens */
    int64_t replicas_min, replicas_max;
};

struct serving_decision {
    int64_t usec, replicas, share_micro;
    char reason[160];
};

struct serving_result {
    size_t requests, waited; /* more than a second */
    double wait_mean_sec, wait_p99_sec, wait_max_sec;
    double replica_seconds; /* of the largest share */
    int64_t replicas_max;   /* at a time, with those that start or end */
    struct serving_decision *decisions;
    size_t decision_count, decisions_in_all;
};

/* Contents only. */
void serving_result_done(struct serving_result *result);

void serving_replay(const struct request_trace *arrivals, const struct serving_model *model,
                    const struct autoscale *scaling, const struct serving_policy_ops *policy,
                    struct serving_result *ret);

#endif
