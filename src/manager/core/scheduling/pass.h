/* SPDX-License-Identifier: Apache-2.0 */
/* pass.h - passes of the groups' schedulers */
#ifndef AQ_MANAGER_CORE_SCHEDULING_PASS_H
#define AQ_MANAGER_CORE_SCHEDULING_PASS_H

#include <stddef.h>

#include "sched/sched.h"

struct agent_entry;
struct core;
struct resource_group_entry;
struct session_entry;

/* A pass of each group that needs one; what it places is proposed. */
void pass_run_all(struct core *core);

/* Propose the agent of a kernel, and the devices that were chosen there. */
void pass_place_kernel(struct core *core, struct session_entry *l, size_t k,
                       const struct agent_entry *a, struct sched_choice chosen);

/* What was placed is to be placed again: another proposal of the session, or its end, comes first.
 */
void pass_postpone(struct core *core, struct resource_group_entry *g, struct session_entry *l);

#endif
