/* SPDX-License-Identifier: Apache-2.0 */
/* live_feature.h - the feed of consoles: tables of routes in its files */
#ifndef AQ_MANAGER_LIVE_LIVE_FEATURE_H
#define AQ_MANAGER_LIVE_LIVE_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(live);

extern const struct feature live_feature;

#endif
