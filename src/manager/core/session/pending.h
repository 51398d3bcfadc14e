/* SPDX-License-Identifier: Apache-2.0 */
/* pending.h - what follows for a session that waits */
#ifndef AQ_MANAGER_CORE_SESSION_PENDING_H
#define AQ_MANAGER_CORE_SESSION_PENDING_H

#include <stdint.h>

struct core;
struct session_entry;

/* pending.c: PENDING, or on the way to it */
void pending_step(struct core *core, struct session_entry *l, int64_t now);

#endif
