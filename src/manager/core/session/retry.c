/* SPDX-License-Identifier: Apache-2.0 */
/* retry.c - starts that failed or take too long: once more, or the end
 *
 * model/retry.h has the rules. The limits of a resource group are in
 * scheduling/retry_options.h. What has failed counts until the session
 * runs and is kept with it; how long it waits before the next try is not: a
 * manager that restarts tries at once.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/jsonw.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/attempts.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/rerun.h"
#include "manager/core/session/retry.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/clock_adjustment.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

#define LOWER_BY 10
#define LATE_USEC (60 * USEC_PER_SEC) /* a limit comes before what ends all */

/* ---- a start that failed ---- */

struct retry_failure {
    enum retry_step step;
    size_t rank;
    const char *reason, *data; /* of the session; data: JSON {"error": ...} or NULL */
};

static void retry_conclude(struct core *core, struct session_entry *l,
                           const struct retry_failure *f, enum retry_result result)
{
    struct retry_record next = retry_count(&l->s.retry, f->step, false);
    struct event *e;

    attempts_failed(core, l, &next, result, f->data);
    if (retry_status(f->step, result) == SESSION_TERMINATING) {
        if (!rerun_begin(core, l, f->rank, f->reason, f->data))
            termination_begin(core, l, f->reason, termination_result(l), f->data);
    } else {
        free(l->retry.failed_agent);
        l->retry.failed_agent = aq_strdup(l->s.kernels[f->rank].agent_id);
        l->retry.backoff_usec = clock_monotonic_usec() + retry_backoff_usec(next.attempts);
        e = termination_propose(core, l, retry_status(f->step, result), f->reason, RESULT_UNDEFINED,
                                f->data);
        e->session_status.has_retry = true;
        e->session_status.retry = next;
    }
    AQ_FAULT("core.start.failed");
}

void retry_failed(struct core *core, struct session_entry *l, size_t rank)
{
    const struct kernel_entry *k = &l->kernels[rank];
    AQ_CLEANUP(aq_freep) char *data = kernel_failure_json(l, rank);
    struct retry_failure f = { k->error_is_image ? RETRY_PRECONDITION : RETRY_START, rank,
                               REASON_FAILED_TO_CREATE, data };
    bool may_retry = k->error_is_transient && termination_may_reschedule(l);

    retry_conclude(core, l, &f,
                   may_retry ? retry_classify(&l->resource_group->scheduling.retry[f.step], f.step,
                                              &l->s.retry, 0, 0)
                             : RETRY_GIVE_UP);
}

/* ---- a start that takes too long ---- */

static void retry_write_expired(const struct session_entry *l, const struct retry_failure *f,
                                int64_t timeout_usec, struct strbuf *json)
{
    struct jsonw w = jsonw_make(json);
    char text[80], hostname[KERNEL_HOSTNAME_MAX];

    (void)snprintf(text, sizeof(text), "%s %.3g s",
                   f->step == RETRY_PRECONDITION ? "its image was not there after"
                                                 : "it did not run after",
                   (double)timeout_usec / USEC_PER_SEC);
    jsonw_object_begin(&w);
    if (l->s.kernel_count > 1) {
        jsonw_member_str(&w, "kernel", kernel_hostname(&l->s.kernels[f->rank], hostname));
        jsonw_member_str(&w, "agent", l->s.kernels[f->rank].agent_id);
    }
    jsonw_key(&w, "error");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "src", "manager");
    jsonw_member_str(&w, "agent_id", l->s.kernels[f->rank].agent_id);
    jsonw_member_str(&w, "name", retry_result_name(RETRY_EXPIRED));
    jsonw_member_str(&w, "field",
                     f->step == RETRY_PRECONDITION ? "check-precondition.timeout"
                                                   : "start-sessions.timeout");
    jsonw_member_str(&w, "repr", text);
    jsonw_object_end(&w);
    jsonw_object_end(&w);
}

/* Does it run, or is it at its bootstrap script, whose time its agent limits, or held for others? */
static bool retry_is_in_time(const struct kernel_entry *f)
{
    return f->fact == FACT_BOOTSTRAPPING || f->fact == FACT_RUNNING || f->fact == FACT_ENDED
           || (f->is_ready && f->release_usec == 0);
}

/* The first that is late; kernel_count = there is none. Those beyond its minimum wait. */
static size_t retry_find_late(const struct session_entry *l)
{
    size_t rank = 0;

    while (rank < l->s.kernel_count
           && (l->s.kernels[rank].status == KERNEL_PENDING || retry_is_in_time(&l->kernels[rank])))
        rank++;
    return rank;
}

