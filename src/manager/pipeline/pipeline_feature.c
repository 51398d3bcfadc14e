/* SPDX-License-Identifier: Apache-2.0 */
/* Registers pipelines with the manager. */
#include "manager/pipeline/pipeline_feature.h"

#include "manager/pipeline/pipeline_runs.h"

static const struct route_table *const pipeline_tables[] = { &pipeline_route_table,
                                                             &pipeline_trigger_route_table, NULL };

static int pipeline_feature_open(struct api *api, struct aq_error *err)
{
    return pipeline_runs_open(api, &api->pipeline, err);
}

static void pipeline_feature_stop(struct api *api)
{
    pipeline_runs_stop(api->pipeline);
}

static void pipeline_feature_close(struct api *api)
{
    pipeline_runs_free(AQ_TAKE(api->pipeline));
}

const struct feature pipeline_feature = {
    .name = "pipeline",
    .routes = pipeline_tables,
    .open = pipeline_feature_open,
    .stop = pipeline_feature_stop,
    .close = pipeline_feature_close,
};
