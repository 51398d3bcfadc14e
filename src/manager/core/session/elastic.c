/* SPDX-License-Identifier: Apache-2.0 */
/* elastic.c - kernels of a running session that come and go while it runs */
#include "manager/core/session/elastic.h"

#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/scheduling/kernel_queue.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* A kernel that fails more often within this time stays ended. */
#define FAILURES_MAX 3
#define FAILURES_USEC (600 * USEC_PER_SEC)

static const char *elastic_reason(const struct kernel_entry *f)
{
    if (f->fact == FACT_ERROR)
        return REASON_FAILED_TO_CREATE;
    if (f->fact == FACT_ABSENT)
        return REASON_CONTAINER_NOT_FOUND;
    return f->reason ? f->reason : REASON_SELF_TERMINATED;
}

/* Count a failure, in memory only. True if the kernel may be started again. */
static bool elastic_count_failure(struct session_entry *l, size_t rank, int64_t now)
{
    struct kernel_entry *f = &l->kernels[rank];

    if (f->single.failures == 0 || now - f->single.failed_usec >= FAILURES_USEC) {
        f->single.failures = 0;
        f->single.failed_usec = now;
    }
    if (f->single.failures >= FAILURES_MAX)
        return false;
    f->single.failures++;
    f->single.retry_usec = now + retry_backoff_usec(f->single.failures);
    free(l->retry.failed_agent);
    l->retry.failed_agent = aq_strdup(l->s.kernels[rank].agent_id);
    return true;
}

/* ---- a kernel that starts ---- */

/* True if the kernel cannot be started and stays ended. */
static bool elastic_start(struct core *core, struct session_entry *l, size_t rank, int64_t now)
{
    struct kernel_entry *f = &l->kernels[rank];

    if (f->fact == FACT_ERROR) {
        if (f->error_is_transient || elastic_count_failure(l, rank, now)) {
            if (f->error_is_transient)
                f->single.retry_usec = now + RESEND_USEC;
            termination_requeue_kernel(core, l, rank, REASON_FAILED_TO_CREATE);
            return false;
        }
        (void)lifecycle_end_kernel(core, l, rank, REASON_FAILED_TO_CREATE);
        return true;
    }
    start_follow_kernel(core, l, rank, now);
    if (f->is_ready && f->fact == FACT_CREATING
        && (f->release_usec == 0 || now - f->release_usec >= RESEND_USEC)) {
        agent_command_release(core, l, rank);
        durable_wake_at(core, &l->durable, now + RESEND_USEC);
    }
    return false;
}

/* ---- a kernel that gives way ---- */

/* True if nothing about the kernel was sent to its agent. */
static bool elastic_is_unsent(const struct session_entry *l, size_t rank)
{
    return l->s.kernels[rank].status == KERNEL_SCHEDULED && l->kernels[rank].sent_usec == 0
           && (l->kernels[rank].fact == FACT_NONE || l->kernels[rank].fact == FACT_ABSENT);
}

static void elastic_give_way(struct core *core, struct session_entry *l, size_t rank, int64_t now)
{
    struct kernel_entry *f = &l->kernels[rank];

    if (elastic_is_unsent(l, rank) || lifecycle_has_ended(core, l, rank, now)) {
        termination_requeue_kernel(core, l, rank, REASON_PREEMPTED);
        AQ_FAULT("core.kernel.preempted");
    } else if (!f->destroy_sent) {
        agent_command_destroy(core, l, rank, 0, core->conf.kill_grace_usec, REASON_PREEMPTED);
        if (!f->destroy_sent)
            durable_wake_at(core, &l->durable, now + RESEND_USEC);
    }
}

/* ---- all of them ---- */

/* Offers the kernel to the scheduler when its backoff has expired. */
static void elastic_wait(struct core *core, struct session_entry *l, size_t rank, int64_t now)
{
    struct kernel_entry *f = &l->kernels[rank];

    if (f->single.retry_usec > now) {
        durable_wake_at(core, &l->durable, f->single.retry_usec);
    } else if (f->single.retry_usec) {
        f->single.retry_usec = 0;
        kernel_queue_wake(core, l);
    }
}

bool elastic_step(struct core *core, struct session_entry *l, int64_t now)
{
    bool has_failed = false, any_starts = false;

    if (l->durable.retry_usec && !list_is_empty(&l->queue.lacking_link)) {
        l->durable.retry_usec = 0; /* retries a placement that the store refused */
        kernel_queue_wake(core, l);
    }
    for (size_t i = 1; i < l->s.kernel_count; i++) {
        enum kernel_status status = l->s.kernels[i].status;

        if (status == KERNEL_PENDING) {
            elastic_wait(core, l, i, now);
        } else if (l->kernels[i].single.is_preempted && kernel_is_holding(status)) {
            if (status != KERNEL_RUNNING || !lifecycle_has_ended(core, l, i, now))
                elastic_give_way(core, l, i, now); /* else elastic_take_end() does */
        } else if (kernel_is_holding(status) && status != KERNEL_RUNNING) {
            any_starts = true;
            has_failed |= elastic_start(core, l, i, now);
        }
    }
    if (!any_starts)
        session_entry_forget_start(l);
    return has_failed;
}

/* ---- a kernel that has ended ---- */

bool elastic_has_finished(const struct session_entry *l, size_t rank)
{
    return session_is_elastic(&l->s) && kernel_failure_has_succeeded(&l->kernels[rank]);
}

bool elastic_take_end(struct core *core, struct session_entry *l, size_t rank, int64_t now)
{
    const struct kernel_entry *f = &l->kernels[rank];

    if (f->single.is_preempted || (f->reason && strcmp(f->reason, REASON_PREEMPTED) == 0)) {
        elastic_give_way(core, l, rank, now);
        return true;
    }
    if (!session_is_elastic(&l->s) || l->s.spec->on_failure || elastic_has_finished(l, rank)
        || !elastic_count_failure(l, rank, now))
        return false;
    termination_requeue_kernel(core, l, rank, elastic_reason(f));
    AQ_FAULT("core.kernel.failed");
    return true;
}

/* ---- a kernel whose agent is lost ---- */

bool lifecycle_restart_lost_kernels(struct core *core, struct session_entry *l)
{
    bool any = false;

    if ((l->s.status != SESSION_RUNNING && l->s.status != SESSION_RUNNING_DEGRADED)
        || kernel_failure_is_given_up(core, l, 0, false))
        return false;
    for (size_t i = 1; i < l->s.kernel_count; i++) {
        const struct kernel *k = &l->s.kernels[i];

        if (!kernel_is_holding(k->status) || !kernel_failure_is_given_up(core, l, i, false))
            continue;
        termination_requeue_kernel(core, l, i, REASON_AGENT_LOST);
        any = true;
    }
    AQ_FAULT("core.loss.kernels");
    return any;
}
