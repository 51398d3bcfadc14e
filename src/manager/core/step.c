/* step.c - what follows from a session's status, wishes and facts
 *
 * Called for a touched session that has no proposal under way. Each state has
 * one function, which orders agents what they must do and proposes at most
 * one change of the session and of each kernel; when that is durable the
 * session is touched again. Kernel events come before the session's, so that
 * a session ends after its kernels. Looking twice changes nothing.
 */
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/core/parts.h"

/* A state that lasts less than this leaves no row: programs that start at
 * once go from SCHEDULED to RUNNING with one commit.
 */
#define LINGER_USEC (200 * USEC_PER_MSEC)
#define EXPLAIN_USEC (2 * USEC_PER_SEC)
/* starts_usec is wall-clock time, which can be set: look again now and then. */
#define WALL_CHECK_USEC (30 * USEC_PER_SEC)
/* The agent ends a batch program at its limit; we step in when it does not. */
#define BATCH_MARGIN_USEC (60 * USEC_PER_SEC)
#define STARTS_MAX 5
/* An order that the agent does not show any sign of after this is sent again. */
#define RESEND_USEC (15 * USEC_PER_SEC)

static struct event *end_kernel(struct core *core, struct live *l, size_t rank,
                                const char *reason)
{
    struct kernel_live *f = &l->kernels[rank];
    struct event *e = propose_kernel(core, l, rank, KERNEL_TERMINATED,
                                     f->reason ? f->reason : reason);

    if (e && f->has_exit) {
        e->kernel_status.has_exit = true;
        e->kernel_status.exit_code = f->exit_code;
    }
    return e;
}

/* Does nothing of this kernel run any more, or is it given up? */
static bool is_gone(const struct core *core, const struct live *l, size_t rank, int64_t now)
{
    const struct kernel *k = &l->s.kernels[rank];
    const struct kernel_live *f = &l->kernels[rank];

    if (!kernel_is_holding(k->status) || !k->agent_id)
        return true;
    if (f->fact == FACT_ENDED || f->fact == FACT_ERROR)
        return true;
    /* Absent from an inventory that an order may have crossed: wait and see. */
    if (f->fact == FACT_ABSENT && (f->sent_usec == 0 || now - f->sent_usec >= RESEND_USEC))
        return true;
    return agent_is_given_up(core, k->agent_id, l->s.forced);
}

static bool all_gone(const struct core *core, const struct live *l, int64_t now)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!is_gone(core, l, i, now))
            return false;
    return true;
}

/* A change of the session with what belongs to an end; 'data' (JSON or NULL) is copied. */
static void propose_end(struct core *core, struct live *l, enum session_status to,
                        const char *reason, enum session_result result, const char *data)
{
    struct event *e = propose(core, l, EVENT_SESSION_STATUS);
    AQ_CLEANUP(aq_freep) char *misuse = data ? NULL : misuse_json(l);

    if (!e)
        return;
    data = data ? data : misuse;
    e->session_status = (struct event_session_status){
        .id = l->s.id,
        .from = l->s.status,
        .to = to,
        .version = l->s.version,
        .reason = reason,
        .result = l->s.result == RESULT_UNDEFINED ? result : RESULT_UNDEFINED,
    };
    if (data && !(e->session_status.status_data = strdup(data)))
        core_die("a status");
}

static void propose_forced(struct core *core, struct live *l)
{
    struct event *e = NULL;

    if (l->end_is_forced && !l->s.forced && (e = propose(core, l, EVENT_SESSION_FORCED)))
        e->session_change.id = l->s.id;
}

/* A batch program that was not allowed to end by itself has failed. */
static enum session_result result_if_ended(const struct live *l)
{
    return l->s.type == SESSION_BATCH ? RESULT_FAILURE : RESULT_UNDEFINED;
}

/* From any state with kernels to TERMINATING. */
static void begin_end(struct core *core, struct live *l, const char *reason,
                      enum session_result result, const char *data)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_holding(l->s.kernels[i].status))
            (void)propose_kernel(core, l, i, KERNEL_TERMINATING, reason);
    propose_forced(core, l);
    propose_end(core, l, SESSION_TERMINATING, reason, result, data);
    AQ_FAULT("core.terminate.proposed");
}

/* A kernel that has ended cannot start anew: then the session cannot either. */
static bool may_reschedule(const struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (kernel_is_terminal(l->s.kernels[i].status))
            return false;
    return session_status_may_follow(l->s.status, SESSION_RESCHEDULING);
}

