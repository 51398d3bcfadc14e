/* SPDX-License-Identifier: Apache-2.0 */
/* Registers agents and their devices with the manager. */
#include "manager/node/node_feature.h"

static const struct route_table *const node_routes[] = {
    &agent_route_table, &agent_operation_route_table, &managers_route_table,
    &nodes_route_table, &orphan_route_table,          NULL
};
static const struct gql_table *const node_gql[] = { &agent_gql_table, NULL };
static const struct gql_node *const node_nodes[] = { &agent_node, NULL };
static const struct gql_same node_same[] = {
    { SCHEMA_TYPE_Agent, SCHEMA_TYPE_AgentNode },
    { SCHEMA_TYPE_Agent, SCHEMA_TYPE_AgentSummary },
    { 0 },
};

const struct feature node_feature = {
    .name = "node",
    .routes = node_routes,
    .gql = node_gql,
    .nodes = node_nodes,
    .same = node_same,
};
