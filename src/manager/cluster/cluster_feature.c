/* SPDX-License-Identifier: Apache-2.0 */
/* Registers the manager as a whole with the manager. */
#include "manager/cluster/cluster_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/cluster/cluster.h"

static const struct route_table *const cluster_routes[] = {
    &hello_route_table,   &openapi_route_table,
    &manager_route_table, &error_log_route_table,
    &audit_route_table,   &audit_log_route_table,
    &service_route_table, &retention_route_table,
    &config_route_table,  NULL
};
static const struct gql_table *const cluster_gql[] = { &audit_gql_table, NULL };
static const struct gql_node *const cluster_nodes[] = { &audit_node, NULL };

static int cluster_feature_open(struct api *api, struct aq_error *err)
{
    api->cluster = aq_alloc(sizeof(*api->cluster));
    return config_load(api, err);
}

static void cluster_feature_close(struct api *api)
{
    if (!api->cluster)
        return;
    config_settings_done(&api->cluster->settings);
    free(api->cluster->openapi);
    free(api->cluster);
}

const struct origin_rules *cluster_set_origins(struct api *api, const struct origin_rules *own)
{
    api->cluster->own_origins = *own;
    config_apply_origins(api);
    return &api->origins;
}

const json_t *cluster_registries(const struct api *api)
{
    return api->cluster->settings.registries;
}

const struct feature cluster_feature = {
    .name = "cluster",
    .routes = cluster_routes,
    .gql = cluster_gql,
    .nodes = cluster_nodes,
    .open = cluster_feature_open,
    .close = cluster_feature_close,
};
