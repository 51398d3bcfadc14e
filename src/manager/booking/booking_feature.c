/* SPDX-License-Identifier: Apache-2.0 */
/* Registers bookings with the manager. */
#include "manager/booking/booking_feature.h"

static const struct route_table *const booking_tables[] = { &booking_route_table, NULL };

const struct feature booking_feature = {
    .name = "booking",
    .routes = booking_tables,
};
