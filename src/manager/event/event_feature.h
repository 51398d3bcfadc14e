/* SPDX-License-Identifier: Apache-2.0 */
/* event_feature.h - events of sessions: tables of routes in its files */
#ifndef AQ_MANAGER_EVENT_EVENT_FEATURE_H
#define AQ_MANAGER_EVENT_EVENT_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(events);

extern const struct feature event_feature;

#endif
