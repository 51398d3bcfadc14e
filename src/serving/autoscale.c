/* SPDX-License-Identifier: Apache-2.0 */
/* autoscale.c - how many replicas a service needs */
#include "serving/autoscale.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define AUTOSCALE_TOLERANCE 0.1  /* of a mean around its target */
#define AUTOSCALE_ROUNDING 1e-9  /* of demand that is a whole number but for rounding */
#define AUTOSCALE_DEMAND_MAX 1e6 /* replicas */

static const char *const signal_texts[AUTOSCALE_SIGNAL_COUNT] = {
    [AUTOSCALE_IN_FLIGHT] = "requests in flight",
    [AUTOSCALE_RATE] = "requests/s",
    [AUTOSCALE_LATENCY] = "latency",
    [AUTOSCALE_USE] = "use of the share",
    [AUTOSCALE_METRIC] = "metric",
    [AUTOSCALE_PROMETHEUS] = "query",
};

/* What the i-th replica can be, in replicas of the largest share. */
static double autoscale_limit(const struct autoscale *a, const struct autoscale_sample *s, size_t i)
{
    return a->share_max_micro && i < s->limit_count
               ? (double)s->limits_micro[i] / (double)a->share_max_micro
               : 1;
}

/* The part of a replica of the largest share that one of the present share is; a mean where some
 * cannot have it.
 */
static double autoscale_part(const struct autoscale *a, const struct autoscale_sample *s)
{
    double share = a->share_max_micro && s->share_micro
                       ? (double)s->share_micro / (double)a->share_max_micro
                       : 1;
    double sum = 0;

    for (size_t i = 0; i < s->limit_count; i++)
        sum += AQ_MIN(share, autoscale_limit(a, s, i));
    return s->limit_count ? sum / (double)s->limit_count : share;
}

/* ---- time ---- */

static int64_t autoscale_width(const struct autoscale *a)
{
    return AQ_MAX(a->window_usec / (AUTOSCALE_BUCKETS - 1), 1);
}

static void autoscale_note_demand(const struct autoscale *a, struct autoscale_state *state,
                                  int64_t now_usec, double demand)
{
    int64_t bucket = now_usec / autoscale_width(a);
    double *at = &state->demand[bucket % AUTOSCALE_BUCKETS];

    for (int64_t b = AQ_MAX(state->bucket, bucket - AUTOSCALE_BUCKETS) + 1; b <= bucket; b++)
        state->demand[b % AUTOSCALE_BUCKETS] = 0;
    state->bucket = bucket;
    *at = AQ_MAX(*at, demand);
}

static double autoscale_highest_demand(const struct autoscale_state *state)
{
    double highest = 0;

    for (size_t i = 0; i < AUTOSCALE_BUCKETS; i++)
        highest = AQ_MAX(highest, state->demand[i]);
    return highest;
}

/* Nothing is known of the time before: what is wanted now counts as needed now. */
static void autoscale_start(const struct autoscale *a, struct autoscale_state *state,
                            const struct autoscale_sample *s)
{
    memset(state->demand, 0, sizeof(state->demand));
    state->bucket = s->now_usec / autoscale_width(a);
    state->busy_usec = state->last_usec = s->now_usec;
    state->is_started = true;
    autoscale_note_demand(a, state, s->now_usec, (double)s->wanted * autoscale_part(a, s));
}

/* A clock that went back: what was noted keeps its age. */
static void autoscale_shift(const struct autoscale *a, struct autoscale_state *state, int64_t by)
{
    double highest = autoscale_highest_demand(state);

    state->last_usec += by;
    state->busy_usec += by;
    for (size_t i = 0; i < AUTOSCALE_RULES_MAX; i++)
        state->fired_usec[i] += by;
    memset(state->demand, 0, sizeof(state->demand));
    state->bucket = state->last_usec / autoscale_width(a);
    autoscale_note_demand(a, state, state->last_usec, highest);
}

/* ---- steps ---- */

/* The step that a value asks for; 0 = none. */
static int64_t autoscale_step_of(const struct autoscale_rule *rule, double value)
{
    if (value > rule->above || (rule->is_inclusive && value == rule->above))
        return rule->above_step;
    if (value < rule->below || (rule->is_inclusive && value == rule->below))
        return rule->below_step;
    return 0;
}

