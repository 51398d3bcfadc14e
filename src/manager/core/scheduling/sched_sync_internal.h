/* SPDX-License-Identifier: Apache-2.0 */
/* sched_sync_internal.h - the scheduler that is kept for each resource group, from the inside
 *
 * sched_sync.c has what happens to it (sched_sync.h); sched_sync_push.c tells it of what is marked.
 * After an error of these functions (-EINVAL, -EOVERFLOW, -EEXIST) the scheduler is rebuilt.
 */
#ifndef AQ_MANAGER_CORE_SCHED_SYNC_INTERNAL_H
#define AQ_MANAGER_CORE_SCHED_SYNC_INTERNAL_H

#include "manager/core/state/agent_entry.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"

/* Into the list, unless it is in one. */
void sched_sync_mark(struct list *to, struct list *link);

/* Does the group's own scheduler know what the session holds? */
static inline bool sched_sync_is_held(const struct resource_group_entry *g,
                                      const struct session_entry *l)
{
    return l->resource_group == g && !l->sched.is_outside;
}

/* Make the group's scheduler again from memory; its sessions are marked. */
int sched_sync_rebuild(struct core *core, struct resource_group_entry *g);

/* Handle 'handle' is of that session, or of a kernel of it. */
void sched_sync_set_member(struct resource_group_entry *g, uint32_t handle,
                           struct session_entry *l);

/* When it began to hold what it holds; wall clock. */
static inline int64_t sched_sync_started_usec(const struct session_entry *l)
{
    return l->s.running_usec ? l->s.running_usec : l->s.status_changed_usec;
}

/* The agent of a kernel that holds something, and its devices there; parts live in core->scratch. */
int sched_sync_find_place(struct core *core, struct session_entry *l, size_t rank,
                          struct sched_place *ret);

/* Per kernel of its entry that holds something; one for a single-node session. Like that. */
int sched_sync_find_places(struct core *core, struct session_entry *l, struct sched_place **ret);

/* As sched_add_running(); without parts of devices where these are not what they were. */
int sched_sync_add_running(struct resource_group_entry *g, struct sched_running *running,
                           struct sched_place *places, size_t count, uint32_t *ret_handle);

int sched_sync_push_agent(struct core *core, struct resource_group_entry *g, struct agent_entry *a,
                          bool is_new);

#endif
