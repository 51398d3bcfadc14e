/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync.h - keeping each group's scheduler in step with memory
 *
 * The functions below mark what has changed, which is cheap and cannot fail;
 * sched_sync_push() tells the scheduler of it.
 */
#ifndef AQ_MANAGER_CORE_SCHEDULING_SCHED_SYNC_H
#define AQ_MANAGER_CORE_SCHEDULING_SCHED_SYNC_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct account;
struct agent_entry;
struct core;
struct resource_group_entry;
struct sched_start_estimate;
struct session_entry;

/* Tell the group's scheduler what has changed since it was told last. -EAGAIN: it has to be
 * rebuilt, which waits until placements that are under way are known to hold. -EINVAL, -EOVERFLOW,
 * -EEXIST: memory has what the scheduler cannot take.
 */
int sched_sync_push(struct core *core, struct resource_group_entry *g) AQ_MUST_CHECK;

/* It is to be rebuilt before its next pass. */
void sched_sync_invalidate(struct resource_group_entry *g);

/* The scheduler and what is known of it, when the group goes. */
void sched_sync_done(struct resource_group_entry *g);

/* A session waits, does so no longer, or holds something else. */
void sched_sync_mark_session(struct session_entry *l);

/* It goes nowhere any more, or has arrived: its place elsewhere is for others. */
void sched_sync_drop_reservation(struct session_entry *l);

/* It leaves memory. */
void sched_sync_remove_session(struct session_entry *l);

/* A kernel begins or ends to hold something of 'a'. */
void sched_sync_session_holds(struct core *core, struct session_entry *l, struct agent_entry *a);

void sched_sync_session_releases(struct core *core, struct session_entry *l, struct agent_entry *a);

/* It will give back what it holds before long. */
void sched_sync_session_leaves(struct session_entry *l);

/* An agent is ready, is so no longer, or offers something else. */
void sched_sync_mark_agent(struct core *core, struct agent_entry *a);

/* Other parts of its devices are held than its scheduler was told. */
void sched_sync_devices_changed(struct core *core, struct agent_entry *a);

/* It is not in its group any more: the scheduler is rebuilt. */
void sched_sync_remove_agent(struct agent_entry *a);

/* The account's limits have changed. */
void sched_sync_mark_account(struct account *account);

/* The plan of the group's queue as if 'count' sessions like 'l', which is not in it, came last of
 * their priority; handles[count] tells them. Lives in core->scratch. The length, or an error
 * of sched_sync_push().
 */
int sched_sync_what_if(struct core *core, struct session_entry *l, uint32_t *handles, size_t count,
                       size_t max, struct sched_start_estimate **ret);

/* Passes that looked at the session in vain. */
uint32_t sched_sync_tries(const struct session_entry *l);

#endif
