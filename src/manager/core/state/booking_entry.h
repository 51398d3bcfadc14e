/* SPDX-License-Identifier: Apache-2.0 */
/* booking_entry.h - a booking that has not finished, in memory, with its sessions that live
 *
 * Loop's thread only.
 */
#ifndef AQ_MANAGER_CORE_STATE_BOOKING_ENTRY_H
#define AQ_MANAGER_CORE_STATE_BOOKING_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "manager/core/state/durable.h"
#include "model/booking.h"

struct core;
struct resource_group_entry;
struct session_entry;

struct booking_entry {
    struct booking b; /* first */
    struct durable durable;
    struct list all_link; /* core.bookings or core.booking_drafts, by creation */
    struct list sessions; /* session_entry.booking_link: those with its id that have not ended */
    struct resource_group_entry *resource_group;
    struct booking_entry *draft; /* other places that are proposed; NULL = none are */
    int64_t
        used_usec; /* wall clock: when the last session of it that ran has ended; 0 = none ran */
};

struct booking_entry *booking_entry_find(const struct core *core, const struct uuid *id);

/* That with exactly this name. */
struct booking_entry *booking_entry_find_named(const struct core *core, const char *name);

/* Take the contents of 'b' into memory; another one has no contents then. */
struct booking_entry *booking_entry_add(struct core *core, struct booking *b, int64_t used_usec);

/* Other contents of the same id, taken as above. */
void booking_entry_replace(struct booking_entry *entry, struct booking *b);

/* Out of every index; its sessions have no booking any more. Freed as a durable object that is
 * retired.
 */
void booking_entry_retire(struct core *core, struct booking_entry *entry);
void booking_entry_free(struct booking_entry *entry);

/* 'l' lives from now on, or does not. Does nothing without a booking. */
void booking_entry_join(struct core *core, struct session_entry *l);
void booking_entry_leave(struct core *core, struct session_entry *l);

#endif
