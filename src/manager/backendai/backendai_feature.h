/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_feature.h - importing a Backend.AI database: tables of routes in its files */
#ifndef AQ_MANAGER_BACKENDAI_BACKENDAI_FEATURE_H
#define AQ_MANAGER_BACKENDAI_BACKENDAI_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(backendai_import);

extern const struct feature backendai_feature;

#endif
