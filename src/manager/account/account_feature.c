/* SPDX-License-Identifier: Apache-2.0 */
/* Registers users, keypairs, domains, projects and policies with the manager. */
#include "manager/account/account_feature.h"

static const struct route_table *const account_routes[] = { &user_route_table,
                                                            &user_import_route_table,
                                                            &keypair_route_table,
                                                            &domain_route_table,
                                                            &project_route_table,
                                                            &policy_route_table,
                                                            NULL };
static const struct gql_table *const account_gql[] = { &user_gql_table,
                                                       &user_v2_gql_table,
                                                       &user_v2_mutation_gql_table,
                                                       &policy_v2_gql_table,
                                                       &keypair_gql_table,
                                                       &accounts_gql_table,
                                                       &owner_policy_gql_table,
                                                       &account_mutation_gql_table,
                                                       &access_mutation_gql_table,
                                                       NULL };
static const struct gql_node *const account_nodes[] = { &domain_node,         &group_node,
                                                        &resource_group_node, &user_v2_node,
                                                        &project_v2_node,     &user_node,
                                                        &policy_v2_node,      NULL };

const struct feature account_feature = {
    .name = "account",
    .routes = account_routes,
    .gql = account_gql,
    .nodes = account_nodes,
};
