/* SPDX-License-Identifier: Apache-2.0 */
/* autoscale.h - how many replicas a service needs, and of which share
 *
 * A caller measures, each second or when something changes, and asks; the answer is a number of
 * replicas with a reason. Pure: the same samples give the same answers, so `aliquot sim --serving`
 * replays them. As JSON (model_service.scaling):
 *
 *     {"window": 300, "idle": 600, "share": {"min": 0.25, "max": 1, "quantum": 0.25},
 *      "rules": [{"signal": "in_flight", "target": 8}]}
 *
 * Rules are either targets or steps, not both in one service.
 *
 * A target is the value that one replica should have. Demand is counted in replicas:
 *
 *     a sum over the service (in_flight, rate, a query):        value / (fill * target)
 *     a mean over ready replicas (latency, use, a metric):      ready * value / (fill * target)
 *
 * where a mean within 10 % of its target counts as the target. The largest demand of all rules counts,
 * and of all times in the window: more replicas are wanted at once, fewer only when none of the last
 * 300 s needed them. Replicas that start are part of what is wanted, and no measure includes them, so
 * waiting for them wants no more. A service without requests has none after 'idle', if it may; loading
 * the first replica does not count, as a large model may take longer than that.
 *
 * With a share, demand is counted in replicas of the largest share: a replica gets a larger share
 * first, and others come when one of the largest share is not enough; they go in the reverse order.
 * A replica that cannot grow where it is counts as much as it has.
 *
 * A step is Backend.AI's rule: beyond a threshold replicas are added or removed, then the rule rests
 * for its cooldown. The first rule that changes something wins.
 */
#ifndef AQ_SERVING_AUTOSCALE_H
#define AQ_SERVING_AUTOSCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"

#define AUTOSCALE_RULES_MAX 16
#define AUTOSCALE_BYTES_MAX (32 << 10) /* of the JSON */
#define AUTOSCALE_WINDOW_USEC (INT64_C(300) * 1000000)
#define AUTOSCALE_IDLE_USEC (INT64_C(600) * 1000000)
#define AUTOSCALE_COOLDOWN_USEC (INT64_C(300) * 1000000)
#define AUTOSCALE_GAP_USEC (INT64_C(60) * 1000000) /* longer without a sample is a new start */

enum autoscale_signal {
    AUTOSCALE_IN_FLIGHT,  /* "in_flight": requests under way and in queues, of the service */
    AUTOSCALE_RATE,       /* "rate": requests a second, of the service */
    AUTOSCALE_LATENCY,    /* "latency": seconds until a request is answered, mean */
    AUTOSCALE_USE,        /* "use": of the GPU share, 0 to 1, mean over replicas */
    AUTOSCALE_METRIC,     /* "metric": 'name' of 'source', mean over replicas */
    AUTOSCALE_PROMETHEUS, /* "prometheus": 'query', of the service or, with is_mean, a replica */
    AUTOSCALE_SIGNAL_COUNT
};

struct autoscale_rule {
    enum autoscale_signal signal;
    const char *id;     /* of a rule that clients name; NULL = none */
    const char *source; /* of a metric: "kernel" or "inference_framework" */
    const char *name;   /* of a metric */
    const char *path;   /* of an inference_framework's page of metrics; NULL = "/metrics" */
    int64_t port;       /* of that page; 0 = the port of the replica */
    const char *query;  /* PromQL, with one number as its result */
    bool
        is_mean; /* the value is one replica's: latency, use, metric, or a query "per": "replica" */
    bool is_step;
    double target, fill; /* of a target: 'fill' is the part of it that is planned for */
    /* Of a step: above and below thresholds, NAN = none; reaching one counts if 'is_inclusive'. */
    double above, below;
    int64_t above_step, below_step; /* replicas; negative = fewer */
    bool is_inclusive;
    int64_t cooldown_usec;
    int64_t replicas_min, replicas_max; /* that the step goes to; -1 = those of the service */
};

struct autoscale {
    struct autoscale_rule *rules;
    size_t rule_count;
    int64_t window_usec, idle_usec;
    int64_t share_min_micro, share_max_micro, share_quantum_micro; /* 0 = shares stay */
};

/* Read and check. Texts are of 'arena'. -EINVAL, -E2BIG: the field is "scaling.rules[0].target". */
int autoscale_parse(const char *text, size_t len, struct arena *arena, struct autoscale *ret,
                    struct aq_error *err) AQ_UNTRUSTED;
void autoscale_write(const struct autoscale *a, struct jsonw *w);

#define AUTOSCALE_BUCKETS 61 /* of the window, one more than it has */

/* What is kept between samples, in memory; zeroed = nothing was seen yet, so the present number of
 * replicas counts as needed for one window. 'fired_usec' may be filled in from what was stored.
 */
struct autoscale_state {
    bool is_started;
    int64_t last_usec;                /* of the last sample */
    int64_t busy_usec;                /* of the last request or demand */
    int64_t bucket;                   /* number of the newest one: time / width */
    double demand[AUTOSCALE_BUCKETS]; /* highest of each bucket, by number modulo */
    bool has_fired[AUTOSCALE_RULES_MAX];
    int64_t fired_usec[AUTOSCALE_RULES_MAX]; /* of steps */
};

struct autoscale_sample {
    int64_t now_usec;                           /* monotonic; a jump back counts as no time */
    int64_t replicas_min, replicas_max, wanted; /* of the service */
    int64_t ready;
    bool is_loading;     /* none is ready, and one that never failed is starting */
    int64_t share_micro; /* wanted of each replica; 0 = none */
    const int64_t
        *limits_micro; /* the largest share that each replica can have where it is now, the
                                     one that goes first last; NULL = share_max_micro */
    size_t limit_count;
    double in_flight;                   /* with those that wait; NAN = not known */
    int64_t arrived;                    /* requests since the last sample */
    double values[AUTOSCALE_RULES_MAX]; /* of each rule; NAN = not known */
};

struct autoscale_wish {
    int64_t replicas; /* within the bounds of the service */
    int64_t share_micro;
    int rule; /* that decided; -1 = none */
    char reason[160];
};

/* Take a sample, at least each AUTOSCALE_GAP_USEC, and say what is wanted. A value that is not known,
 * infinite or (of a target) negative never lowers the wish.
 */
void autoscale_decide(const struct autoscale *a, struct autoscale_state *state,
                      const struct autoscale_sample *sample, struct autoscale_wish *ret);

#endif
