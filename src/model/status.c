/* SPDX-License-Identifier: Apache-2.0 */
/* The states of sessions, kernels and agents, and what may follow what. */
#include <errno.h>
#include <stddef.h>
#include <strings.h>

#include "base/cleanup.h"
#include "model/session.h"
#include "model/status.h"

#define S(name) (1u << SESSION_##name)
#define K(name) (1u << KERNEL_##name)

#define SECONDS(n) ((int64_t)(n)*1000000)

/* One row per state: names, what may follow, and when the reconciler acts. */
static const struct {
    const char *name, *name_2203;
    uint32_t next;
    struct status_deadline deadline;
} sessions[SESSION_STATUS_COUNT] = {
    [SESSION_PENDING] = { "PENDING",
                          "PENDING",
                          S(DEPRIORITIZING) | S(RESERVED) | S(SCHEDULED) | S(CANCELLED),
                          { 0, SESSION_PENDING, NULL } },
    [SESSION_DEPRIORITIZING] = { "DEPRIORITIZING",
                                 "PENDING",
                                 S(PENDING) | S(CANCELLED),
                                 { SECONDS(60), SESSION_PENDING, REASON_DEPRIORITIZED } },
    [SESSION_RESERVED] = { "RESERVED",
                           "PENDING",
                           S(PENDING) | S(SCHEDULED) | S(CANCELLED),
                           { SECONDS(600), SESSION_PENDING, "RESERVATION_RELEASED" } },
    [SESSION_SCHEDULED] = { "SCHEDULED",
                            "SCHEDULED",
                            S(PREPARING) | S(PULLING) | S(PREPARED) | S(CREATING) | S(RUNNING)
                                | S(RESCHEDULING) | S(TERMINATING),
                            { SECONDS(600), SESSION_TERMINATING, REASON_HANG_TIMEOUT } },
    [SESSION_PREPARING] = { "PREPARING",
                            "PREPARING",
                            S(PULLING) | S(PREPARED) | S(CREATING) | S(RUNNING) | S(RESCHEDULING)
                                | S(TERMINATING),
                            { SECONDS(3600), SESSION_TERMINATING, REASON_HANG_TIMEOUT } },
    [SESSION_PULLING] = { "PULLING",
                          "PULLING",
                          S(PREPARING) | S(PREPARED) | S(CREATING) | S(RUNNING) | S(RESCHEDULING)
                              | S(TERMINATING),
                          { SECONDS(7200), SESSION_TERMINATING, REASON_HANG_TIMEOUT } },
    [SESSION_PREPARED] = { "PREPARED",
                           "PREPARING",
                           S(CREATING) | S(RUNNING) | S(RESCHEDULING) | S(TERMINATING),
                           { SECONDS(600), SESSION_TERMINATING, REASON_HANG_TIMEOUT } },
    [SESSION_CREATING] = { "CREATING",
                           "PREPARING",
                           S(RUNNING) | S(RESCHEDULING) | S(TERMINATING),
                           { SECONDS(1800), SESSION_TERMINATING, REASON_HANG_TIMEOUT } },
    [SESSION_RUNNING] = { "RUNNING",
                          "RUNNING",
                          S(RUNNING_DEGRADED) | S(RESTARTING) | S(PREEMPTED) | S(RESCHEDULING)
                              | S(TERMINATING) | S(TERMINATED),
                          { 0, SESSION_RUNNING, NULL } },
    [SESSION_RUNNING_DEGRADED] = { "RUNNING_DEGRADED",
                                   "RUNNING",
                                   S(RUNNING) | S(RESTARTING) | S(PREEMPTED) | S(RESCHEDULING)
                                       | S(TERMINATING) | S(TERMINATED),
                                   { 0, SESSION_RUNNING_DEGRADED, NULL } },
    [SESSION_RESTARTING] = { "RESTARTING",
                             "RESTARTING",
                             S(RUNNING) | S(RESCHEDULING) | S(TERMINATING),
                             { SECONDS(1800), SESSION_TERMINATING, REASON_RESTART_TIMEOUT } },
    [SESSION_PREEMPTED] = { "PREEMPTED",
                            "RESTARTING",
                            S(RESCHEDULING) | S(TERMINATING),
                            { SECONDS(60), SESSION_RESCHEDULING, "PREEMPTED_BY_SCHEDULER" } },
    [SESSION_RESCHEDULING] = { "RESCHEDULING",
                               "RESTARTING",
                               S(PENDING) | S(TERMINATING),
                               { SECONDS(1800), SESSION_TERMINATING, REASON_HANG_TIMEOUT } },
    [SESSION_TERMINATING] = { "TERMINATING",
                              "TERMINATING",
                              S(TERMINATED) | S(ERROR),
                              { SECONDS(1800), SESSION_TERMINATED, REASON_HANG_TIMEOUT } },
    [SESSION_TERMINATED] = { "TERMINATED", "TERMINATED", 0, { 0, SESSION_TERMINATED, NULL } },
    [SESSION_ERROR] = { "ERROR", "ERROR", 0, { 0, SESSION_ERROR, NULL } },
    [SESSION_CANCELLED] = { "CANCELLED", "CANCELLED", 0, { 0, SESSION_CANCELLED, NULL } },
};

