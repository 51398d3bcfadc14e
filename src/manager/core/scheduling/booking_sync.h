/* SPDX-License-Identifier: Apache-2.0 */
/* booking_sync.h - passes bookings to schedulers, and chooses places for a booking
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_SCHEDULING_BOOKING_SYNC_H
#define AQ_MANAGER_CORE_SCHEDULING_BOOKING_SYNC_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"

struct booking;
struct booking_entry;
struct core;
struct resource_group_entry;
struct sched_booking;
struct session_entry;

/* The booking was made or loaded, or has other times, amounts or places: the scheduler of its
 * resource group gets it, and makes a pass.
 */
void booking_sync_set(struct core *core, struct booking_entry *entry);

/* It has finished: its amounts are everybody's. Its sessions have been taken out, or follow. */
void booking_sync_remove(struct core *core, struct booking_entry *entry);

/* The scheduler keeps the amounts of 'b', which is on its way to the store, from now on, also if it
 * is rebuilt meanwhile. Close the draft, which frees it, when the commit is back: if the store has
 * refused it the scheduler gets what is in memory.
 */
struct booking_entry *booking_sync_open_draft(struct core *core, const struct booking *b);
void booking_sync_close_draft(struct core *core, struct booking_entry *draft, bool is_durable);

/* Choose places for 'b', which has none: sets them. Agents, times, amounts, nodes and
 * ignores_sessions of 'b' count; the booking in memory that has its id, if there is one, does not.
 * -EBUSY, kind "reservation-does-not-fit", field "resources", says what is lacking, where, from when
 * until when, and which bookings or sessions hold it: by name those of 'domain', or all if it is
 * NULL, and the number of the others.
 */
int booking_sync_place(struct core *core, struct booking *b, const char *domain,
                       struct aq_error *err);

/* A booking that keeps part of a device which kernel 'rank' of 'l' holds, and begins before the
 * session ends; NULL = there is none. Its own counts.
 */
const struct booking *booking_sync_find_beside(struct core *core, struct session_entry *l,
                                               size_t rank);

/* The booking as the scheduler takes it; lives in 'arena' and in 'b'. Errors of
 * agent_devices_find().
 */
int booking_sync_describe(struct core *core, const struct booking *b, struct arena *arena,
                          struct sched_booking *ret);

/* Tell the scheduler of 'g' of all its bookings, or of those that have a place on this agent. */
void booking_sync_push_all(struct core *core, const struct resource_group_entry *g,
                           const char *agent_id);

#endif
