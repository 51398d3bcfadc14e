/* SPDX-License-Identifier: Apache-2.0 */
/* Registers the feed of consoles with the manager. */
#include "manager/live/live_feature.h"

#include <stdlib.h>

static const struct route_table *const live_routes[] = { &live_route_table, NULL };

static int live_feature_open(struct api *api, struct aq_error *err)
{
    (void)err;
    api->live = live_feed_new(api);
    return 0;
}

static void live_feature_close(struct api *api)
{
    live_feed_free(api->live);
}

const struct feature live_feature = {
    .name = "live",
    .routes = live_routes,
    .open = live_feature_open,
    .close = live_feature_close,
};
