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
/* The agent ends a batch program at its limit; we step in when it does not. */
#define BATCH_MARGIN_USEC (60 * USEC_PER_SEC)
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
        if (policy && strcmp(policy, "requeue") == 0 && end_may_reschedule(l))
            propose_session(core, l, SESSION_RESCHEDULING, REASON_AGENT_LOST);
        else
            end_begin(core, l, REASON_AGENT_LOST, end_result(l), NULL);
        AQ_FAULT("core.loss.proposed");
        return true;
    }
    return false;
}

/* ---- preemption ---- */

/* It has to make way. True if that was proposed. */
static bool preempt(struct core *core, struct live *l, int64_t now)
{
    AQ_CLEANUP(aq_freep) char *data = preempt_data(l);
    const char *reason = l->places ? REASON_MOVED : REASON_PREEMPTED;

    if (is_gone(core, l, 0, now))
        return false; /* it has ended by itself */
    if (preempt_fate(l) == CORE_TERMINATED || !end_may_reschedule(l))
        end_begin(core, l, reason, end_result(l), data);
    else
        end_propose(core, l,
                    session_status_may_follow(l->s.status, SESSION_PREEMPTED) ? SESSION_PREEMPTED
                                                                              : SESSION_RESCHEDULING,
                    reason, RESULT_UNDEFINED, data);
    AQ_FAULT("core.preempt.proposed");
    return true;
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
    struct event *e;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (l->kernels[i].fact == FACT_ERROR) {
            retry_failed(core, l, i);
            return;
        }
        if (l->s.kernels[i].status == KERNEL_RUNNING && is_gone(core, l, i, now) &&
            l->kernels[i].fact != FACT_ENDED) {
            end_begin(core, l, REASON_CONTAINER_NOT_FOUND, end_result(l), NULL);
            return;
        }
        any_creating |= l->kernels[i].fact == FACT_CREATING;
        all_begun &= has_begun(l, i);
    }
    if (!all_begun && retry_expired(core, l, now))
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++)
        follow_start(core, l, i, now);
    if (all_begun) {
        if ((e = propose_session(core, l, SESSION_RUNNING, NULL)))
            e->session_status.has_retry = l->s.retry.attempts != 0; /* forgotten */
    } else if (any_creating && l->s.status == SESSION_SCHEDULED &&
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
    end_propose(core, l, all ? SESSION_TERMINATED : SESSION_TERMINATING, reason, result, NULL);
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
        end_begin(core, l, REASON_TASK_TIMEOUT, RESULT_FAILURE, NULL);
        return;
    }
    if (limit)
        live_wake_at(core, l, age_due(core, l, limit));
    if (l->wants_restart) {
        restart(core, l);
        return;
    }
    if (resize_step(core, l, now))
        return;
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
            end_begin(core, l, REASON_FAILED_TO_START, end_result(l), f->error);
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

    end_propose_forced(core, l);
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

        end_propose(core, l, never_ran ? SESSION_ERROR : SESSION_TERMINATED,
                    give_up ? REASON_HANG_TIMEOUT : NULL, end_result(l), NULL);
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

/* It has been in this state for too long. */
static void expire(struct core *core, struct live *l, struct status_deadline d, int64_t now)
{
    if (l->s.status == SESSION_TERMINATING) {
        step_terminating(core, l, now, true);
    } else if (!end_agents_are_connected(core, l)) {
        live_wake_at(core, l, now + d.after_usec); /* how long to wait for an agent is a policy */
    } else if (d.next == SESSION_TERMINATING) {
        end_begin(core, l, d.reason, end_result(l), NULL);
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
    d.after_usec = retry_deadline(l, d.after_usec);
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
            end_begin(core, l, l->end_reason, end_result(l), NULL);
            return;
        }
        if (handle_loss(core, l))
            return;
        if (l->is_preempted && preempt(core, l, now))
            return;
    }
    switch (l->s.status) {
    case SESSION_DEPRIORITIZING:
        if (l->end_reason)
            step_pending(core, l, now);
        else
            retry_lower(core, l);
        break;
    case SESSION_PENDING:
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
