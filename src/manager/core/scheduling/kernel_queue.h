/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_queue.h - kernels of running sessions that are placed one by one
 *
 * A session that waits is one entry of its group's scheduler, with as many kernels as it cannot do
 * without. While it runs its entry has the first of its kernels that hold something, up to that
 * number; each further kernel that holds something, or waits for a place, is an entry of its own
 * (enum sched_unit).
 */
#ifndef AQ_MANAGER_CORE_SCHEDULING_KERNEL_QUEUE_H
#define AQ_MANAGER_CORE_SCHEDULING_KERNEL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct core;
struct resource_group_entry;
struct sched_outcome;
struct sched_session;
struct session_entry;

/* The status of a session or of a kernel has changed: its kernels wait for a place, or do so no
 * longer. is_more: one more waits. Cheap for a session of one kernel.
 */
void kernel_queue_update(struct core *core, struct session_entry *l, bool is_more);

/* A kernel may be placed again from now on. */
void kernel_queue_wake(struct core *core, struct session_entry *l);

/* Tell the scheduler of the kernels that have entries of their own; 'whole' describes the session,
 * whose entry was added. 0, or an error of sched_add_running(): then none has an entry.
 */
int kernel_queue_push(struct core *core, struct resource_group_entry *g, struct session_entry *l,
                      const struct sched_session *whole) AQ_MUST_CHECK;

/* Drop these entries. */
void kernel_queue_drop(struct resource_group_entry *g, struct session_entry *l);

/* The rank of the kernel that the entry stands for; 0 for the entry of the session. */
size_t kernel_queue_find(const struct session_entry *l, uint32_t handle);

/* The result of a pass for one kernel. */
void kernel_queue_take(struct core *core, struct resource_group_entry *g, struct session_entry *l,
                       size_t rank, const struct sched_outcome *out);

#endif
