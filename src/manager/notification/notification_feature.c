/* SPDX-License-Identifier: Apache-2.0 */
/* Registers notifications and callbacks with the manager. */
#include "manager/notification/notification_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/notification/callbacks.h"
#include "manager/notification/deliveries.h"
#include "manager/notification/notification.h"
#include "manager/notification/notifications.h"

static const struct route_table *const notification_routes[] = { &notification_route_table,
                                                                 &notification_channel_route_table,
                                                                 &notification_rule_route_table,
                                                                 NULL };

static int notification_feature_open(struct api *api, struct aq_error *err)
{
    struct notification_state *of = api->notification = aq_alloc(sizeof(*of));

    of->deliveries = deliveries_new(core_loop(api->core));
    of->callbacks = callbacks_new(api->core, of->deliveries);
    return notifications_new(api->core, of->deliveries, &of->notifications, err);
}

static void notification_feature_stop(struct api *api)
{
    notifications_stop(api->notification->notifications);
    callbacks_free(AQ_TAKE(api->notification->callbacks));
    deliveries_stop(api->notification->deliveries);
}

static void notification_feature_close(struct api *api)
{
    struct notification_state *of = api->notification;

    if (!of)
        return;
    notifications_free(of->notifications);
    callbacks_free(of->callbacks);
    deliveries_free(of->deliveries);
    free(of);
}

void notification_allow(struct api *api, const struct network *networks, size_t count)
{
    deliveries_allow(api->notification->deliveries, networks, count);
}

int notification_check_url(const struct api *api, const char *field, const char *url,
                           struct aq_error *err)
{
    return deliveries_check_url(api->notification->deliveries, field, url, err);
}

const struct feature notification_feature = {
    .name = "notification",
    .routes = notification_routes,
    .open = notification_feature_open,
    .stop = notification_feature_stop,
    .close = notification_feature_close,
};
