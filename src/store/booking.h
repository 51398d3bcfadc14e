/* SPDX-License-Identifier: Apache-2.0 */
/* booking.h - bookings that have finished
 *
 * Live bookings are in the manager's memory.
 */
#ifndef AQ_STORE_BOOKING_H
#define AQ_STORE_BOOKING_H

#include "model/booking.h"
#include "store/store.h"

#define BOOKING_FINISHED_MAX 1000 /* in a list */

struct booking_rows {
    struct booking *items;
    size_t count, cap;
};

void booking_rows_done(struct booking_rows *rows);

static inline void booking_rows_donep(struct booking_rows *rows)
{
    booking_rows_done(rows);
}

/* Append those that have finished, the last one first: all, up to BOOKING_FINISHED_MAX, or with
 * 'text' the one of this id, else the last one of this name.
 */
int store_read_finished_bookings(struct store_tx *tx, const char *text, struct booking_rows *ret,
                                 struct aq_error *err);

#endif
