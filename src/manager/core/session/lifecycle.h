/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - what follows for a session from its status and what its agents said */
#ifndef AQ_MANAGER_CORE_SESSION_LIFECYCLE_H
#define AQ_MANAGER_CORE_SESSION_LIFECYCLE_H

struct core;
struct session_entry;

/* Look at a session that was touched and is not busy: command its agents, propose at most one
 * change of it and of each kernel. Looking twice changes nothing. */
void lifecycle_step(struct core *core, struct session_entry *l);

#endif
