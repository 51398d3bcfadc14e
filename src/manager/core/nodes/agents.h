/* SPDX-License-Identifier: Apache-2.0 */
/* agents.h - what a saved, changed or removed row of an agent does to memory */
#ifndef AQ_MANAGER_CORE_NODES_AGENTS_H
#define AQ_MANAGER_CORE_NODES_AGENTS_H

struct agent_entry;
struct core;
struct event;

/* A saved, changed or removed agent. Takes the contents of the event. */
void agents_apply(struct core *core, struct event *e);

/* It leaves memory: its scheduler and commands that wait for it hear so, then it is freed. */
void agents_drop(struct core *core, struct agent_entry *a);

#endif
