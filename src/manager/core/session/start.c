/* SPDX-License-Identifier: Apache-2.0 */
/* start.c - sessions from SCHEDULED to CREATING: their kernels start together */
#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/session/kernel_failure.h"
#include "manager/core/session/lifecycle.h"
#include "manager/core/session/retry.h"
#include "manager/core/session/session_network.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* A state that lasts less than this leaves no row: programs that start at
 * once go from SCHEDULED to RUNNING with one commit.
 */
#define LINGER_USEC (200 * USEC_PER_MSEC)

/* Proposes RUNNING with the devices and ports that the agent reported, which replace those of an
 * earlier attempt.
 */
static void start_begin_kernel(struct core *core, struct session_entry *l, size_t rank)
{
    const struct kernel_entry *f = &l->kernels[rank];
    struct event *e = proposal_add_kernel_status(core, l, rank, KERNEL_RUNNING, NULL);

    e->kernel_status.alloc = aq_strdup(f->alloc);
    if (f->service_ports || l->s.kernels[rank].service_ports)
        e->kernel_status.service_ports = aq_strdup(f->service_ports ? f->service_ports : "[]");
}

void start_follow_kernel(struct core *core, struct session_entry *l, size_t rank, int64_t now)
{
    const struct kernel *k = &l->s.kernels[rank];
    const struct kernel_entry *f = &l->kernels[rank];

    if (f->fact == FACT_RUNNING || f->fact == FACT_ENDED) {
        if (k->status != KERNEL_RUNNING)
            start_begin_kernel(core, l, rank);
    } else if ((f->fact == FACT_CREATING && k->status == KERNEL_SCHEDULED)
               || (f->fact == FACT_BOOTSTRAPPING && k->status != KERNEL_CREATING)) {
        if (now - l->since_usec >= LINGER_USEC)
            (void)proposal_add_kernel_status(
                core, l, rank, f->fact == FACT_CREATING ? KERNEL_PREPARING : KERNEL_CREATING, NULL);
        else
            durable_wake_at(core, &l->durable, l->since_usec + LINGER_USEC);
    } else if (k->status != KERNEL_RUNNING
               && (f->sent_usec == 0 || now - f->sent_usec >= RESEND_USEC)
               && f->fact != FACT_CREATING && f->fact != FACT_BOOTSTRAPPING) {
        agent_command_create(core, l, rank);
    }
}

static bool start_kernel_has_begun(const struct session_entry *l, size_t rank)
{
    return l->kernels[rank].fact == FACT_RUNNING || l->kernels[rank].fact == FACT_ENDED
           || l->s.kernels[rank].status == KERNEL_RUNNING
           || kernel_is_terminal(l->s.kernels[rank].status);
}

/* True if the other kernels wait for this one. They do not wait for a kernel that has no place, or
 * that joins a running session.
 */
static bool start_is_awaited(const struct session_entry *l, size_t rank)
{
    enum kernel_status status = l->s.kernels[rank].status;

    return l->s.status == SESSION_RESTARTING ? status == KERNEL_RESTARTING
                                             : status != KERNEL_PENDING;
}

static bool start_may_release(const struct session_entry *l, size_t rank)
{
    return !start_is_awaited(l, rank) || l->kernels[rank].is_ready
           || l->kernels[rank].fact == FACT_BOOTSTRAPPING || start_kernel_has_begun(l, rank);
}

void start_release(struct core *core, struct session_entry *l, int64_t now)
{
    bool others_run = true;

    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (!start_may_release(l, i))
            return;
    for (size_t i = l->s.kernel_count; i-- > 0;) {
        const struct kernel_entry *f = &l->kernels[i];

        if (i == 0 && !others_run)
            return;
        if (!start_is_awaited(l, i) || start_kernel_has_begun(l, i))
            continue;
        others_run = false;
        if (f->fact == FACT_CREATING
            && (f->release_usec == 0 || now - f->release_usec >= RESEND_USEC)) {
            agent_command_release(core, l, i);
            durable_wake_at(core, &l->durable, now + RESEND_USEC);
        }
    }
}

/* Ends the session if one of its kernels failed before all programs ran, because "main1" might wait
 * for that kernel indefinitely. True if the end was proposed.
 */
static bool start_fail(struct core *core, struct session_entry *l, bool all_begun)
{
    size_t rank = kernel_failure_find_at_start(l, all_begun);
    enum session_result result;
    const char *reason;

    if (rank == l->s.kernel_count)
        return false;
    reason = kernel_failure_reason(l, rank, &result);
    lifecycle_end_by(core, l, rank, reason, result);
    AQ_FAULT("core.start.vain");
    return true;
}

void start_step(struct core *core, struct session_entry *l, int64_t now)
{
    bool all_begun = true, any_creating = false, any_bootstrapping = false;
    struct event *e;

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        if (!start_is_awaited(l, i))
            continue;
        if (l->kernels[i].fact == FACT_ERROR) {
            retry_failed(core, l, i);
            return;
        }
        if (l->s.kernels[i].status == KERNEL_RUNNING && lifecycle_has_ended(core, l, i, now)
            && l->kernels[i].fact != FACT_ENDED) {
            lifecycle_end_by(core, l, i, REASON_CONTAINER_NOT_FOUND, termination_result(l));
            return;
        }
        any_creating |= l->kernels[i].fact == FACT_CREATING;
        any_bootstrapping |= l->kernels[i].fact == FACT_BOOTSTRAPPING;
        all_begun &= start_kernel_has_begun(l, i);
    }
    if (start_fail(core, l, all_begun) || (!all_begun && retry_expired(core, l, now)))
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++)
        if (start_is_awaited(l, i))
            start_follow_kernel(core, l, i, now);
    session_network_follow(core, l);
    start_release(core, l, now);
    if (all_begun) {
        e = proposal_add_session_status(core, l, SESSION_RUNNING, NULL);
        e->session_status.has_retry = l->s.retry.attempts != 0; /* reset it */
        e->session_status.status_data = l->s.retry.attempts || l->s.rerun ? aq_strdup("{}") : NULL;
    } else if (now - l->since_usec >= LINGER_USEC) {
        if (any_bootstrapping && l->s.status != SESSION_CREATING)
            proposal_add_session_status(core, l, SESSION_CREATING, NULL);
        else if (any_creating && l->s.status == SESSION_SCHEDULED)
            proposal_add_session_status(core, l, SESSION_PREPARING, NULL);
    }
}
