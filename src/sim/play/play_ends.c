/* SPDX-License-Identifier: Apache-2.0 */
/* Why sessions ended: what their users asked for, what their programs did, or what a fault may do. */
#include "sim/play/play_ends.h"

#include <string.h>

#include "model/session.h"
#include "monitor/protocol.h"
#include "sim/play/play.h"

static bool ends_is(const char *reason, const char *other)
{
    return reason && strcmp(reason, other) == 0;
}

/* One of its programs has exited so. */
static bool ends_any_exited(const struct play *play, const struct play_end *end, int code)
{
    for (size_t i = 0; i < end->kernel_count; i++) {
        const struct play_ran *p = map_get(&play->programs.by_kernel, &end->kernels[i],
                                           sizeof(end->kernels[i]));

        if (p && play_ran_exited(p, code))
            return true;
    }
    return false;
}

/* Without faults, or whatever the faults. */
static bool ends_has_cause(const struct play_session *s, const char *reason)
{
    const struct play_command *does = &s->program;

    return session_reason_is_by_user(reason) || ends_is(reason, REASON_TASK_FINISHED)
           || ends_is(reason, REASON_AGENT_DRAINED)
           || (ends_is(reason, REASON_PREEMPTED) && s->is_preemptible)
           || (ends_is(reason, REASON_TASK_FAILED) && does->code)
           || (ends_is(reason, REASON_OUT_OF_MEMORY) && does->is_oom)
           || (ends_is(reason, REASON_DEPENDENCY_FAILED) && s->needs) || does->fails;
}

/* These come from a machine or a network that is gone for a while. */
static bool ends_may_be_a_fault(const char *reason)
{
    static const char *const reasons[] = { REASON_AGENT_LOST,          REASON_AGENT_REMOVED,
                                           REASON_CONTAINER_NOT_FOUND, REASON_MONITOR_LOST,
                                           REASON_RESTART_TIMEOUT,     REASON_HANG_TIMEOUT };

    for (size_t i = 0; i < AQ_COUNT(reasons); i++)
        if (ends_is(reason, reasons[i]))
            return true;
    return false;
}

static void ends_check(struct play *play, const struct play_session *s, const struct play_end *end)
{
    const struct play_ran *p = play_programs_of(play, &end->kernels[0]);
    bool is_exit = ends_is(end->reason, REASON_TASK_FINISHED)
                   || (ends_is(end->reason, REASON_TASK_FAILED) && s->kernels == 1);

    if (end->result == RESULT_SUCCESS && s->type == SESSION_BATCH && !play_ran_exited(p, 0))
        play_break(play, "durable", "%s has succeeded, but its program %s", s->name,
                   !p->starts   ? "never ran"
                   : p->running ? "runs"
                                : "was ended, or failed");
    else if (is_exit && s->type == SESSION_BATCH && p->starts
             && !(end->has_exit && play_ran_exited(p, end->exit_code)))
        play_break(play, "durable", "%s has exit status %d, and its program ended with %d", s->name,
                   end->has_exit ? end->exit_code : -1, p->code);
    else if (ends_is(end->reason, REASON_TASK_FAILED)
             && !ends_any_exited(play, end, s->program.code))
        play_break(play, "durable", "%s has failed, but its program has not", s->name);
    else if (session_reason_is_by_user(end->reason) && !s->is_end_asked)
        play_break(play, "durable", "%s has ended as its user wished (%s), who did not", s->name,
                   end->reason);
    else if (!ends_has_cause(s, end->reason)
             && !(play->options.faults && ends_may_be_a_fault(end->reason)))
        play_break(play, "durable", "%s has ended (%s) for no cause", s->name,
                   end->reason ? end->reason : "without a reason");
}

void play_ends_take(struct play *play, const struct play_session *s, const struct play_end *end)
{
    struct play_report *r = &play->report;

    r->made++;
    if (end->status == SESSION_CANCELLED)
        r->cancelled++;
    else if (end->status == SESSION_ERROR)
        r->errors++;
    else if (end->result == RESULT_SUCCESS)
        r->succeeded++;
    else if (session_reason_is_by_user(end->reason))
        r->ended++;
    else
        r->failed++;
    if (s)
        ends_check(play, s, end);
}
