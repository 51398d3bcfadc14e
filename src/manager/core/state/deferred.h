/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.h - asking for a turn of the loop, callbacks that wait for it */
#ifndef AQ_MANAGER_CORE_STATE_DEFERRED_H
#define AQ_MANAGER_CORE_STATE_DEFERRED_H

#include <stdbool.h>

#include "manager/core/core.h"

struct aq_error;
struct core;

/* Is this the thread of the loop? For assertions. */
bool core_is_own_thread(const struct core *core);

/* Run a turn of the loop soon: what was touched, passes, the commit of what they propose. */
void core_schedule_turn(struct core *core);

/* Call 'done' in the next turn with a copy of 'err'. */
void core_defer(struct core *core, core_done_fn done, void *data, int r,
                const struct aq_error *err);
/* Call those that wait; what they defer waits for the next turn. */
void deferred_run(struct core *core);

#endif
