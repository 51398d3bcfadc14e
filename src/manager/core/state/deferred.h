/* SPDX-License-Identifier: Apache-2.0 */
/* deferred.h - asking for a turn of the loop, callbacks that wait for it, the end for want of memory */
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

/* Memory is short after something became durable: memory and ledger would
 * differ. End the process; a restart loads everything afresh.
 */
void core_die(const char *what) __attribute__((noreturn));

/* Call 'done' in the next turn with a copy of 'err'. */
void core_defer(struct core *core, core_done_fn done, void *data, int r,
                const struct aq_error *err);
/* The same of a callback of another type, for memory that there is not: 'call' casts it back.
 * Some calls are set aside for when memory is short.
 */
typedef void (*core_oom_fn)(void (*done)(void), void *data, int r, const struct aq_error *err);
void core_defer_oom(struct core *core, core_oom_fn call, void (*done)(void), void *data);

/* At the start: the calls that are set aside. 0 or -ENOMEM. */
int deferred_reserve(struct core *core) AQ_MUST_CHECK;

/* Call those that wait; what they defer waits for the next turn. */
void deferred_run(struct core *core);

/* At the end: the memory set aside. None waits any more. */
void deferred_release(struct core *core);

#endif
