/* SPDX-License-Identifier: Apache-2.0 */
/* registration.h - agents' rows: what they offer, and what administrators set */
#ifndef AQ_MANAGER_CORE_NODES_REGISTRATION_H
#define AQ_MANAGER_CORE_NODES_REGISTRATION_H

#include <stdbool.h>

struct agent;
struct agent_entry;
struct aq_error;
struct core;
struct list;
struct msg_heartbeat;
struct msg_hello;

/* Equal in all that is stored. */
bool registration_is_same(const struct agent *a, const struct agent *b);

/* Refuses an agent whose greeting cannot be used. */
int registration_take(struct core *core, struct agent_entry *a, const struct msg_hello *hello,
                      struct aq_error *err);

/* What a heartbeat says of what the agent offers. */
void registration_update(struct core *core, struct agent_entry *a, const struct msg_heartbeat *m);

/* Bring the row up to date if it is not. */
void registration_save(struct core *core, struct agent_entry *a);

/* Call all of 'changes' with the result 'r', and free them. */
void registration_finish_changes(struct core *core, struct list *changes, int r);

#endif
