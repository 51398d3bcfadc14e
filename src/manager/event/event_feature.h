/* SPDX-License-Identifier: Apache-2.0 */
/* event_feature.h - events of sessions: tables of routes and GraphQL entries in its files */
#ifndef AQ_MANAGER_EVENT_EVENT_FEATURE_H
#define AQ_MANAGER_EVENT_EVENT_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/resolve.h"

API_ROUTES(events);

GQL_ENTRIES(subscription);

extern const struct feature event_feature;

#endif
