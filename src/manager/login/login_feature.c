/* SPDX-License-Identifier: Apache-2.0 */
/* Registers logins and sign-up with the manager. */
#include "manager/login/login_feature.h"

static const struct route_table *const login_routes[] = {
    &auth_route_table,        &auth_account_route_table, &signup_route_table,
    &ssh_keypair_route_table, &web_logins_route_table,   NULL
};
static const struct gql_table *const login_gql[] = { &login_gql_table, NULL };
static const struct gql_node *const login_nodes[] = { &login_node, &login_attempt_node, NULL };

const struct feature login_feature = {
    .name = "login",
    .routes = login_routes,
    .gql = login_gql,
    .nodes = login_nodes,
};
