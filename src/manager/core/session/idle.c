/* SPDX-License-Identifier: Apache-2.0 */
/* idle.c - ending sessions that nobody uses, and warning before
 *
 * A session is examined when its next warning or its end is due, not at each use: what is found
 * then counts. So one that is used costs no more than one that is not. Each end is warned of first,
 * also one that became due while no manager was there, or by a smaller limit.
 *
 * Its row says whether it is in use, and since when it is not: written when that changes, so that a
 * manager that was killed ends nothing too early.
 */
#include "manager/core/session/idle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/idle_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define AGAIN_USEC (10 * USEC_PER_SEC) /* until something is measured */
#define WINDOW_MIN_USEC USEC_PER_SEC

/* ---- limits and facts ---- */

static const struct keypair_policy *idle_policy_of(const struct core *core,
                                                   const struct session_entry *l)
{
    const struct keypair *key = core_find_keypair(core, l->s.access_key);

    return key && key->policy ? core_find_policy(core, key->policy) : NULL;
}

struct idle_limits idle_limits_of(const struct core *core, const struct session_entry *l)
{
    const struct keypair_policy *policy = idle_policy_of(core, l);
    const struct core_scheduling *group = &l->resource_group->scheduling;
    struct idle_policy p = { .group_timeout_usec = group->idle_timeout_usec,
                             .group_lifetime_usec = group->idle_lifetime_usec };

    if (policy) {
        p.timeout_usec = policy->idle_timeout_sec * USEC_PER_SEC;
        p.lifetime_usec = policy->max_session_lifetime_sec * USEC_PER_SEC;
    }
    return idle_limits_find(&core->idle, &p, l->s.type);
}

/* "cuda_util" is of slots as "cuda.shares"; CPU and memory are of all sessions. */
static bool idle_has_resource(const struct session_entry *l, const char *metric)
{
    size_t len = strcspn(metric, "_");

    if (!metric[len] || strncmp(metric, "cpu_", 4) == 0 || strncmp(metric, "io_", 3) == 0
        || strncmp(metric, "net_", 4) == 0)
        return true;
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const struct slots *slots = &l->s.kernels[i].requested;

        for (size_t k = 0; k < slots->count; k++)
            if (slots->items[k].amount && strncmp(slots->items[k].name, metric, len) == 0
                && slots->items[k].name[len] == '.')
                return true;
    }
    return false;
}

static void idle_find_facts(const struct core *core, const struct session_entry *l, int64_t now,
                            struct idle_facts *ret)
{
    const struct user *user = core_find_user(core, &l->s.user_id);
    const struct idle_entry *idle = l->idle;

    *ret = (struct idle_facts){
        .now_usec = now,
        .began_usec = idle->began_usec,
        .grace_usec = user && core->idle.user_grace_usec
                          ? user->created_usec + core->idle.user_grace_usec
                          : 0,
        .active_usec = idle->commands ? now : idle->active_usec,
        .extended_usec = idle->extended_usec,
        .low_usec = idle->low_usec,
        .is_exempt = now < idle->exempt_usec,
        .is_unmeasured = idle_entry_is_unmeasured(core, l, now),
        .window = idle->window,
    };
    for (size_t i = 0; i < core->idle.threshold_count; i++)
        ret->has |= (uint32_t)idle_has_resource(l, core->idle.thresholds[i].metric) << i;
}

static bool idle_runs(const struct session *s)
{
    return s->running_usec
           && (s->status == SESSION_RUNNING || s->status == SESSION_RUNNING_DEGRADED);
}

bool core_read_idle(const struct core *core, const struct session *s, struct core_idle *ret)
{
    struct session_entry *l = session_entry_of(s);
    struct idle_facts facts;

    if (!idle_runs(s) || !l->idle || !l->idle->began_usec)
        return false;
    *ret = (struct core_idle){ .limits = l->idle->limits,
                               .now_usec = clock_monotonic_usec(),
                               .extended_usec = l->idle->extended_usec,
                               .is_warned = l->idle->warned > 0,
                               .exempt_usec = l->idle->exempt_usec,
                               .settings = &core->idle };
    idle_find_facts(core, l, ret->now_usec, &facts);
    idle_judge(&core->idle, &ret->limits, &facts, &ret->report);
    for (size_t i = 0; l->idle->window && i < core->idle.threshold_count; i++)
        ret->averages[i].is_known = facts.has & 1u << i
                                    && idle_window_average(l->idle->window, ret->now_usec, i,
                                                           &ret->averages[i].average);
    return true;
}

/* ---- before it is judged ---- */

/* It may have run before: a restart, or kernels that came back, do not begin its life again. */
static void idle_begin(struct core *core, struct session_entry *l, const struct idle_limits *limits)
{
    struct idle_entry *idle = idle_entry_get(l);

    if (!idle->began_usec)
        idle->began_usec = clock_adjustment_since(core, l->s.running_usec);
    if (!limits->window_usec) {
        free(AQ_TAKE(idle->window));
    } else if (!idle->window || idle->window->length_usec != limits->window_usec) {
        free(idle->window);
        idle->window = aq_alloc(sizeof(*idle->window));
        idle_window_begin(idle->window, limits->window_usec);
    }
    idle->limits = *limits;
}

static struct event *idle_propose(struct core *core, struct session_entry *l)
{
    struct event *e = proposal_add(core, &l->durable, EVENT_SESSION_IDLE);

    e->session_idle.id = l->s.id;
    e->session_idle.to = l->idle->saved;
    return e;
}