/* What is wanted after the step, within the bounds of rule and service. A step towards more never
 * ends with fewer, where more are wanted than the rule allows; likewise the other way.
 */
static int64_t autoscale_take_step(const struct autoscale_rule *rule,
                                   const struct autoscale_sample *s, int64_t step)
{
    int64_t min = AQ_MAX(rule->replicas_min, s->replicas_min);
    int64_t max = rule->replicas_max < 0 ? s->replicas_max
                                         : AQ_MIN(rule->replicas_max, s->replicas_max);
    int64_t next = AQ_MAX(AQ_MIN(s->wanted + step, max), min);

    return step > 0 ? AQ_MAX(next, s->wanted) : AQ_MIN(next, s->wanted);
}

static void autoscale_decide_steps(const struct autoscale *a, struct autoscale_state *state,
                                   const struct autoscale_sample *s, struct autoscale_wish *ret)
{
    for (size_t i = 0; i < a->rule_count; i++) {
        const struct autoscale_rule *rule = &a->rules[i];
        int64_t step, next;

        if (!isfinite(s->values[i])
            || (state->has_fired[i] && s->now_usec - state->fired_usec[i] < rule->cooldown_usec))
            continue;
        step = autoscale_step_of(rule, s->values[i]);
        next = step ? autoscale_take_step(rule, s, step) : s->wanted;
        if (next == s->wanted)
            continue;
        state->has_fired[i] = true;
        state->fired_usec[i] = s->now_usec;
        ret->replicas = next;
        ret->rule = (int)i;
        (void)snprintf(ret->reason, sizeof(ret->reason), "%s%s%.60s is %.6g: step of %+" PRId64,
                       signal_texts[rule->signal], rule->name ? " " : "",
                       rule->name ? rule->name : "", s->values[i], step);
        return;
    }
    (void)snprintf(ret->reason, sizeof(ret->reason), "no rule applies");
}

/* ---- targets ---- */

/* Demand by one rule, in replicas of the largest share; negative = not known. */
static double autoscale_demand_of(const struct autoscale *a, const struct autoscale_rule *rule,
                                  const struct autoscale_sample *s, double value)
{
    double ratio = value / (rule->fill * rule->target);

    if (!isfinite(value) || value < 0 || !isfinite(ratio))
        return -1;
    if (rule->is_mean) {
        if (s->ready <= 0)
            return -1;
        if (fabs(ratio - 1) <= AUTOSCALE_TOLERANCE)
            ratio = 1;
        ratio *= (double)s->ready * autoscale_part(a, s);
    }
    return AQ_MIN(ratio, AUTOSCALE_DEMAND_MAX);
}

/* How many replicas it takes, if each is as large as it can be. */
static int64_t autoscale_count(const struct autoscale *a, const struct autoscale_sample *s,
                               double demand)
{
    int64_t count = 0;

    for (; (size_t)count < s->limit_count && demand > AUTOSCALE_ROUNDING; count++)
        demand -= autoscale_limit(a, s, (size_t)count);
    return count + (int64_t)ceil(AQ_MAX(demand, 0) - AUTOSCALE_ROUNDING);
}

/* Some of the first replicas cannot have this share where they are. */
static bool autoscale_is_short(const struct autoscale_sample *s, int64_t replicas,
                               int64_t share_micro)
{
    for (size_t i = 0; i < s->limit_count && (int64_t)i < replicas; i++)
        if (s->limits_micro[i] < share_micro)
            return true;
    return false;
}

/* The number and share of replicas for a demand. */
static void autoscale_size(const struct autoscale *a, const struct autoscale_sample *s,
                           double demand, struct autoscale_wish *ret)
{
    int64_t min = AQ_MAX(s->replicas_min, demand > 0 ? 1 : 0);
    double share;

    ret->replicas = autoscale_count(a, s, demand);
    ret->replicas = AQ_MAX(AQ_MIN(ret->replicas, s->replicas_max), min);
    if (!a->share_max_micro)
        return;
    share = ret->replicas ? demand / (double)ret->replicas * (double)a->share_max_micro : 0;
    ret->share_micro = (int64_t)ceil(share / (double)a->share_quantum_micro - AUTOSCALE_ROUNDING)
                       * a->share_quantum_micro;
    if (ret->replicas > AQ_MAX(min, 1) || autoscale_is_short(s, ret->replicas, ret->share_micro))
        ret->share_micro = a->share_max_micro; /* shares shrink once no replica can go */
    ret->share_micro = AQ_MAX(AQ_MIN(ret->share_micro, a->share_max_micro), a->share_min_micro);
}

