/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.h - sessions that wait for the success of others */
#ifndef AQ_MANAGER_CORE_SESSION_DEPENDENCY_H
#define AQ_MANAGER_CORE_SESSION_DEPENDENCY_H

struct core;
struct session_entry;

/* Note whom a new session waits for. */
void dependency_watch(struct core *core, struct session_entry *l);

/* Look again at those that wait for it: it has ended. */
void dependency_ended(struct core *core, struct session_entry *l);

/* It leaves memory. */
void dependency_forget(struct core *core, struct session_entry *l);

/* All of it, at the end. */
void dependency_free(struct core *core);

#endif