/* Its row follows whether it is in use, and when it began. */
static void idle_save_use(struct core *core, struct session_entry *l, int64_t now)
{
    const struct idle_entry *idle = l->idle;
    int64_t quiet = AQ_MIN(core->idle.packet_usec, idle->limits.network_usec / 4);
    int64_t unused = now - (idle->commands ? now : AQ_MAX(idle->active_usec, idle->began_usec));
    bool is_busy = idle->limits.network_usec && unused < quiet;
    int64_t wall = clock_realtime_usec(), began = wall - (now - idle->began_usec);
    /* RUNNING was entered once more since then: its own time is later. */
    bool has_begun_before = l->s.running_usec - began > USEC_PER_SEC && !idle->saved.began_usec;
    struct event *e;

    if (is_busy && idle->active_usec)
        durable_wake_at(core, &l->durable, now + quiet - unused + USEC_PER_MSEC);
    is_busy = is_busy && (idle->active_usec || idle->commands);
    if (is_busy == idle->saved.is_busy && !has_begun_before)
        return;
    e = idle_propose(core, l);
    e->session_idle.what = SESSION_IDLE_USE;
    e->session_idle.to.is_busy = is_busy;
    e->session_idle.to.active_usec = idle->active_usec ? wall - unused : 0;
    if (has_begun_before)
        e->session_idle.to.began_usec = began;
    AQ_FAULT("core.idle.use");
}

/* ---- warnings and the end ---- */

static int64_t idle_limit_of(const struct idle_limits *limits, enum idle_check check)
{
    return check == IDLE_NETWORK       ? limits->network_usec
           : check == IDLE_UTILIZATION ? limits->window_usec
                                       : limits->lifetime_usec;
}

/* Those that a limit has room for, of which the last is the shortest. */
struct idle_warnings {
    const int64_t *before_usec;
    unsigned count;
};

static struct idle_warnings idle_find_warnings(const struct core *core, int64_t limit_usec)
{
    struct idle_warnings w = { .before_usec = core->idle.warnings_usec };
    unsigned all = 0;

    while (all < IDLE_WARNINGS_MAX && w.before_usec[all])
        all++;
    while (all && *w.before_usec >= limit_usec) {
        w.before_usec++;
        all--;
    }
    w.count = all;
    return w;
}

static void idle_warn(struct core *core, struct session_entry *l, const struct idle_report *report,
                      int64_t now)
{
    struct event *e = idle_propose(core, l);

    e->session_idle.warning = idle_check_reason(report->by);
    if (!l->idle->noticed_usec)
        l->idle->noticed_usec = now;
    AQ_FAULT("core.idle.warned");
}

static void idle_end(struct core *core, struct session_entry *l, const struct idle_report *report)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf data = STRBUF_INIT;
    struct jsonw w = jsonw_make(&data);
    int64_t limit = idle_limit_of(&l->idle->limits, report->by);
    char id[UUID_TEXT_MAX];

    jsonw_object_begin(&w);
    jsonw_member_str(&w, "text",
                     report->by == IDLE_NETWORK ? "It was idle for longer than its idle timeout."
                     : report->by == IDLE_UTILIZATION ? "It used too little of its resources."
                                                      : "It reached its maximum lifetime.");
    jsonw_key(&w, "idle");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "check", idle_check_name(report->by));
    jsonw_member_int(&w, "limit_sec", limit / USEC_PER_SEC);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
    log_info("the check %s ends the session %s (%s): limit %" PRId64 " s",
             idle_check_name(report->by), uuid_format(&l->s.id, id), l->s.name,
             limit / USEC_PER_SEC);
    termination_begin(core, l, idle_check_reason(report->by), termination_result(l), data.data);
    AQ_FAULT("core.idle.ended");
}

/* The end, warned of or not yet: true if it was proposed. */
static bool idle_approach(struct core *core, struct session_entry *l,
                          const struct idle_report *report, int64_t now)
{
    struct idle_warnings w = idle_find_warnings(core, idle_limit_of(&l->idle->limits, report->by));
    unsigned due = 0;
    int64_t end = report->at_usec;

    while (due < w.count && now >= end - w.before_usec[due])
        due++;
    if (!due)
        l->idle->noticed_usec = 0;
    else if (l->idle->warned < due)
        idle_warn(core, l, report, now);
    l->idle->warned = due;
    if (w.count && due) /* there is time to do something after the first warning */
        end = AQ_MAX(end, l->idle->noticed_usec + w.before_usec[w.count - 1]);
    if (now >= end) {
        idle_end(core, l, report);
        return true;
    }
    durable_wake_at(core, &l->durable, due < w.count ? end - w.before_usec[due] : end);
    return false;
}

bool idle_step(struct core *core, struct session_entry *l, int64_t now)
{
    struct idle_limits limits = idle_limits_of(core, l);
    struct idle_report report;
    struct idle_facts facts;

    if (!l->idle && !limits.network_usec && !limits.window_usec && !limits.lifetime_usec)
        return false;
    idle_begin(core, l, &limits);
    idle_save_use(core, l, now);
    idle_find_facts(core, l, now, &facts);
    idle_judge(&core->idle, &limits, &facts, &report);
    if (report.is_low != (l->idle->low_usec != 0))
        l->idle->low_usec = report.is_low ? now : 0;
    if (facts.is_exempt && l->idle->exempt_usec != CORE_IDLE_FOREVER)
        durable_wake_at(core, &l->durable, l->idle->exempt_usec);
    if (limits.window_usec)
        durable_wake_at(core, &l->durable,
                        now + AQ_MAX(limits.window_usec / IDLE_BUCKETS, WINDOW_MIN_USEC));
    if (report.checks[IDLE_NETWORK].state == IDLE_KEPT && !facts.is_exempt)
        durable_wake_at(core, &l->durable, now + AGAIN_USEC);
    if (report.by != IDLE_CHECKS)
        return idle_approach(core, l, &report, now);
    l->idle->warned = 0;
    l->idle->noticed_usec = 0;
    return false;
}