static bool retry_is_starting(enum session_status s)
{
    return s == SESSION_SCHEDULED || s == SESSION_PREPARING || s == SESSION_PULLING
           || s == SESSION_PREPARED || s == SESSION_CREATING;
}

static bool retry_is_bootstrapping(const struct session_entry *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->kernels[i].fact == FACT_BOOTSTRAPPING)
            return retry_is_starting(l->s.status) || l->s.status == SESSION_RESTARTING;
    return false;
}

int64_t retry_deadline(const struct session_entry *l, int64_t deadline_usec)
{
    int64_t pull = l->resource_group->scheduling.retry[RETRY_PRECONDITION].timeout_usec;
    int64_t start = l->resource_group->scheduling.retry[RETRY_START].timeout_usec;

    if (retry_is_bootstrapping(l))
        return 0;
    if (deadline_usec == 0 || !retry_is_starting(l->s.status)
        || (pull <= deadline_usec && start <= deadline_usec))
        return deadline_usec;
    return pull + AQ_MAX(start, deadline_usec) + LATE_USEC;
}

bool retry_expired(struct core *core, struct session_entry *l, int64_t now)
{
    struct retry_failure f = { RETRY_START, retry_find_late(l), REASON_HANG_TIMEOUT, NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;
    const struct retry_limits *limits;
    int64_t due;

    if (f.rank == l->s.kernel_count)
        return false;
    if (l->kernels[f.rank].is_pulling)
        f.step = RETRY_PRECONDITION;
    limits = &l->resource_group->scheduling.retry[f.step];
    if (!limits->timeout_usec)
        return false;
    due = clock_adjustment_due(core, l, limits->timeout_usec);
    if (f.step == RETRY_START) /* what went on before this manager's life is not known */
        due = AQ_MAX(due, AQ_MAX(l->kernels[f.rank].pulled_usec, core->started_usec)
                              + limits->timeout_usec);
    if (now < due || !termination_agents_are_connected(core, l)) {
        durable_wake_at(core, &l->durable, now < due ? due : now + limits->timeout_usec);
        return false;
    }
    retry_write_expired(l, &f, limits->timeout_usec, &json);
    f.data = json.data;
    retry_conclude(core, l, &f,
                   termination_may_reschedule(l)
                       ? retry_classify(limits, f.step, &l->s.retry, 0, limits->timeout_usec + 1)
                       : RETRY_GIVE_UP);
    AQ_FAULT("core.start.expired");
    return true;
}

void retry_take_pull(struct core *core, struct session_entry *l, const struct uuid *kernel_id,
                     bool is_over)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        struct kernel_entry *k = &l->kernels[i];

        if (!uuid_equals(&l->s.kernels[i].id, kernel_id) || k->is_pulling == !is_over)
            continue;
        k->is_pulling = !is_over;
        k->pulled_usec = is_over ? clock_monotonic_usec() : 0;
        durable_touch(core, &l->durable);
    }
}

/* ---- PENDING ---- */

/* Passes in a row in which it did not fit. */
static struct retry_record retry_waits_of(const struct session_entry *l)
{
    return (struct retry_record){ RETRY_SCHEDULE, sched_sync_tries(l) - l->attempts.tries_base,
                                  false };
}

bool retry_deprioritize(struct core *core, struct session_entry *l)
{
    const struct retry_limits *limits = &l->resource_group->scheduling.retry[RETRY_SCHEDULE];
    struct retry_record waits = retry_waits_of(l), before = waits;

    if (l->resource_group->blocker != l || l->queue.verdict != SCHED_NO_ROOM || l->s.priority == 0
        || waits.attempts == 0)
        return false;
    before.attempts--; /* the last one is what counts */
    if (retry_classify(limits, RETRY_SCHEDULE, &before, 0, 0) != RETRY_GIVE_UP)
        return false;
    attempts_failed(core, l, &waits, RETRY_GIVE_UP, NULL);
    proposal_add_session_status(core, l, retry_status(RETRY_SCHEDULE, RETRY_GIVE_UP),
                                REASON_DEPRIORITIZED);
    AQ_FAULT("core.deprioritize.proposed");
    return true;
}

void retry_note_timeout(struct core *core, struct session_entry *l)
{
    struct retry_record waits = retry_waits_of(l);

    attempts_failed(core, l, &waits, RETRY_EXPIRED, NULL);
}

void retry_lower(struct core *core, struct session_entry *l)
{
    struct event *e = proposal_add(core, &l->durable, EVENT_SESSION_PRIORITY);

    e->session_change.id = l->s.id;
    e->session_change.priority = AQ_MAX(l->s.priority - LOWER_BY, 0);
    proposal_add_session_status(core, l, SESSION_PENDING, NULL);
    AQ_FAULT("core.deprioritize.lowered");
}