/* An agent could not start a kernel: try elsewhere if that may help. */
static void fail_start(struct core *core, struct live *l, size_t rank)
{
    const struct kernel_live *f = &l->kernels[rank];

    if (f->error_is_passing && ++l->starts < STARTS_MAX && may_reschedule(l)) {
        free(l->failed_agent);
        l->failed_agent = strdup(l->s.kernels[rank].agent_id); /* NULL only forgets it */
        propose_end(core, l, SESSION_RESCHEDULING, REASON_FAILED_TO_CREATE, RESULT_UNDEFINED,
                    f->error);
    } else {
        begin_end(core, l, REASON_FAILED_TO_CREATE, result_if_ended(l), f->error);
    }
    AQ_FAULT("core.start.failed");
}

/* The agent of a kernel is given up: what its resource group wants then. True
 * if that was proposed.
 */
static bool handle_loss(struct core *core, struct live *l)
{
    const char *policy = l->rgroup->g.agent_loss_policy;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status) ||
            !agent_is_given_up(core, l->s.kernels[i].agent_id, false))
            continue;
        if (policy && strcmp(policy, "requeue") == 0 && may_reschedule(l))
            propose_session(core, l, SESSION_RESCHEDULING, REASON_AGENT_LOST);
        else
            begin_end(core, l, REASON_AGENT_LOST, result_if_ended(l), NULL);
        AQ_FAULT("core.loss.proposed");
        return true;
    }
    return false;
}

/* ---- preemption ---- */

/* It has to make way. True if that was proposed. */
static bool preempt(struct core *core, struct live *l, int64_t now)
{
    char id[UUID_TEXT_MAX], data[96];

    if (is_gone(core, l, 0, now))
        return false; /* it has ended by itself */
    (void)snprintf(data, sizeof(data), "{\"preempted_by\":\"%s\"}",
                   uuid_format(&l->preempted_by, id));
    if (preempt_fate(l) == CORE_TERMINATED || !may_reschedule(l))
        begin_end(core, l, REASON_PREEMPTED, result_if_ended(l), data);
    else
        propose_end(core, l,
                    session_status_may_follow(l->s.status, SESSION_PREEMPTED) ? SESSION_PREEMPTED
                                                                              : SESSION_RESCHEDULING,
                    REASON_PREEMPTED, RESULT_UNDEFINED, data);
    AQ_FAULT("core.preempt.proposed");
    return true;
}

/* ---- PENDING ---- */

static void explain_later(struct core *core, struct live *l, int64_t now)
{
    struct strbuf json = STRBUF_INIT;
    struct event *e;

    if (l->verdict == l->explained || l->verdict == SCHED_BEHIND) {
        attempts_keep(core, l, now);
        return;
    }
    if (now < l->verdict_usec + EXPLAIN_USEC) {
        live_wake_at(core, l, l->verdict_usec + EXPLAIN_USEC);
        return;
    }
    if (explain(core, l, NULL, &json, NULL) == 0 &&
        (e = propose(core, l, EVENT_SESSION_EXPLAINED))) {
        e->session_change.id = l->s.id;
        e->session_change.reason = strdup(l->verdict == SCHED_NO_ROOM ? "no-available-instances"
                                                                      : "predicate-checks-failed");
        e->session_change.status_data = strbuf_steal(&json);
        attempts_explained(core, l, e->session_change.status_data);
    }
    l->explained = l->verdict;
    strbuf_done(&json);
}

/* Nothing tells when a session has run long enough to be displaced. */
static void look_at_victims_again(struct core *core, struct live *l, int64_t now)
{
    const struct sched_preemption *p = &l->rgroup->options.preemption;

    if (!p->enabled || !p->min_runtime_usec || !l->wishes || !l->wishes->job_priority ||
        l->verdict != SCHED_NO_ROOM)
        return;
    if (now >= l->pass_usec) {
        l->rgroup->needs_pass |= l->pass_usec != 0;
        l->pass_usec = now + p->min_runtime_usec;
        core_schedule_turn(core);
    }
    live_wake_at(core, l, l->pass_usec);
}

