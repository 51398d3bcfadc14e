/* SPDX-License-Identifier: Apache-2.0 */
/* Registers model services with the manager. */
#include "manager/serving/serving_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/core/services.h"
#include "manager/serving/serving_trial.h"
#include "manager/serving/serving.h"
#include "manager/session/session.h"

static const struct route_table *const serving_tables[] = { &serving_route_table,
                                                            &serving_revisions_route_table,
                                                            &serving_rollout_route_table,
                                                            &serving_history_route_table,
                                                            &serving_tokens_route_table,
                                                            &backendai_services_route_table,
                                                            &backendai_services_list_route_table,
                                                            &backendai_service_routes_route_table,
                                                            &backendai_service_token_route_table,
                                                            NULL };
static const struct gql_table *const serving_gql[] = { &backendai_endpoint_gql_table,
                                                       &backendai_route_gql_table,
                                                       &backendai_modify_gql_table,
                                                       &backendai_rule_gql_table,
                                                       &backendai_deployment_gql_table,
                                                       &backendai_deployment_change_gql_table,
                                                       &backendai_revision_gql_table,
                                                       &backendai_revision_add_gql_table,
                                                       &backendai_rule_v2_gql_table,
                                                       &backendai_presets_gql_table,
                                                       NULL };
static const struct gql_node *const serving_nodes[] = {
    &backendai_rule_node,       &backendai_rule_v2_node,
    &backendai_deployment_node, &backendai_replica_node,
    &backendai_token_node,      &backendai_revision_node,
    &backendai_runtime_node,    &backendai_measurement_node,
    &backendai_preset_node,     NULL
};

static int serving_feature_open(struct api *api, struct aq_error *err)
{
    (void)err;
    api->serving = aq_alloc(sizeof(*api->serving));
    api->serving->use = serving_use_new(api->core);
    api->serving->totals = serving_totals_new(api->core, api->serving->use);
    api->serving->signals = serving_signals_new(api->core);
    api->serving->scale = serving_scale_new(api->core, api->serving->use, api->serving->signals);
    api->serving->routes = serving_routes_new(api->core, api->serving->use, api->serving->scale);
    api->serving->trials = serving_trials_new(api);
    core_set_replica_mounts(api->core, session_may_mount, api);
    return 0;
}

static void serving_feature_stop(struct api *api)
{
    serving_trials_free(AQ_TAKE(api->serving->trials));
    serving_routes_stop(api->serving->routes);
    serving_scale_stop(api->serving->scale);
    serving_totals_stop(api->serving->totals);
    serving_use_stop(api->serving->use);
    serving_signals_stop(api->serving->signals);
}

static void serving_feature_close(struct api *api)
{
    if (!api->serving)
        return;
    serving_trials_free(api->serving->trials);
    serving_routes_free(api->serving->routes);
    serving_scale_free(api->serving->scale);
    serving_signals_free(api->serving->signals);
    serving_totals_free(api->serving->totals);
    serving_use_free(api->serving->use);
    free(AQ_TAKE(api->serving));
}

void serving_write_metrics(const struct api *api, struct strbuf *out)
{
    serving_use_write_metrics(api->serving->use, api->core, out);
}

int serving_set_prometheus(struct api *api, const struct prometheus_settings *settings,
                           struct aq_error *err)
{
    return serving_signals_set_prometheus(api->serving->signals, settings, err);
}

const struct feature serving_feature = {
    .name = "serving",
    .routes = serving_tables,
    .gql = serving_gql,
    .nodes = serving_nodes,
    .open = serving_feature_open,
    .stop = serving_feature_stop,
    .close = serving_feature_close,
};
