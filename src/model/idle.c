/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - which session ends because nobody uses it, and when */
#include "model/idle.h"

#include <string.h>

#include "base/cleanup.h"

static const struct {
    const char *name, *reason;
} idle_checks[IDLE_CHECKS] = {
    [IDLE_NETWORK] = { "network_timeout", REASON_IDLE_TIMEOUT },
    [IDLE_UTILIZATION] = { "utilization", REASON_IDLE_UTILIZATION },
    [IDLE_LIFETIME] = { "session_lifetime", REASON_IDLE_LIFETIME },
};

const char *idle_check_name(enum idle_check check)
{
    return idle_checks[check].name;
}

const char *idle_check_reason(enum idle_check check)
{
    return idle_checks[check].reason;
}

void session_idle_take(struct session_idle *to, const struct session_idle *from, unsigned what)
{
    struct session_idle all = *from;

    if (!(what & SESSION_IDLE_USE)) {
        all.is_busy = to->is_busy;
        all.active_usec = to->active_usec;
        all.began_usec = to->began_usec;
    }
    if (!(what & SESSION_IDLE_EXTENSION)) {
        all.extended_usec = to->extended_usec;
        all.extension_usec = to->extension_usec;
        all.extensions_usec = to->extensions_usec;
    }
    if (!(what & SESSION_IDLE_EXEMPTION)) {
        all.exempted_usec = to->exempted_usec;
        all.exemption_usec = to->exemption_usec;
    }
    *to = all;
}

/* ---- limits ---- */

static int64_t idle_smaller(int64_t a, int64_t b)
{
    return a > 0 && b > 0 ? AQ_MIN(a, b) : AQ_MAX(a, b);
}

struct idle_limits idle_limits_find(const struct idle_settings *s, const struct idle_policy *p,
                                    enum session_type type)
{
    struct idle_limits limits = { 0 };
    int64_t timeout = p->timeout_usec < 0 && s->is_network_on ? s->network_usec : p->timeout_usec;
    int64_t window = p->timeout_usec < 0 ? s->window_usec : p->timeout_usec;

    if (type == SESSION_INFERENCE)
        return limits;
    limits.lifetime_usec = idle_smaller(AQ_MAX(p->lifetime_usec, 0), p->group_lifetime_usec);
    if ((s->is_network_on || !s->says_enabled) && s->network_types & 1u << type)
        limits.network_usec = idle_smaller(AQ_MAX(timeout, 0), p->group_timeout_usec);
    if (s->is_utilization_on && s->utilization_types & 1u << type && s->threshold_count)
        limits.window_usec = AQ_MAX(window, 0);
    return limits;
}

/* ---- checks ---- */

/* To end at this time. */
static struct idle_verdict idle_until(int64_t at_usec, int64_t now_usec)
{
    return (struct idle_verdict){ now_usec < at_usec ? IDLE_EXPIRES : IDLE_EXPIRED, at_usec };
}

static struct idle_verdict idle_judge_network(const struct idle_limits *l,
                                              const struct idle_facts *f, int64_t base_usec)
{
    int64_t idle_from = AQ_MAX(f->active_usec, base_usec);
    int64_t at = AQ_MAX(idle_from + l->network_usec, f->extended_usec);

    if (!l->network_usec)
        return (struct idle_verdict){ 0 };
    if (f->now_usec >= at && f->is_unmeasured)
        return (struct idle_verdict){ IDLE_KEPT, 0 };
    return idle_until(at, f->now_usec);
}

static struct idle_verdict idle_judge_lifetime(const struct idle_limits *l,
                                               const struct idle_facts *f, int64_t base_usec)
{
    if (!l->lifetime_usec)
        return (struct idle_verdict){ 0 };
    return idle_until(base_usec + l->lifetime_usec, f->now_usec);
}

/* Averages that are too low: of all that are asked, or of any. One that is not known keeps. */
static bool idle_is_low(const struct idle_settings *s, const struct idle_facts *f)
{
    size_t asked = 0, low = 0;

    for (size_t i = 0; i < s->threshold_count; i++) {
        double average = 0;

        if (!(f->has & 1u << i))
            continue;
        asked++;
        if (!f->window || !idle_window_average(f->window, f->now_usec, i, &average))
            return false;
        low += average < s->thresholds[i].percent;
    }
    return low && (s->ends_if_any_is_low || low == asked);
}

static struct idle_verdict idle_judge_utilization(const struct idle_settings *s,
                                                  const struct idle_limits *l,
                                                  const struct idle_facts *f, int64_t base_usec,
                                                  bool is_low)
{
    int64_t measured = f->window && f->window->first_usec ? f->window->first_usec : f->now_usec;
    int64_t full = AQ_MAX(measured + l->window_usec, base_usec + s->window_grace_usec);

    if (!l->window_usec)
        return (struct idle_verdict){ 0 };
    if (f->now_usec < full && !is_low)
        return (struct idle_verdict){ IDLE_GRACE, full };
    if (!is_low)
        return (struct idle_verdict){ IDLE_KEPT, 0 };
    full = AQ_MAX(full, (f->low_usec ? f->low_usec : f->now_usec) + s->notice_usec);
    return idle_until(AQ_MAX(full, f->extended_usec), f->now_usec);
}

void idle_judge(const struct idle_settings *settings, const struct idle_limits *limits,
                const struct idle_facts *facts, struct idle_report *ret)
{
    int64_t base = AQ_MAX(facts->began_usec, facts->grace_usec);

    *ret = (struct idle_report){ .base_usec = base, .by = IDLE_CHECKS };
    ret->is_low = limits->window_usec && idle_is_low(settings, facts);
    ret->checks[IDLE_NETWORK] = idle_judge_network(limits, facts, base);
    ret->checks[IDLE_UTILIZATION] = idle_judge_utilization(settings, limits, facts, base,
                                                           ret->is_low);
    ret->checks[IDLE_LIFETIME] = idle_judge_lifetime(limits, facts, base);
    for (enum idle_check i = 0; i < IDLE_CHECKS; i++) {
        struct idle_verdict *v = &ret->checks[i];

        if (v->state != IDLE_OFF && facts->is_exempt)
            *v = (struct idle_verdict){ IDLE_KEPT, 0 };
        if (v->state < IDLE_EXPIRES || (ret->by != IDLE_CHECKS && ret->at_usec <= v->at_usec))
            continue;
        ret->by = i;
        ret->at_usec = v->at_usec;
    }
}
