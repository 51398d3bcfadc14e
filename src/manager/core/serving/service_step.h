/* SPDX-License-Identifier: Apache-2.0 */
/* service_step.h - what follows for a model service from its row, its replicas and the time
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SERVING_SERVICE_STEP_H
#define AQ_MANAGER_CORE_SERVING_SERVICE_STEP_H

#include <stdbool.h>

struct core;
struct durable_ops;
struct event;
struct session_entry;

extern const struct durable_ops service_durable_ops;

/* Change memory by an event of a service, a token or a replica. */
void service_apply(struct core *core, struct event *e);

/* The session, which may be a replica, has another status; as a failure that was counted. */
void service_note_status(struct core *core, struct session_entry *l, bool is_failure);

/* An agent was lost, came back or was removed: its replicas may answer, or do not. */
void service_note_agents(struct core *core);

/* Users, keypairs, projects or domains have changed: what was refused may be possible now. */
void service_note_accounts(struct core *core);

/* Tell the listener which services have changed. */
void service_tell(struct core *core);

#endif
