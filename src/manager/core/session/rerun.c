/* SPDX-License-Identifier: Apache-2.0 */
/* rerun.c - attempts of a batch session that end, and whether another one follows */
#include "manager/core/session/rerun.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/commit/proposal.h"
#include "manager/core/lookup.h"
#include "manager/core/session/termination.h"
#include "manager/core/state/session_entry.h"
#include "model/session_summary.h"

/* ---- the end of an attempt ---- */

static bool rerun_has_run(const struct session_entry *l)
{
    return l->s.status == SESSION_RUNNING || l->s.status == SESSION_RUNNING_DEGRADED
           || l->s.status == SESSION_RESTARTING;
}

static struct rerun_end rerun_end_of(const struct session_entry *l, size_t rank, const char *reason)
{
    const struct kernel_entry *f = &l->kernels[rank];

    return (struct rerun_end){ .cause = rerun_cause_of(reason, f->has_exit, f->exit_code),
                               .has_exit = f->has_exit,
                               .exit_code = f->exit_code };
}

/* Usage of the attempt as JSON, by session_summary_write(). */
static char *rerun_usage(const struct session_entry *l, const char *reason)
{
    struct session_summary summary = {
        .wall_usec = AQ_MAX(clock_realtime_usec() - l->s.running_usec, INT64_C(0)),
        .was_oom = reason && strcmp(reason, REASON_OUT_OF_MEMORY) == 0,
    };
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    for (size_t i = 0; i < l->s.kernel_count; i++)
        session_summary_add_measured(&summary, l->kernels[i].measured, &l->s.kernels[i].requested);
    session_summary_write(&summary, &w);
    return strbuf_steal(&text);
}

/* The attempt whose number the record has. */
static void rerun_add_row(struct core *core, struct session_entry *l,
                          const struct rerun_record *record, size_t rank, const char *reason,
                          const char *data)
{
    const struct kernel_entry *f = &l->kernels[rank];
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct event *e = proposal_add(core, &l->durable, EVENT_RUN_ENDED);

    if (data)
        core_status_text(data, &text);
    e->run_ended.row = l->s.row;
    e->run_ended.number = record->attempts;
    e->run_ended.started_usec = rerun_has_run(l) ? l->s.running_usec : 0;
    e->run_ended.reason = reason;
    e->run_ended.has_exit = f->has_exit;
    e->run_ended.exit_code = f->exit_code;
    e->run_ended.rank = (uint32_t)rank;
    e->run_ended.kernel_attempt = l->s.kernels[rank].attempt;
    e->run_ended.agent_id = record->agent[0] ? aq_strdup(record->agent) : NULL;
    if (rerun_has_run(l))
        e->run_ended.usage = rerun_usage(l, reason);
    e->run_ended.text = text.len ? strbuf_steal(&text) : NULL;
}

/* The row of the attempt, and the way back to the queue. The record lacks the agent. */
static struct event *rerun_propose(struct core *core, struct session_entry *l,
                                   struct rerun_record *record, size_t rank, enum session_status to,
                                   const char *reason, const char *data)
{
    const char *agent = l->s.kernels[rank].agent_id;
    struct event *e;

    (void)snprintf(record->agent, sizeof(record->agent), "%s", agent ? agent : "");
    rerun_add_row(core, l, record, rank, reason, data);
    e = termination_propose(core, l, to, reason, RESULT_UNDEFINED, data);
    e->session_status.has_rerun = true;
    e->session_status.rerun = *record;
    return e;
}

static bool rerun_decide_for(const struct session_entry *l, const struct rerun_end *end,
                             struct rerun_record *ret)
{
    return l->s.type == SESSION_BATCH && l->s.spec->retry && !l->commands.end_reason
           && rerun_decide(l->s.spec, l->s.rerun, end, clock_realtime_usec(), ret);
}

bool rerun_leaves_lost_agent(const struct session_entry *l)
{
    static const struct rerun_end end = { .cause = RERUN_NODE_LOST };
    struct rerun_record record;
    bool is_leaving = l->s.status == SESSION_RESCHEDULING && l->s.rerun
                      && l->s.rerun->cause == RERUN_NODE_LOST;

    return is_leaving || rerun_decide_for(l, &end, &record);
}

bool rerun_begin(struct core *core, struct session_entry *l, size_t rank, const char *reason,
                 const char *data)
{
    const struct rerun_end end = rerun_end_of(l, rank, reason);
    bool has_grace = (end.cause == RERUN_PREEMPTED || strcmp(reason, REASON_AGENT_DRAINED) == 0)
                     && session_status_may_follow(l->s.status, SESSION_PREEMPTED);
    struct rerun_record record;
    struct event *e;

    if (!termination_may_reschedule(l) || !rerun_decide_for(l, &end, &record))
        return false;
    e = rerun_propose(core, l, &record, rank, has_grace ? SESSION_PREEMPTED : SESSION_RESCHEDULING,
                      reason, data);
    e->session_status.has_retry = true; /* each attempt may fail as often at its start */
    if (end.cause == RERUN_START) {     /* other agents come first */
        free(l->retry.failed_agent);
        l->retry.failed_agent = aq_strdup(l->s.kernels[rank].agent_id);
    }
    AQ_FAULT("core.rerun.proposed");
    return true;
}

void rerun_requeue(struct core *core, struct session_entry *l, size_t rank, enum session_status to,
                   const char *reason, const char *data)
{
    struct rerun_record record = l->s.rerun ? *l->s.rerun : (struct rerun_record){ .attempts = 0 };

    if (!rerun_has_run(l)) {
        termination_propose(core, l, to, reason, RESULT_UNDEFINED, data);
        return;
    }
    record.attempts++;
    record.next_usec = clock_realtime_usec();
    record.cause = rerun_end_of(l, rank, reason).cause;
    (void)rerun_propose(core, l, &record, rank, to, reason, data);
}

/* ---- the delay before the next one ---- */

void rerun_follow(struct session_entry *l)
{
    int64_t wait = l->s.rerun ? l->s.rerun->next_usec - clock_realtime_usec() : 0;

    if (wait > 0) /* the wall clock may have been set back since */
        l->retry.backoff_usec = AQ_MAX(l->retry.backoff_usec,
                                       clock_monotonic_usec() + AQ_MIN(wait, RERUN_DELAY_MAX_USEC));
}
