/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - sessions as durable objects */
#ifndef AQ_MANAGER_CORE_SESSION_LIFECYCLE_H
#define AQ_MANAGER_CORE_SESSION_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "model/status.h"

struct core;
struct durable_ops;
struct event;
struct session_entry;

/* For core.session_ops. */
extern const struct durable_ops session_durable_ops;

/* An order that the agent does not show any sign of after this is sent again. */
#define RESEND_USEC (15 * USEC_PER_SEC)

/* Propose the end of a kernel, with what its agent said of it; 'reason' where it gave none. */
struct event *lifecycle_end_kernel(struct core *core, struct session_entry *l, size_t rank,
                                   const char *reason);

/* Does nothing of this kernel run any more, or is it given up? 'now' is monotonic. */
bool lifecycle_has_ended(const struct core *core, const struct session_entry *l, size_t rank,
                         int64_t now);

/* End the session, or its attempt, because of one kernel; status_data names the kernel. */
void lifecycle_end_by(struct core *core, struct session_entry *l, size_t rank, const char *reason,
                      enum session_result result);

/* start.c: the step of a session from SCHEDULED to CREATING; 'now' is monotonic. */
void start_step(struct core *core, struct session_entry *l, int64_t now);

/* start.c: update the status of a starting kernel from the reports of its agent. */
void start_follow_kernel(struct core *core, struct session_entry *l, size_t rank, int64_t now);

/* start.c: once all kernels are ready, release all but "main1", and "main1" when these run, so that
 * it can connect to the others.
 */
void start_release(struct core *core, struct session_entry *l, int64_t now);

/* elastic.c: an agent of the session is given up. Its kernels go back to the queue while the others
 * run on. False if that is not possible: the session does not run, or its first kernel is lost.
 */
bool lifecycle_restart_lost_kernels(struct core *core, struct session_entry *l);

/* pending.c: the step of a session that is PENDING, or on its way to it; 'now' is monotonic. */
void pending_step(struct core *core, struct session_entry *l, int64_t now);

#endif