static void step_pending(struct core *core, struct live *l, int64_t now)
{
    int64_t timeout = l->rgroup->scheduling.pending_timeout_usec;

    if (timeout > 0 && now >= age_due(core, l, timeout))
        l->end_reason = l->end_reason ? l->end_reason : REASON_PENDING_TIMEOUT;
    if (l->end_reason) {
        for (size_t i = 0; i < l->s.kernel_count; i++)
            (void)propose_kernel(core, l, i, KERNEL_CANCELLED, l->end_reason);
        propose_end(core, l, SESSION_CANCELLED, l->end_reason, RESULT_UNDEFINED, NULL);
        AQ_FAULT("core.cancel.proposed");
        return;
    }
    if (timeout > 0)
        live_wake_at(core, l, age_due(core, l, timeout));
    if (l->retry_usec) {
        l->retry_usec = 0;
        queue_unpark(core, l);
    }
    if (l->verdict == SCHED_TOO_EARLY) {
        int64_t wait = l->s.starts_usec - clock_realtime_usec();

        if (wait <= 0)
            queue_unpark(core, l);
        else
            live_wake_at(core, l, now + AQ_MIN(wait, WALL_CHECK_USEC));
    }
    look_at_victims_again(core, l, now);
    explain_later(core, l, now);
}

/* ---- SCHEDULED .. CREATING ---- */

/* It runs, with what its agent gave it. What a former attempt published elsewhere is over. */
static void begin_kernel(struct core *core, struct live *l, size_t rank)
{
    const struct kernel_live *f = &l->kernels[rank];
    struct event *e = propose_kernel(core, l, rank, KERNEL_RUNNING, NULL);

    if (!e)
        return;
    if (f->alloc)
        e->kernel_status.alloc = strdup(f->alloc);
    if (f->service_ports || l->s.kernels[rank].service_ports)
        e->kernel_status.service_ports = strdup(f->service_ports ? f->service_ports : "[]");
}

/* The kernel's status as its agent reports it. */
static void follow_start(struct core *core, struct live *l, size_t rank, int64_t now)
{
    const struct kernel *k = &l->s.kernels[rank];
    const struct kernel_live *f = &l->kernels[rank];

    if (f->fact == FACT_RUNNING || f->fact == FACT_ENDED) {
        if (k->status != KERNEL_RUNNING)
            begin_kernel(core, l, rank);
    } else if (f->fact == FACT_CREATING && k->status == KERNEL_SCHEDULED) {
        if (now - l->since_usec >= LINGER_USEC)
            (void)propose_kernel(core, l, rank, KERNEL_PREPARING, NULL);
        else
            live_wake_at(core, l, l->since_usec + LINGER_USEC);
    } else if (k->status != KERNEL_RUNNING &&
               (f->sent_usec == 0 || now - f->sent_usec >= RESEND_USEC) &&
               f->fact != FACT_CREATING) {
        order_create(core, l, rank);
    }
}

static bool has_begun(const struct live *l, size_t rank)
{
    return l->kernels[rank].fact == FACT_RUNNING || l->kernels[rank].fact == FACT_ENDED ||
           l->s.kernels[rank].status == KERNEL_RUNNING ||
           kernel_is_terminal(l->s.kernels[rank].status);
}

static void step_starting(struct core *core, struct live *l, int64_t now)
{
    bool all_begun = true, any_creating = false;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (l->kernels[i].fact == FACT_ERROR) {
            fail_start(core, l, i);
            return;
        }
        if (l->s.kernels[i].status == KERNEL_RUNNING && is_gone(core, l, i, now) &&
            l->kernels[i].fact != FACT_ENDED) {
            begin_end(core, l, REASON_CONTAINER_NOT_FOUND, result_if_ended(l), NULL);
            return;
        }
        any_creating |= l->kernels[i].fact == FACT_CREATING;
        all_begun &= has_begun(l, i);
    }
    for (size_t i = 0; i < l->s.kernel_count; i++)
        follow_start(core, l, i, now);
    if (all_begun)
        propose_session(core, l, SESSION_RUNNING, NULL);
    else if (any_creating && l->s.status == SESSION_SCHEDULED &&
             now - l->since_usec >= LINGER_USEC)
        propose_session(core, l, SESSION_PREPARING, NULL);
}

/* ---- RUNNING ---- */

static const char *finish_reason(const struct live *l, enum session_result *ret_result)
{
    const struct kernel_live *main = &l->kernels[0];
    bool ok = main->fact == FACT_ENDED && main->has_exit && main->exit_code == 0;

    *ret_result = RESULT_UNDEFINED;
    if (l->s.type == SESSION_BATCH)
        *ret_result = ok ? RESULT_SUCCESS : RESULT_FAILURE;
    if (main->fact == FACT_ABSENT)
        return REASON_CONTAINER_NOT_FOUND;
    if (main->reason && strcmp(main->reason, REASON_SELF_TERMINATED) != 0)
        return main->reason;
    if (l->s.type != SESSION_BATCH)
        return REASON_SELF_TERMINATED;
    return ok ? REASON_TASK_FINISHED : REASON_TASK_FAILED;
}

