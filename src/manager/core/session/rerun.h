/* SPDX-License-Identifier: Apache-2.0 */
/* rerun.h - attempts of a batch session that end, and whether another one follows
 *
 * model/rerun.h has the rules. An attempt that ends is counted in the session's row, and described
 * in a row of its own, by the batch of events that takes the session back to the queue. Where the
 * resource group or on_node_loss starts a session again, this does not use up a retry.
 */
#ifndef AQ_MANAGER_CORE_SESSION_RERUN_H
#define AQ_MANAGER_CORE_SESSION_RERUN_H

#include <stdbool.h>
#include <stddef.h>

#include "model/rerun.h"
#include "model/status.h"

struct core;
struct session_entry;

/* Propose another attempt in place of the session's end, if it has a retry left for that: 'reason'
 * and 'data' (JSON or NULL) are those of the end, 'rank' is the kernel that it is about. False if
 * the session is to end; then nothing is proposed.
 */
bool rerun_begin(struct core *core, struct session_entry *l, size_t rank, const char *reason,
                 const char *data);

/* It does not wait for a lost agent to return: a retry is left for that, or has just been used. */
bool rerun_leaves_lost_agent(const struct session_entry *l);

/* Propose another attempt that uses up no retry: 'to' is PREEMPTED, RESCHEDULING or RESTARTING. */
void rerun_requeue(struct core *core, struct session_entry *l, size_t rank, enum session_status to,
                   const char *reason, const char *data);

/* Its record has changed or was loaded: it does not start before the delay is over. */
void rerun_follow(struct session_entry *l);

#endif