static void autoscale_explain(const struct autoscale *a, const struct autoscale_sample *s,
                              double now, double highest, struct autoscale_wish *ret)
{
    const struct autoscale_rule *rule = ret->rule < 0 ? NULL : &a->rules[ret->rule];

    if (rule && now >= highest)
        (void)snprintf(ret->reason, sizeof(ret->reason),
                       "%s%s%.60s: %.6g at a target of %.6g needs %.2f replicas",
                       signal_texts[rule->signal], rule->name ? " " : "",
                       rule->name ? rule->name : "", s->values[ret->rule],
                       rule->fill * rule->target, now);
    else
        (void)snprintf(ret->reason, sizeof(ret->reason),
                       "up to %.2f replicas were needed in the last %" PRId64 " s", highest,
                       a->window_usec / USEC_PER_SEC);
}

static void autoscale_decide_targets(const struct autoscale *a, struct autoscale_state *state,
                                     const struct autoscale_sample *s, struct autoscale_wish *ret)
{
    double now = 0, highest;
    bool is_complete = a->rule_count > 0;

    for (size_t i = 0; i < a->rule_count; i++) {
        double demand = autoscale_demand_of(a, &a->rules[i], s, s->values[i]);

        is_complete &= demand >= 0;
        if (demand > 0 && !a->rules[i].is_mean)
            state->busy_usec = s->now_usec;
        if (demand > now) {
            now = demand;
            ret->rule = (int)i;
        }
    }
    if (!is_complete)
        now = AQ_MAX(now, (double)s->wanted * autoscale_part(a, s));
    autoscale_note_demand(a, state, s->now_usec, now);
    highest = autoscale_highest_demand(state);
    if (!is_complete && highest <= (double)s->wanted * autoscale_part(a, s)) {
        ret->rule = -1;
        (void)snprintf(ret->reason, sizeof(ret->reason), "a rule has no value");
        return;
    }
    autoscale_size(a, s, highest, ret);
    autoscale_explain(a, s, now, highest, ret);
}

/* ---- the whole ---- */

void autoscale_decide(const struct autoscale *a, struct autoscale_state *state,
                      const struct autoscale_sample *s, struct autoscale_wish *ret)
{
    bool has_requests;

    if (state->is_started && s->now_usec < state->last_usec)
        autoscale_shift(a, state, s->now_usec - state->last_usec);
    if (!state->is_started || s->now_usec - state->last_usec > AUTOSCALE_GAP_USEC)
        autoscale_start(a, state, s);
    has_requests = s->arrived > 0 || s->in_flight > 0;
    if (has_requests || isnan(s->in_flight) || s->is_loading)
        state->busy_usec = s->now_usec;

    *ret = (struct autoscale_wish){ s->wanted, s->share_micro, -1, "" };
    if (a->rule_count && a->rules[0].is_step)
        autoscale_decide_steps(a, state, s, ret);
    else
        autoscale_decide_targets(a, state, s, ret);
    state->last_usec = s->now_usec;

    if (s->replicas_min == 0 && s->now_usec - state->busy_usec >= a->idle_usec) {
        ret->replicas = 0;
        ret->rule = -1;
        memset(state->demand, 0, sizeof(state->demand)); /* it wakes with what is needed then */
        (void)snprintf(ret->reason, sizeof(ret->reason), "no request for %" PRId64 " s",
                       (s->now_usec - state->busy_usec) / USEC_PER_SEC);
    } else if (ret->replicas == 0 && (s->wanted > 0 || has_requests)) {
        ret->replicas = 1;
        (void)snprintf(ret->reason, sizeof(ret->reason), "%s",
                       s->wanted ? "one is kept until the idle time is over" : "a request came");
    }
    ret->replicas = AQ_MAX(AQ_MIN(ret->replicas, s->replicas_max), s->replicas_min);
}
