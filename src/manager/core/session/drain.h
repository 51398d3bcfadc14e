/* SPDX-License-Identifier: Apache-2.0 */
/* drain.h - sessions on agents that are drained with --end */
#ifndef AQ_MANAGER_CORE_SESSION_DRAIN_H
#define AQ_MANAGER_CORE_SESSION_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct core;
struct session_entry;

/* Requeue or end a session with a kernel on such an agent, after its signal and grace. True if that
 * was proposed.
 */
bool drain_step(struct core *core, struct session_entry *l, int64_t now);

#endif
