/* SPDX-License-Identifier: Apache-2.0 */
/* Registers statistics, usage and reports with the manager. */
#include "manager/usage/usage_feature.h"

static const struct route_table *const usage_routes[] = { &export_route_table,
                                                          &statistics_route_table,
                                                          &usage_route_table,
                                                          &usage_days_route_table,
                                                          &usage_recent_route_table,
                                                          &usage_total_route_table,
                                                          NULL };

const struct feature usage_feature = {
    .name = "usage",
    .routes = usage_routes,
};
