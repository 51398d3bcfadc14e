/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_feature.h - pipelines and their runs: tables of routes */
#ifndef AQ_MANAGER_PIPELINE_PIPELINE_FEATURE_H
#define AQ_MANAGER_PIPELINE_PIPELINE_FEATURE_H

#include "manager/call/feature.h"

API_ROUTES(pipeline);
API_ROUTES(pipeline_trigger);

extern const struct feature pipeline_feature;

#endif
