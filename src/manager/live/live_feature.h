/* SPDX-License-Identifier: Apache-2.0 */
/* live_feature.h - the feed of consoles: tables of routes in its files */
#ifndef AQ_MANAGER_LIVE_LIVE_FEATURE_H
#define AQ_MANAGER_LIVE_LIVE_FEATURE_H

#include "manager/call/feature.h"

/* The tabs that follow the feed: see live.c. */
struct live_feed *live_feed_new(struct api *api);
void live_feed_free(struct live_feed *feed); /* after the last connection */

API_ROUTES(live);

extern const struct feature live_feature;

#endif
