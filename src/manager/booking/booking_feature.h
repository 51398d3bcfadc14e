/* SPDX-License-Identifier: Apache-2.0 */
/* booking_feature.h - bookings, which clients call reservations: their table of routes */
#ifndef AQ_MANAGER_BOOKING_BOOKING_FEATURE_H
#define AQ_MANAGER_BOOKING_BOOKING_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(booking);

extern const struct feature booking_feature;

#endif