/* The main kernel has ended: so does the session. */
static void finish(struct core *core, struct live *l, int64_t now)
{
    enum session_result result;
    const char *reason = finish_reason(l, &result);
    bool all = all_gone(core, l, now);

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status))
            continue;
        if (is_gone(core, l, i, now))
            (void)end_kernel(core, l, i, reason);
        else
            (void)propose_kernel(core, l, i, KERNEL_TERMINATING, reason);
    }
    propose_end(core, l, all ? SESSION_TERMINATED : SESSION_TERMINATING, reason, result, NULL);
    AQ_FAULT("core.finish.proposed");
}

static void restart(struct core *core, struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        struct event *e;

        if (l->s.kernels[i].status != KERNEL_RUNNING)
            continue;
        e = propose_kernel(core, l, i, KERNEL_RESTARTING, REASON_RESTARTING);
        if (e)
            e->kernel_status.attempt = l->s.kernels[i].attempt + 1;
    }
    propose_session(core, l, SESSION_RESTARTING, REASON_RESTARTING);
    AQ_FAULT("core.restart.proposed");
}

static void step_running(struct core *core, struct live *l, int64_t now)
{
    int64_t limit = l->s.batch_timeout_usec ? l->s.batch_timeout_usec + BATCH_MARGIN_USEC : 0;
    bool degraded = false;

    if (is_gone(core, l, 0, now)) {
        finish(core, l, now);
        return;
    }
    if (limit && now >= age_due(core, l, limit)) {
        begin_end(core, l, REASON_TASK_TIMEOUT, RESULT_FAILURE, NULL);
        return;
    }
    if (limit)
        live_wake_at(core, l, age_due(core, l, limit));
    if (l->wants_restart) {
        restart(core, l);
        return;
    }
    for (size_t i = 1; i < l->s.kernel_count; i++)
        if (kernel_is_holding(l->s.kernels[i].status) && is_gone(core, l, i, now)) {
            (void)end_kernel(core, l, i, REASON_SELF_TERMINATED);
            degraded = true;
        }
    if (degraded && l->s.status == SESSION_RUNNING)
        propose_session(core, l, SESSION_RUNNING_DEGRADED, NULL);
}

/* ---- RESTARTING ---- */

static void step_restarting(struct core *core, struct live *l, int64_t now)
{
    bool all = true;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const struct kernel_live *f = &l->kernels[i];

        if (l->s.kernels[i].status != KERNEL_RESTARTING)
            continue;
        if (f->fact == FACT_ERROR || (f->fact == FACT_ABSENT && is_gone(core, l, i, now))) {
            begin_end(core, l, REASON_FAILED_TO_START, result_if_ended(l), f->error);
            return;
        }
        all &= f->fact == FACT_RUNNING || f->fact == FACT_ENDED;
        if (f->fact == FACT_NONE && (f->sent_usec == 0 || now - f->sent_usec >= RESEND_USEC))
            order_restart(core, l, i);
    }
    if (!all)
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].status == KERNEL_RESTARTING)
            (void)propose_kernel(core, l, i, KERNEL_RUNNING, NULL);
    propose_session(core, l, SESSION_RUNNING, NULL);
}

/* ---- TERMINATING, RESCHEDULING ---- */

static void order_end(struct core *core, struct live *l, size_t rank, bool now_at_once)
{
    struct kernel_live *f = &l->kernels[rank];

    if (now_at_once ? f->kill_sent : f->destroy_sent)
        return;
    order_destroy(core, l, rank, now_at_once ? 0 : core->conf.kill_grace_usec, l->s.reason);
}

static void step_terminating(struct core *core, struct live *l, int64_t now, bool give_up)
{
    bool all = give_up || all_gone(core, l, now);

    propose_forced(core, l);
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!kernel_is_holding(l->s.kernels[i].status))
            continue;
        if (give_up || is_gone(core, l, i, now)) {
            (void)end_kernel(core, l, i, NULL);
        } else {
            order_end(core, l, i, l->s.forced);
            /* To see whether an absent one stays absent. */
            if (l->kernels[i].fact == FACT_ABSENT)
                live_wake_at(core, l, l->kernels[i].sent_usec + RESEND_USEC);
        }
    }
    if (all) {
        bool never_ran = l->s.running_usec == 0 && l->s.reason &&
                         strncmp(l->s.reason, "failed-to-", 10) == 0;

        propose_end(core, l, never_ran ? SESSION_ERROR : SESSION_TERMINATED,
                    give_up ? REASON_HANG_TIMEOUT : NULL, result_if_ended(l), NULL);
        AQ_FAULT("core.terminate.finished");
    }
}

