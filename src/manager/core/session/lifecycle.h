/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - sessions as durable objects */
#ifndef AQ_MANAGER_CORE_SESSION_LIFECYCLE_H
#define AQ_MANAGER_CORE_SESSION_LIFECYCLE_H

#include <stdint.h>

struct core;
struct durable_ops;
struct session_entry;

/* For core.session_ops. */
extern const struct durable_ops session_durable_ops;

/* pending.c: the step of a session that is PENDING, or on its way to it; 'now' is monotonic. */
void pending_step(struct core *core, struct session_entry *l, int64_t now);

#endif
