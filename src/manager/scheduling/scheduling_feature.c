/* SPDX-License-Identifier: Apache-2.0 */
/* Registers resource groups, presets and fair share with the manager. */
#include "manager/scheduling/scheduling_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/scheduling/presets.h"

static const struct route_table *const scheduling_routes[] = { &scheduling_history_route_table,
                                                               &resource_route_table,
                                                               &check_presets_route_table,
                                                               &preset_route_table,
                                                               &resource_group_route_table,
                                                               &fair_share_route_table,
                                                               &shares_route_table,
                                                               &share_spec_route_table,
                                                               NULL };
static const struct gql_table *const scheduling_gql[] = { &resource_group_v2_gql_table,
                                                          &preset_gql_table, NULL };
static const struct gql_entity scheduling_entities[] = {
    { SCHEMA_TYPE_ResourcePreset, &resource_preset_entity },
    { 0 },
};
static const struct gql_node *const scheduling_nodes[] = { &resource_group_v2_node, NULL };

static int scheduling_feature_open(struct api *api, struct aq_error *err)
{
    api->scheduling = aq_alloc(sizeof(*api->scheduling));
    return presets_load(api, err);
}

static void scheduling_feature_close(struct api *api)
{
    if (!api->scheduling)
        return;
    json_decref(api->scheduling->presets);
    free(api->scheduling);
}

const struct feature scheduling_feature = {
    .name = "scheduling",
    .routes = scheduling_routes,
    .gql = scheduling_gql,
    .entities = scheduling_entities,
    .nodes = scheduling_nodes,
    .open = scheduling_feature_open,
    .close = scheduling_feature_close,
};
