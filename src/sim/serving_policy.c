/* SPDX-License-Identifier: Apache-2.0 */
/* serving_policy.c - autoscalers to compare */
#include "sim/serving_policy.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"

#define TARGET_PART 0.7 /* of a replica's slots, for hpa and knative */
#define HPA_TICKS 15
#define HPA_TOLERANCE 0.1
#define HPA_LOOKS 21 /* of 300 s, with the present one */
#define KNATIVE_TICKS 2
#define KNATIVE_STABLE 60 /* s */
#define KNATIVE_PANIC 6
#define KNATIVE_PANIC_AT 2.0 /* times what is ready */
#define KNATIVE_DOWN_AT_MOST 2.0

struct serving_policy {
    const struct autoscale *scaling;
    struct autoscale_state state;
    int64_t ticks;
    int64_t wished[HPA_LOOKS];     /* by look modulo */
    double means[KNATIVE_STABLE];  /* in flight, by second modulo */
    int64_t panic_until, panicked; /* tick; the highest wish since the panic began */
};

struct serving_policy *serving_policy_new(const struct autoscale *scaling)
{
    struct serving_policy *p = aq_alloc(sizeof(*p));

    p->scaling = scaling;
    return p;
}

void serving_policy_free(struct serving_policy *p)
{
    free(p);
}

/* ---- aliquot ---- */

static void policy_decide_aliquot(struct serving_policy *p, const struct serving_view *view,
                                  struct autoscale_wish *ret)
{
    struct autoscale_sample sample = view->sample;

    for (size_t i = 0; i < p->scaling->rule_count; i++) {
        const double values[AUTOSCALE_SIGNAL_COUNT] = {
            [AUTOSCALE_IN_FLIGHT] = sample.in_flight,
            [AUTOSCALE_RATE] = view->rate,
            [AUTOSCALE_LATENCY] = view->latency,
            [AUTOSCALE_USE] = view->use,
            [AUTOSCALE_METRIC] = NAN,
            [AUTOSCALE_PROMETHEUS] = NAN,
        };

        sample.values[i] = values[p->scaling->rules[i].signal];
    }
    autoscale_decide(p->scaling, &p->state, &sample, ret);
}

/* ---- hpa ---- */

static int64_t policy_clamp(const struct serving_view *view, double replicas)
{
    int64_t whole = (int64_t)ceil(AQ_MIN(replicas, 1e6) - 1e-9);

    return AQ_MAX(AQ_MIN(whole, view->sample.replicas_max), AQ_MAX(view->sample.replicas_min, 1));
}

static void policy_decide_hpa(struct serving_policy *p, const struct serving_view *view,
                              struct autoscale_wish *ret)
{
    const struct autoscale_sample *s = &view->sample;
    double needed = s->in_flight / (TARGET_PART * (double)view->slots);
    int64_t now = s->wanted, highest = 0;

    *ret = (struct autoscale_wish){ s->wanted, s->share_micro, -1, "between two looks" };
    if (p->ticks++ % HPA_TICKS)
        return;
    if (s->wanted == 0 || fabs(needed / (double)s->wanted - 1) > HPA_TOLERANCE)
        now = policy_clamp(view, needed);
    p->wished[p->ticks / HPA_TICKS % HPA_LOOKS] = now;
    for (size_t i = 0; i < HPA_LOOKS; i++)
        highest = AQ_MAX(highest, p->wished[i]);
    ret->replicas = now > s->wanted ? now : AQ_MIN(s->wanted, highest);
    (void)snprintf(ret->reason, sizeof(ret->reason), "%.6g in flight need %.2f replicas",
                   s->in_flight, needed);
}

/* ---- knative ---- */

static double policy_mean(const struct serving_policy *p, int64_t seconds)
{
    int64_t count = AQ_MIN(seconds, p->ticks);
    double sum = 0;

    for (int64_t i = 1; i <= count; i++)
        sum += p->means[(p->ticks - i) % KNATIVE_STABLE];
    return count ? sum / (double)count : 0;
}

static void policy_decide_knative(struct serving_policy *p, const struct serving_view *view,
                                  struct autoscale_wish *ret)
{
    const struct autoscale_sample *s = &view->sample;
    double target = TARGET_PART * (double)view->slots, stable, panic;
    double ready = (double)AQ_MAX(s->ready, 1);

    *ret = (struct autoscale_wish){ s->wanted, s->share_micro, -1, "between two looks" };
    p->means[p->ticks++ % KNATIVE_STABLE] = view->in_flight_mean;
    if (p->ticks % KNATIVE_TICKS)
        return;
    stable = ceil(policy_mean(p, KNATIVE_STABLE) / target);
    panic = ceil(policy_mean(p, KNATIVE_PANIC) / target);
    if (panic / ready >= KNATIVE_PANIC_AT) {
        if (p->ticks > p->panic_until)
            p->panicked = s->wanted;
        p->panic_until = p->ticks + KNATIVE_STABLE;
    }
    stable = AQ_MAX(stable, floor(ready / KNATIVE_DOWN_AT_MOST));
    ret->replicas = policy_clamp(view, stable);
    if (p->ticks <= p->panic_until) {
        p->panicked = AQ_MAX(p->panicked, policy_clamp(view, AQ_MAX(panic, stable)));
        ret->replicas = p->panicked;
    }
    (void)snprintf(ret->reason, sizeof(ret->reason), "%s: means of 60 s and 6 s need %.0f and %.0f",
                   p->ticks <= p->panic_until ? "panic" : "stable", stable, panic);
}

/* ---- all ---- */

static const struct serving_policy_ops policies[SERVING_POLICIES_MAX] = {
    { "aliquot", policy_decide_aliquot },
    { "hpa", policy_decide_hpa },
    { "knative", policy_decide_knative },
};

int serving_policy_find(const char *name, const struct serving_policy_ops **ret,
                        struct aq_error *err)
{
    for (size_t i = 0; i < AQ_COUNT(policies); i++)
        if (strcmp(policies[i].name, name) == 0) {
            *ret = &policies[i];
            return 0;
        }
    return aq_fail_field(err, EINVAL, "--policy",
                         "unknown policy '%.40s'; with --serving expected aliquot, hpa or knative",
                         name);
}