#define KERNEL_GONE (K(TERMINATED) | K(ERROR))
/* From any started state back to the queue, to its end, or on its way there. */
#define KERNEL_LEAVE (K(PENDING) | K(TERMINATING) | KERNEL_GONE)

static const struct {
    const char *name, *name_2203;
    uint32_t next;
} kernels[KERNEL_STATUS_COUNT] = {
    [KERNEL_PENDING] = { "PENDING", "PENDING", K(RESERVED) | K(SCHEDULED) | K(CANCELLED) },
    [KERNEL_RESERVED] = { "RESERVED", "PENDING", K(PENDING) | K(SCHEDULED) | K(CANCELLED) },
    [KERNEL_SCHEDULED] = { "SCHEDULED", "SCHEDULED",
                           K(PREPARING) | K(PULLING) | K(PREPARED) | K(CREATING) | K(RUNNING)
                               | KERNEL_LEAVE },
    [KERNEL_PREPARING] = { "PREPARING", "PREPARING",
                           K(PULLING) | K(PREPARED) | K(CREATING) | K(RUNNING) | KERNEL_LEAVE },
    [KERNEL_PULLING] = { "PULLING", "PULLING",
                         K(PREPARING) | K(PREPARED) | K(CREATING) | K(RUNNING) | KERNEL_LEAVE },
    [KERNEL_PREPARED] = { "PREPARED", "PREPARING", K(CREATING) | K(RUNNING) | KERNEL_LEAVE },
    [KERNEL_CREATING] = { "CREATING", "PREPARING", K(RUNNING) | KERNEL_LEAVE },
    [KERNEL_RUNNING] = { "RUNNING", "RUNNING", K(RESTARTING) | KERNEL_LEAVE },
    [KERNEL_RESTARTING] = { "RESTARTING", "RESTARTING", K(RUNNING) | KERNEL_LEAVE },
    [KERNEL_TERMINATING] = { "TERMINATING", "TERMINATING", KERNEL_GONE },
    [KERNEL_TERMINATED] = { "TERMINATED", "TERMINATED", 0 },
    [KERNEL_ERROR] = { "ERROR", "ERROR", 0 },
    [KERNEL_CANCELLED] = { "CANCELLED", "CANCELLED", 0 },
};

static const char *const agent_names[AGENT_STATUS_COUNT] = { "ALIVE", "LOST", "RESTARTING",
                                                             "TERMINATED" };
static const char *const type_names[] = { "interactive", "batch", "inference", "system" };
static const char *const result_names[] = { "UNDEFINED", "SUCCESS", "FAILURE" };

/* The index of 'text' among 'count' names, 'stride' bytes apart, or -EINVAL. */
static int status_find_name(const void *names, size_t count, size_t stride, const char *text)
{
    for (size_t i = 0; i < count; i++)
        if (strcasecmp(*(const char *const *)((const char *)names + i * stride), text) == 0)
            return (int)i;
    return -EINVAL;
}

#define PARSE(table, text, ret, type)                                                    \
    do {                                                                                 \
        int found_ = status_find_name(table, AQ_COUNT(table), sizeof((table)[0]), text); \
        if (found_ < 0)                                                                  \
            return found_;                                                               \
        *(ret) = (type)found_;                                                           \
        return 0;                                                                        \
    } while (0)

const char *session_status_name(enum session_status s)
{
    return sessions[s].name;
}

int session_status_parse(const char *text, enum session_status *ret)
{
    PARSE(sessions, text, ret, enum session_status);
}

const char *kernel_status_name(enum kernel_status s)
{
    return kernels[s].name;
}

int kernel_status_parse(const char *text, enum kernel_status *ret)
{
    PARSE(kernels, text, ret, enum kernel_status);
}

const char *agent_status_name(enum agent_status s)
{
    return agent_names[s];
}

int agent_status_parse(const char *text, enum agent_status *ret)
{
    PARSE(agent_names, text, ret, enum agent_status);
}

const char *session_type_name(enum session_type t)
{
    return type_names[t];
}

int session_type_parse(const char *text, enum session_type *ret)
{
    PARSE(type_names, text, ret, enum session_type);
}

const char *session_result_name(enum session_result r)
{
    return result_names[r];
}

int session_result_parse(const char *text, enum session_result *ret)
{
    if (strcasecmp(text, "FAILED") == 0) {
        *ret = RESULT_FAILURE;
        return 0;
    }
    PARSE(result_names, text, ret, enum session_result);
}

const char *session_status_name_2203(enum session_status s)
{
    return sessions[s].name_2203;
}

const char *kernel_status_name_2203(enum kernel_status s)
{
    return kernels[s].name_2203;
}

bool session_status_may_follow(enum session_status from, enum session_status to)
{
    return sessions[from].next & (1u << to);
}

bool kernel_status_may_follow(enum kernel_status from, enum kernel_status to)
{
    return kernels[from].next & (1u << to);
}

bool session_is_terminal(enum session_status s)
{
    return sessions[s].next == 0;
}

bool kernel_is_terminal(enum kernel_status s)
{
    return kernels[s].next == 0;
}

bool kernel_is_holding(enum kernel_status s)
{
    return s != KERNEL_PENDING && !kernel_is_terminal(s);
}

struct status_deadline session_deadline(enum session_status s)
{
    return sessions[s].deadline;
}

/* ---- names of the events of sessions and kernels ---- */

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
