/* SPDX-License-Identifier: Apache-2.0 */
/* Registers images and registries with the manager. */
#include "manager/image/image_feature.h"

static const struct route_table *const image_routes[] = { &image_route_table,
                                                          &image_aliases_route_table,
                                                          &image_limits_route_table,
                                                          &registry_route_table, NULL };
static const struct gql_table *const image_gql[] = { &image_gql_table, &image_node_gql_table,
                                                     &image_mutation_gql_table, &registry_gql_table,
                                                     NULL };
static const struct gql_node *const image_nodes[] = { &image_node, &registry_node,
                                                      &registry_node_before, NULL };

const struct feature image_feature = {
    .name = "image",
    .routes = image_routes,
    .gql = image_gql,
    .nodes = image_nodes,
};
