/* SPDX-License-Identifier: Apache-2.0 */
/* clock_adjustment.h - how long sessions have been in their state, across restarts */
#ifndef AQ_MANAGER_CORE_STATE_CLOCK_ADJUSTMENT_H
#define AQ_MANAGER_CORE_STATE_CLOCK_ADJUSTMENT_H

#include <stdint.h>

struct aq_error;
struct core;
struct session_entry;

/* Before anything is loaded: see how the clocks went since the last start,
 * which 'path' tells, and leave there what the next one needs. Without room for it,
 * clock_adjustment_tick() does so later.
 */
int clock_adjustment_begin(struct core *core, const char *path, struct aq_error *err);

/* Retry the write for which the start found no room, now and then, until it succeeds. */
void clock_adjustment_tick(struct core *core, int64_t now_usec);
void clock_adjustment_done(struct core *core);

/* The monotonic time at which a status was applied that is dated by the wall clock. */
int64_t clock_adjustment_since(const struct core *core, int64_t changed_usec);

/* When 'after_usec' in this state are over (monotonic). What became due while
 * no manager was there waits a minute more: agents have to be heard first.
 */
int64_t clock_adjustment_due(const struct core *core, const struct session_entry *l,
                             int64_t after_usec);

#endif
