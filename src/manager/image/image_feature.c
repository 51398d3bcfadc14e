/* SPDX-License-Identifier: Apache-2.0 */
/* Registers images and registries with the manager. */
#include "manager/image/image_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/image/image_aliases.h"
#include "manager/image/image_catalogue.h"
#include "manager/image/image_limits.h"
#include "manager/image/rescan.h"

static const struct route_table *const image_routes[] = { &image_route_table,
                                                          &image_aliases_route_table,
                                                          &image_limits_route_table,
                                                          &registry_route_table, NULL };
static const struct gql_table *const image_gql[] = { &image_gql_table, &image_node_gql_table,
                                                     &image_mutation_gql_table, &registry_gql_table,
                                                     NULL };
static const struct gql_node *const image_nodes[] = { &image_node, &registry_node,
                                                      &registry_node_before, NULL };
static const struct gql_same image_same[] = {
    { SCHEMA_TYPE_Image, SCHEMA_TYPE_ImageNode },
    { SCHEMA_TYPE_ContainerRegistryNode, SCHEMA_TYPE_ContainerRegistryConfig },
    { 0 },
};

static int image_feature_open(struct api *api, struct aq_error *err)
{
    int r;

    api->image = aq_alloc(sizeof(*api->image));
    if ((r = image_aliases_load(api, err)) < 0 || (r = image_catalogue_load(api, err)) < 0)
        return r;
    return image_limits_load(api, err);
}

static void image_feature_stop(struct api *api)
{
    rescan_stop(api->image->rescan);
}

static void image_feature_close(struct api *api)
{
    if (!api->image)
        return;
    json_decref(api->image->aliases);
    json_decref(api->image->limits);
    json_decref(api->image->catalogue);
    free(api->image);
}

const struct feature image_feature = {
    .name = "image",
    .routes = image_routes,
    .gql = image_gql,
    .nodes = image_nodes,
    .same = image_same,
    .open = image_feature_open,
    .stop = image_feature_stop,
    .close = image_feature_close,
};
