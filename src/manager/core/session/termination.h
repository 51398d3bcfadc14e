/* SPDX-License-Identifier: Apache-2.0 */
/* termination.h - proposals that end a session, or send it back to the queue */
#ifndef AQ_MANAGER_CORE_SESSION_TERMINATION_H
#define AQ_MANAGER_CORE_SESSION_TERMINATION_H

#include <stdbool.h>

#include "model/session.h"

struct core;
struct event;
struct session_entry;

/* A change of the session with what belongs to an end; 'data' (JSON or NULL) is copied. */
struct event *termination_propose(struct core *core, struct session_entry *l,
                                  enum session_status to, const char *reason,
                                  enum session_result result, const char *data);

/* Durably forced, if that was asked for. */
void termination_propose_forced(struct core *core, struct session_entry *l);

/* A batch program that was not allowed to end by itself has failed. */
enum session_result termination_result(const struct session_entry *l);

/* The session ends: its kernels that wait for a place are not started. */
void termination_cancel_waiting(struct core *core, struct session_entry *l, const char *reason);

/* A kernel goes back to the queue, as its next attempt. */
void termination_requeue_kernel(struct core *core, struct session_entry *l, size_t rank,
                                const char *reason);

/* Limit the checkpoint signal and grace in 'spec' to those that the resource group allows. */
void termination_limit_grace(const struct session_entry *l, struct session_spec *spec);

/* Times for ending the session's programs. The session's checkpoint signal and grace apply if the
 * cluster ends it (preemption, migration, time limit), not if a user does.
 */
struct termination_times {
    int64_t notice_usec, grace_usec; /* as in msg_kernel_destroy */
};
struct termination_times termination_times(const struct core *core, const struct session_entry *l);

/* From any state with kernels to TERMINATING. */
void termination_begin(struct core *core, struct session_entry *l, const char *reason,
                       enum session_result result, const char *data);

/* A kernel that has ended cannot start again: then the session cannot either. */
bool termination_may_reschedule(const struct session_entry *l);

/* All agents of its kernels are connected and have reported which kernels run there. */
bool termination_agents_are_connected(const struct core *core, const struct session_entry *l);

#endif
