/* SPDX-License-Identifier: Apache-2.0 */
/* idle.h - ending sessions that nobody uses, and warning before */
#ifndef AQ_MANAGER_CORE_SESSION_IDLE_H
#define AQ_MANAGER_CORE_SESSION_IDLE_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct event;
struct session_entry;
struct session_idle;

/* Of a session that runs. True if its end was proposed. */
bool idle_step(struct core *core, struct session_entry *l, int64_t now);

/* The limits that hold for it now. */
struct idle_limits idle_limits_of(const struct core *core, const struct session_entry *l);

#endif
