/* SPDX-License-Identifier: Apache-2.0 */
/* Registers the feed of consoles with the manager. */
#include "manager/live/live_feature.h"

static const struct route_table *const live_routes[] = { &live_route_table, NULL };

const struct feature live_feature = {
    .name = "live",
    .routes = live_routes,
};