/* Its programs may save what they have, within the grace. */
static void step_preempted(struct core *core, struct live *l, int64_t now)
{
    if (all_gone(core, l, now)) {
        propose_session(core, l, SESSION_RESCHEDULING, NULL);
        AQ_FAULT("core.preempt.gone");
        return;
    }
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!is_gone(core, l, i, now)) {
            order_end(core, l, i, false);
            if (l->kernels[i].fact == FACT_ABSENT)
                live_wake_at(core, l, l->kernels[i].sent_usec + RESEND_USEC);
        }
}

static void step_rescheduling(struct core *core, struct live *l, int64_t now)
{
    bool all = true;

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!is_gone(core, l, i, now)) {
            all = false;
            order_end(core, l, i, true);
        }
    if (!all)
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        struct event *e;

        if (l->s.kernels[i].status == KERNEL_PENDING)
            continue;
        if (!(e = propose_kernel(core, l, i, KERNEL_PENDING, NULL)))
            return;
        e->kernel_status.agent_id = strdup("");
        e->kernel_status.attempt = l->s.kernels[i].attempt + 1;
    }
    propose_session(core, l, SESSION_PENDING, NULL);
    AQ_FAULT("core.requeue.proposed");
}

/* ---- all ---- */

static bool all_connected(const struct core *core, const struct live *l)
{
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (l->s.kernels[i].agent_id && !core_agent_is_connected(core, l->s.kernels[i].agent_id))
            return false;
    return true;
}

/* It has been in this state for too long. */
static void expire(struct core *core, struct live *l, struct status_deadline d, int64_t now)
{
    if (l->s.status == SESSION_TERMINATING) {
        step_terminating(core, l, now, true);
    } else if (!all_connected(core, l)) {
        live_wake_at(core, l, now + d.after_usec); /* how long to wait for an agent is a policy */
    } else if (d.next == SESSION_TERMINATING) {
        begin_end(core, l, d.reason, result_if_ended(l), NULL);
    } else {
        propose_session(core, l, d.next, d.reason);
    }
    AQ_FAULT("core.deadline.passed");
}

static bool has_started(enum session_status s)
{
    return s != SESSION_PENDING && s != SESSION_TERMINATING && s != SESSION_RESCHEDULING &&
           s != SESSION_DEPRIORITIZING && s != SESSION_RESERVED;
}

void step(struct core *core, struct live *l)
{
    int64_t now = clock_monotonic_usec();
    struct status_deadline d = session_deadline(l->s.status);

    if (session_is_terminal(l->s.status))
        return;
    if (l->retry_usec > now) {
        live_wake_at(core, l, l->retry_usec);
        return;
    }
    if (d.after_usec && now >= age_due(core, l, d.after_usec)) {
        expire(core, l, d, now);
        return;
    }
    if (d.after_usec)
        live_wake_at(core, l, age_due(core, l, d.after_usec));
    if (has_started(l->s.status)) {
        if (l->end_reason) {
            begin_end(core, l, l->end_reason, result_if_ended(l), NULL);
            return;
        }
        if (handle_loss(core, l))
            return;
        if (l->is_preempted && preempt(core, l, now))
            return;
    }
    switch (l->s.status) {
    case SESSION_PENDING:
    case SESSION_DEPRIORITIZING:
    case SESSION_RESERVED:
        step_pending(core, l, now);
        break;
    case SESSION_SCHEDULED:
    case SESSION_PREPARING:
    case SESSION_PULLING:
    case SESSION_PREPARED:
    case SESSION_CREATING:
        step_starting(core, l, now);
        break;
    case SESSION_RUNNING:
    case SESSION_RUNNING_DEGRADED:
        step_running(core, l, now);
        break;
    case SESSION_RESTARTING:
        step_restarting(core, l, now);
        break;
    case SESSION_TERMINATING:
        step_terminating(core, l, now, false);
        break;
    case SESSION_PREEMPTED:
        step_preempted(core, l, now);
        break;
    case SESSION_RESCHEDULING:
        step_rescheduling(core, l, now);
        break;
    case SESSION_TERMINATED:
    case SESSION_ERROR:
    case SESSION_CANCELLED:
    case SESSION_STATUS_COUNT:
        break;
    }
}
