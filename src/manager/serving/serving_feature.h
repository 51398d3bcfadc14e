/* SPDX-License-Identifier: Apache-2.0 */
/* serving_feature.h - model services: the state that the files of this directory share, and their
 * tables of routes
 */
#ifndef AQ_MANAGER_SERVING_SERVING_FEATURE_H
#define AQ_MANAGER_SERVING_SERVING_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/resolve.h"
#include "manager/serving/serving_routes.h"
#include "manager/serving/serving_totals.h"
#include "manager/serving/serving_use.h"

struct serving_trials;
struct gql_node;

struct serving_state {
    struct serving_routes *routes;
    struct serving_use *use;
    struct serving_totals *totals;
    struct serving_scale *scale;
    struct serving_signals *signals;
    struct serving_trials *trials;
};

API_ROUTES(serving);
API_ROUTES(serving_revisions);
API_ROUTES(serving_rollout);
API_ROUTES(serving_history);
API_ROUTES(serving_tokens);
API_ROUTES(backendai_services);
API_ROUTES(backendai_services_list);
API_ROUTES(backendai_service_routes);
API_ROUTES(backendai_service_token);

GQL_ENTRIES(backendai_endpoint);
GQL_ENTRIES(backendai_route);
GQL_ENTRIES(backendai_modify);
GQL_ENTRIES(backendai_rule);
GQL_ENTRIES(backendai_deployment);
GQL_ENTRIES(backendai_deployment_change);
GQL_ENTRIES(backendai_presets);
GQL_ENTRIES(backendai_revision);
GQL_ENTRIES(backendai_revision_add);
GQL_ENTRIES(backendai_rule_v2);

extern const struct gql_node backendai_rule_node, backendai_rule_v2_node, backendai_deployment_node,
    backendai_replica_node, backendai_token_node, backendai_revision_node, backendai_runtime_node,
    backendai_measurement_node, backendai_preset_node;

extern const struct feature serving_feature;

#endif
