/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - the states of sessions, kernels and agents, and what may follow what
 *
 * The states are those of Backend.AI in 2026. One rule for all changes:
 * status_may_follow(); a status change is compare-and-swap on (status,
 * version); terminal states are never left. Every non-terminal state has a
 * deadline (0 = may last forever by nature: PENDING, RUNNING) and the state
 * that follows when it passes.
 */
#ifndef AQ_MODEL_STATUS_H
#define AQ_MODEL_STATUS_H

#include <stdbool.h>
#include <stdint.h>

enum session_status {
    SESSION_PENDING,
    SESSION_DEPRIORITIZING,
    SESSION_RESERVED,
    SESSION_SCHEDULED,
    SESSION_PREPARING,
    SESSION_PULLING,
    SESSION_PREPARED,
    SESSION_CREATING,
    SESSION_RUNNING,
    SESSION_RUNNING_DEGRADED,
    SESSION_RESTARTING,
    SESSION_PREEMPTED,
    SESSION_RESCHEDULING,
    SESSION_TERMINATING,
    SESSION_TERMINATED,
    SESSION_ERROR,
    SESSION_CANCELLED,
    SESSION_STATUS_COUNT
};

enum kernel_status {
    KERNEL_PENDING,
    KERNEL_RESERVED,
    KERNEL_SCHEDULED,
    KERNEL_PREPARING,
    KERNEL_PULLING,
    KERNEL_PREPARED,
    KERNEL_CREATING,
    KERNEL_RUNNING,
    KERNEL_RESTARTING,
    KERNEL_TERMINATING,
    KERNEL_TERMINATED,
    KERNEL_ERROR,
    KERNEL_CANCELLED,
    KERNEL_STATUS_COUNT
};

enum agent_status {
    AGENT_ALIVE,
    AGENT_LOST,
    AGENT_RESTARTING,
    AGENT_TERMINATED,
    AGENT_STATUS_COUNT
};

enum session_type { SESSION_INTERACTIVE, SESSION_BATCH, SESSION_INFERENCE, SESSION_SYSTEM };
enum session_result { RESULT_UNDEFINED, RESULT_SUCCESS, RESULT_FAILURE };

/* "PENDING" ...; the parse calls take any case and return -EINVAL for unknown names. */
const char *session_status_name(enum session_status s);
int session_status_parse(const char *text, enum session_status *ret);
const char *kernel_status_name(enum kernel_status s);
int kernel_status_parse(const char *text, enum kernel_status *ret);
const char *agent_status_name(enum agent_status s);
int agent_status_parse(const char *text, enum agent_status *ret);
/* "interactive", "batch", "inference", "system" */
const char *session_type_name(enum session_type t);
int session_type_parse(const char *text, enum session_type *ret);
/* "UNDEFINED", "SUCCESS", "FAILURE"; "FAILED" is read as FAILURE */
const char *session_result_name(enum session_result r);
int session_result_parse(const char *text, enum session_result *ret);

/* The name that a client of API version < v9 knows:
 * PREPARED and CREATING show as PREPARING, RESERVED and DEPRIORITIZING as
 * PENDING, RUNNING_DEGRADED as RUNNING, PREEMPTED and RESCHEDULING as
 * RESTARTING.
 */
const char *session_status_name_2203(enum session_status s);
const char *kernel_status_name_2203(enum kernel_status s);

bool session_status_may_follow(enum session_status from, enum session_status to);
bool kernel_status_may_follow(enum kernel_status from, enum kernel_status to);

bool session_is_terminal(enum session_status s);
bool kernel_is_terminal(enum kernel_status s);

/* The kernel holds its agent's resources (RESERVED .. TERMINATING). */
bool kernel_is_holding(enum kernel_status s);
/* A user's DELETE without force is accepted. */

/* How long a session may stay in a state before the reconciler acts, and the
 * state that it then goes to (itself = remind the agents and wait again).
 */
struct status_deadline {
    int64_t after_usec; /* 0 = none */
    enum session_status next;
    const char *reason;
};
struct status_deadline session_deadline(enum session_status s);

/* ---- events ---- */

/* The name of the event that clients get when a session or kernel comes into this status; NULL = no
 * event. manager/core/bus.h has their meaning.
 */
const char *session_event_name(enum session_status status);
const char *kernel_event_name(enum kernel_status status);

#define SESSION_EVENT_WAITING "session_waiting"           /* its reason to wait has changed */
#define SESSION_EVENT_IDLE_MOVED "session_idle_moved"     /* extended, exempted, or no longer */
#define SESSION_EVENT_IDLE_WARNING "session_idle_warning" /* an idle check ends it soon */
#define KERNEL_EVENT_RESIZED "kernel_resized"

/* The same for a result; NULL for RESULT_UNDEFINED. */
const char *result_event_name(enum session_result result);

#endif
