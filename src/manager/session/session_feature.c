/* SPDX-License-Identifier: Apache-2.0 */
/* Registers sessions and kernels with the manager. */
#include "manager/session/session_feature.h"

static const struct route_table *const session_routes[] = { &array_route_table,
                                                            &session_create_route_table,
                                                            &session_route_table,
                                                            &session_change_route_table,
                                                            &session_end_route_table,
                                                            &session_history_route_table,
                                                            &session_list_route_table,
                                                            &session_report_route_table,
                                                            &session_idle_route_table,
                                                            &session_retry_route_table,
                                                            NULL };
static const struct gql_table *const session_gql[] = {
    &session_gql_table,       &session_node_gql_table,   &session_mutation_gql_table,
    &session_total_gql_table, &kernel_gql_table,         &session_v2_gql_table,
    &session_queue_gql_table, &session_detail_gql_table, NULL
};
static const struct gql_node *const session_nodes[] = { &session_node,    &agent_v2_node,
                                                        &session_v2_node, &image_v2_node,
                                                        &kernel_node,     NULL };
static const struct gql_same session_same[] = {
    { SCHEMA_TYPE_ComputeSession, SCHEMA_TYPE_ComputeSessionNode },
    { SCHEMA_TYPE_ComputeSessionNode, SCHEMA_TYPE_ComputeSession },
    { SCHEMA_TYPE_ComputeContainer, SCHEMA_TYPE_KernelNode },
    { 0 },
};

const struct feature session_feature = {
    .name = "session",
    .routes = session_routes,
    .gql = session_gql,
    .nodes = session_nodes,
    .same = session_same,
};
