/* SPDX-License-Identifier: Apache-2.0 */
/* booking_sync.c - telling schedulers of bookings, and choosing places for a booking */
#include "manager/core/scheduling/booking_sync.h"

#include <errno.h>

#include "manager/core/state/booking_entry.h"

void booking_sync_set(struct core *core, struct booking_entry *entry)
{
    (void)core;
    (void)entry;
}

void booking_sync_remove(struct core *core, struct booking_entry *entry)
{
    (void)core;
    (void)entry;
}

int booking_sync_place(struct core *core, struct booking *b, struct aq_error *err)
{
    (void)core;
    return aq_fail_as(err, EBUSY, "reservation-does-not-fit", "resources",
                      "no agent has room for the reservation '%s'", b->name);
}
