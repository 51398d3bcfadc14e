/* SPDX-License-Identifier: Apache-2.0 */
/* booking_view.h - bookings as clients see them */
#ifndef AQ_MANAGER_BOOKING_BOOKING_VIEW_H
#define AQ_MANAGER_BOOKING_BOOKING_VIEW_H

#include "manager/call/api.h"
#include "model/booking.h"

/* May the caller see it: it is for them, or they administer it? */
bool booking_view_may_see(const struct api *api, const struct request *req,
                          const struct booking *b);

/* May the caller change it: superadmins, and administrators of the domain of all that it is for? */
bool booking_view_may_change(const struct api *api, const struct request *req,
                             const struct booking *b);

/* An object. With 'is_whole' also its places and sessions. */
void booking_view_write(const struct api *api, const struct request *req, const struct booking *b,
                        bool is_whole, struct jsonw *w);

#endif
