/* SPDX-License-Identifier: Apache-2.0 */
/* control.h - commands that wait until a session has reached a status */
#ifndef AQ_MANAGER_CORE_SESSION_CONTROL_H
#define AQ_MANAGER_CORE_SESSION_CONTROL_H

struct aq_error;
struct core;
struct session_entry;

/* Call those that wait for the status that it has now. */
void waiters_check(struct core *core, struct session_entry *l);

/* Call all that wait, with the error 'r'. */
void waiters_fail(struct core *core, struct session_entry *l, int r, const struct aq_error *err);

#endif
