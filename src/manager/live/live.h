/* SPDX-License-Identifier: Apache-2.0 */
/* live.h - the tabs that follow the live feed: see live.c */
#ifndef AQ_MANAGER_LIVE_LIVE_H
#define AQ_MANAGER_LIVE_LIVE_H

#include "base/cleanup.h"

struct core;
struct live_feed;

struct live_feed *live_feed_new(struct core *core);
void live_feed_free(struct live_feed *feed); /* after the last connection */

#endif
