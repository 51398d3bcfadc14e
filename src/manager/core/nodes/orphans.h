/* SPDX-License-Identifier: Apache-2.0 */
/* orphans.h - kernels that an agent has and the manager does not know
 *
 * As a rule they are ended. After a restore they may be newer than the backup:
 * then they are kept and listed until an administrator adopts or ends them, and
 * no session is started (core.h, "after a restore"). A kernel whose order follows
 * a commit that the database lacks (lost_commits.h) is kept and listed, too.
 */
#ifndef AQ_MANAGER_CORE_NODES_ORPHANS_H
#define AQ_MANAGER_CORE_NODES_ORPHANS_H

#include <stdbool.h>

struct agent_entry;
struct aq_error;
struct core;
struct msg_kernel_order;
struct msg_kernel_status;
struct session_entry;

/* Whether the database was restored and nobody has finished that yet: to be read at the start. */
int orphans_load(struct core *core, struct aq_error *err);

/* 'a' has a kernel that its session in memory, 'l', does not have there; NULL = there is none.
 * True if it is kept. It is listed unless this agent, or all together, have too many.
 */
bool orphans_keep(struct core *core, struct agent_entry *a, const struct session_entry *l,
                  const struct msg_kernel_status *m);

/* What it was made from. */
void orphans_take_order(struct core *core, const struct agent_entry *a,
                        const struct msg_kernel_order *m);

/* The agent has told all that it has: what was not among it is gone. */
void orphans_drop_absent(struct core *core, const struct agent_entry *a);

/* It is not accepted any more: what it has is not looked after. */
void orphans_drop_agent(struct core *core, const char *agent_id);

/* Of core; nothing is told to anybody. */
void orphans_done(struct core *core);

#endif
