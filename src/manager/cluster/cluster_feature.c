/* SPDX-License-Identifier: Apache-2.0 */
/* Registers the manager as a whole with the manager. */
#include "manager/cluster/cluster_feature.h"

static const struct route_table *const cluster_routes[] = {
    &hello_route_table,   &openapi_route_table,
    &manager_route_table, &error_log_route_table,
    &audit_route_table,   &audit_log_route_table,
    &service_route_table, &retention_route_table,
    &config_route_table,  NULL
};
static const struct gql_table *const cluster_gql[] = { &audit_gql_table, NULL };
static const struct gql_node *const cluster_nodes[] = { &audit_node, NULL };

const struct feature cluster_feature = {
    .name = "cluster",
    .routes = cluster_routes,
    .gql = cluster_gql,
    .nodes = cluster_nodes,
};
