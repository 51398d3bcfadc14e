/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - commands that wait until a session has reached a status */
#ifndef AQ_MANAGER_CORE_SESSION_CONTROL_H
#define AQ_MANAGER_CORE_SESSION_CONTROL_H

#include "model/session.h"

struct aq_error;
struct core;
struct session_entry;

/* Call those that wait for the status that it has now. */
void waiters_check(struct core *core, struct session_entry *l);

/* Call all that wait, with the error 'r'. */
void waiters_fail(struct core *core, struct session_entry *l, int r, const struct aq_error *err);

/* End it, without an answer to anybody: what core_terminate_session() asks for. */
void control_end(struct core *core, struct session_entry *l, bool forced, const char *reason);

/* The entries of who asked for what is proposed in this turn: 'to' is RESTARTING, or how it ends. */
void control_audit(struct core *core, const struct session_entry *l, enum session_status to);

#endif
