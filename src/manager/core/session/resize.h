/* SPDX-License-Identifier: Apache-2.0 */
/* resize.h - other amounts of devices for a session that runs */
#ifndef AQ_MANAGER_CORE_SESSION_RESIZE_H
#define AQ_MANAGER_CORE_SESSION_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/session.h"

struct agent_entry;
struct aq_error;
struct core;
struct msg_kernel_status;
struct session_entry;

/* Is that a status in which a session can be given other amounts? */
static inline bool session_may_resize(enum session_status s)
{
    return s == SESSION_RUNNING || s == SESSION_RUNNING_DEGRADED;
}

/* What a kernel holds and could hold, as its agent says; or why not what it was told to. */
void resize_take(struct core *core, struct agent_entry *a, struct session_entry *l, size_t rank,
                 const struct msg_kernel_status *m);

/* Of a session that runs: true if something was proposed. */
bool resize_step(struct core *core, struct session_entry *l, int64_t now);

/* Other amounts of a kernel are durable, and in memory. */
void resize_applied(struct core *core, struct session_entry *l, size_t rank);

/* It comes to nothing, unless it was decided: who waits hears so. */
void resize_stop(struct core *core, struct session_entry *l, int r, const struct aq_error *err);

/* The agent's connection has ended. */
void resize_lost(struct core *core, struct agent_entry *a);

#endif
