/* SPDX-License-Identifier: Apache-2.0 */
/* usage_feature.h - statistics, usage and reports: tables of routes in its files */
#ifndef AQ_MANAGER_USAGE_USAGE_FEATURE_H
#define AQ_MANAGER_USAGE_USAGE_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(export);
API_ROUTES(statistics);
API_ROUTES(usage);
API_ROUTES(usage_days);
API_ROUTES(usage_recent);
API_ROUTES(usage_total);

extern const struct feature usage_feature;

#endif
