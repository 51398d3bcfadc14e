/* SPDX-License-Identifier: Apache-2.0 */
/* Registers folders with the manager. */
#include "manager/folder/folder_feature.h"

static const struct route_table *const folder_routes[] = { &folder_list_route_table,
                                                           &folder_change_route_table,
                                                           &folder_files_route_table,
                                                           &folder_share_route_table,
                                                           &folder_clone_route_table,
                                                           &folder_admin_route_table,
                                                           NULL };
static const struct gql_table *const folder_gql[] = { &folder_gql_table, &folder_v2_gql_table,
                                                      &storage_volume_gql_table,
                                                      &quota_scope_gql_table, NULL };
static const struct gql_node *const folder_nodes[] = { &folder_node, &folder_v2_node, NULL };

const struct feature folder_feature = {
    .name = "folder",
    .routes = folder_routes,
    .gql = folder_gql,
    .nodes = folder_nodes,
};
