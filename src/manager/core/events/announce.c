/* SPDX-License-Identifier: Apache-2.0 */
/* announce.c - tells subscribers of sessions and kernels what an applied event has changed
 *
 * The names are listed in bus.h. What an owner sees of a session's way, a
 * preemption too, begins here.
 */
#include "manager/core/events/announce.h"

#include "base/clock.h"
#include "manager/core/bus.h"
#include "manager/core/events/bus_internal.h"
#include "manager/core/lookup.h"
#include "manager/core/state/state.h"

static const char *const announce_session_names[SESSION_STATUS_COUNT] = {
    [SESSION_PENDING] = "session_enqueued",          [SESSION_SCHEDULED] = "session_scheduled",
    [SESSION_PREPARING] = "session_preparing",       [SESSION_PULLING] = "session_pulling",
    [SESSION_CREATING] = "session_creating",         [SESSION_RUNNING] = "session_started",
    [SESSION_RESTARTING] = "session_restarting",     [SESSION_PREEMPTED] = "session_preempted",
    [SESSION_RESCHEDULING] = "session_rescheduling", [SESSION_TERMINATING] = "session_terminating",
    [SESSION_TERMINATED] = "session_terminated",     [SESSION_ERROR] = "session_terminated",
    [SESSION_CANCELLED] = "session_cancelled",
};

static const char *const announce_kernel_names[KERNEL_STATUS_COUNT] = {
    [KERNEL_PREPARING] = "kernel_preparing",     [KERNEL_PULLING] = "kernel_pulling",
    [KERNEL_CREATING] = "kernel_creating",       [KERNEL_RUNNING] = "kernel_started",
    [KERNEL_TERMINATING] = "kernel_terminating", [KERNEL_TERMINATED] = "kernel_terminated",
    [KERNEL_ERROR] = "kernel_terminated",        [KERNEL_CANCELLED] = "kernel_cancelled",
};

void announce(struct core *core, const char *name, const struct session_entry *l,
              const struct kernel *k, const char *reason, int64_t at_usec)
{
    const struct kernel *exited = k ? k : &l->s.kernels[0];
    struct core_event event = {
        .name = name,
        .session = &l->s,
        .kernel = k,
        .reason = reason ? reason : "",
        .has_exit = exited->has_exit,
        .exit_code = exited->exit_code,
        .at_usec = at_usec,
    };

    if (name && core->is_started)
        bus_publish(core, &event);
}

void announce_session_status(struct core *core, const struct session_entry *l,
                             enum session_status status, const char *reason, int64_t at_usec)
{
    announce(core, announce_session_names[status], l, NULL, reason, at_usec);
}

void announce_kernel_status(struct core *core, const struct session_entry *l,
                            const struct kernel *k, enum kernel_status status, const char *reason,
                            int64_t at_usec)
{
    announce(core, announce_kernel_names[status], l, k, reason, at_usec);
}

void core_announce_execution(struct core *core, const struct uuid *session_id, const char *name,
                             const char *run_id, const int *exit_code)
{
    const struct core_event event = {
        .name = name,
        .session = core_find_session(core, session_id),
        .reason = "",
        .has_exit = exit_code != NULL,
        .exit_code = exit_code ? *exit_code : 0,
        .at_usec = clock_realtime_usec(),
        .run_id = run_id,
    };

    if (event.session)
        bus_publish(core, &event);
}
