/* SPDX-License-Identifier: Apache-2.0 */
/* queue.h - which PENDING sessions wait for resources, and which for something else */
#ifndef AQ_MANAGER_CORE_SCHEDULING_QUEUE_H
#define AQ_MANAGER_CORE_SCHEDULING_QUEUE_H

#include "sched/scheduler.h"

struct account;
struct agent_entry;
struct core;
struct resource_group_entry;
struct session_entry;
struct state_hooks;

/* A PENDING session waits, or is parked until its backoff is over or its array lets another element
 * run; its group's next pass looks at it.
 */
void queue_add(struct core *core, struct session_entry *l);

/* It waits no longer. Nothing if it did not. */
void queue_remove(struct core *core, struct session_entry *l);

/* It waits for something other than resources ('verdict'): at 'account', NULL = at its group. */
void queue_park(struct core *core, struct session_entry *l, enum sched_verdict verdict,
                struct account *account);

/* Back among those to look at. */
void queue_unpark(struct core *core, struct session_entry *l);

/* Resources may have become free in the group. */
void queue_capacity_freed(struct core *core, struct resource_group_entry *g);

/* An agent may have. */
void queue_agent_changed(struct core *core, struct resource_group_entry *g);

/* One takes no sessions any more: what only it could hold need not hold up others. */
void queue_agent_closed(struct core *core, const struct agent_entry *a);

/* An account holds less, or its limits have changed. */
void queue_account_changed(struct core *core, struct account *account);

/* For core.hooks: what follows when a session takes or gives back resources. */
extern const struct state_hooks queue_hooks;

#endif
