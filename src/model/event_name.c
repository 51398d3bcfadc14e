/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the events of sessions and kernels. */
#include "model/event_name.h"

static const char *const session_event_names[SESSION_STATUS_COUNT] = {
    [SESSION_PENDING] = "session_enqueued",          [SESSION_SCHEDULED] = "session_scheduled",
    [SESSION_PREPARING] = "session_preparing",       [SESSION_PULLING] = "session_pulling",
    [SESSION_CREATING] = "session_creating",         [SESSION_RUNNING] = "session_started",
    [SESSION_RESTARTING] = "session_restarting",     [SESSION_PREEMPTED] = "session_preempted",
    [SESSION_RESCHEDULING] = "session_rescheduling", [SESSION_TERMINATING] = "session_terminating",
    [SESSION_TERMINATED] = "session_terminated",     [SESSION_ERROR] = "session_terminated",
    [SESSION_CANCELLED] = "session_cancelled",
};

static const char *const kernel_event_names[KERNEL_STATUS_COUNT] = {
    [KERNEL_PREPARING] = "kernel_preparing",     [KERNEL_PULLING] = "kernel_pulling",
    [KERNEL_CREATING] = "kernel_creating",       [KERNEL_RUNNING] = "kernel_started",
    [KERNEL_TERMINATING] = "kernel_terminating", [KERNEL_TERMINATED] = "kernel_terminated",
    [KERNEL_ERROR] = "kernel_terminated",        [KERNEL_CANCELLED] = "kernel_cancelled",
};

const char *session_event_name(enum session_status status)
{
    return session_event_names[status];
}

const char *kernel_event_name(enum kernel_status status)
{
    return kernel_event_names[status];
}

const char *result_event_name(enum session_result result)
{
    return result == RESULT_UNDEFINED ? NULL
           : result == RESULT_SUCCESS ? "session_success"
                                      : "session_failure";
}
