/* SPDX-License-Identifier: Apache-2.0 */
/* Registers notifications and callbacks with the manager. */
#include "manager/notification/notification_feature.h"

static const struct route_table *const notification_routes[] = { &notification_route_table,
                                                                 &notification_channel_route_table,
                                                                 &notification_rule_route_table,
                                                                 NULL };

const struct feature notification_feature = {
    .name = "notification",
    .routes = notification_routes,
};
