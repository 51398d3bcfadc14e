/* SPDX-License-Identifier: Apache-2.0 */
/* array.h - arrays: making their elements, cancelling, their end */
#ifndef AQ_MANAGER_CORE_SESSION_ARRAY_H
#define AQ_MANAGER_CORE_SESSION_ARRAY_H

#include "manager/core/state/durable.h"
#include "model/session_spec.h"

struct core;
struct event;
struct session_entry;

extern const struct durable_ops array_durable_ops;

/* Change memory by an event of an array. */
void array_apply(struct core *core, struct event *e);

/* A session has another status, in memory; does nothing if it is not an element. */
void array_note_status(struct core *core, struct session_entry *l);

/* Accounts have changed, and with them perhaps rights or limits: arrays that could not make elements
 * try again now.
 */
void array_note_accounts(struct core *core);

/* Add the variables of an element of an array to its environment, in core->scratch. */
void array_add_environ(struct core *core, const struct session_entry *l, struct pair_list *inout);

/* Answer those who wait: the manager stops. */
void array_fail_waiters(struct core *core);

#endif
