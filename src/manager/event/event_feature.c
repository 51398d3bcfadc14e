/* SPDX-License-Identifier: Apache-2.0 */
/* Registers events of sessions with the manager. */
#include "manager/event/event_feature.h"

static const struct route_table *const event_routes[] = { &events_route_table, NULL };

const struct feature event_feature = {
    .name = "event",
    .routes = event_routes,
};
