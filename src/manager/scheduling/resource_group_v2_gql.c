/* SPDX-License-Identifier: Apache-2.0 */
/* ResourceGroup: resource groups as newer clients know them. The objects are struct
 * resource_group_row.
 */
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/scheduling/scheduling_feature.h"

#define AT(how, member) GQL_##how##_AT(struct resource_group_row, member)

static int gql_resource_group_narrow(struct gql_fetch *fetch, const char *name,
                                     struct aq_error *err)
{
    return gql_node_find(SCHEMA_TYPE_ScalingGroupNode)->narrow(fetch, name, err);
}

static const char *gql_resource_group_id_of(const void *row, char scratch[64])
{
    return gql_node_find(SCHEMA_TYPE_ScalingGroupNode)->id_of(row, scratch);
}

const struct gql_node resource_group_v2_node = {
    .type = SCHEMA_TYPE_ResourceGroup,
    .id_of = gql_resource_group_id_of,
    .list = store_list_resource_groups,
    .row_size = sizeof(struct resource_group_row),
    .narrow = gql_resource_group_narrow,
    .is_unowned = true,
};

static struct gql_value gql_resource_group_get_scheduler(struct gql_get *get, const void *parent)
{
    static const char *const names[] = { "fifo", "lifo", "drf", "fair-share" }; /* SchedulerType */
    const char *name = ((const struct resource_group_row *)parent)->resource_group.scheduler;
    uint32_t i = 0;

    (void)get;
    while (i + 1 < AQ_COUNT(names) && strcmp(names[i], name) != 0)
        i++;
    return gql_enum(i);
}

static const struct gql_entry resource_group_v2_entries[] = {
    { SCHEMA_FIELD_Queries_adminResourceGroups,
      GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_ResourceGroup_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ResourceGroup_name, AT(TEXT, resource_group.name) },
    { SCHEMA_FIELD_ResourceGroup_status, GQL_SELF },
    { SCHEMA_FIELD_ResourceGroup_metadata, GQL_SELF },
    { SCHEMA_FIELD_ResourceGroup_network, GQL_SELF },
    { SCHEMA_FIELD_ResourceGroup_scheduler, GQL_SELF },
    { SCHEMA_FIELD_ResourceGroupStatus_isActive, AT(BOOL, resource_group.is_active) },
    { SCHEMA_FIELD_ResourceGroupStatus_isPublic, GQL_FIXED_BOOL(true) },
    { SCHEMA_FIELD_ResourceGroupMetadata_description, AT(TEXT, resource_group.description) },
    { SCHEMA_FIELD_ResourceGroupMetadata_createdAt, AT(TIME, created_usec) },
    { SCHEMA_FIELD_ResourceGroupNetworkConfig_wsproxyAddr, GQL_ALWAYS_NULL },
    { SCHEMA_FIELD_ResourceGroupNetworkConfig_useHostNetwork, GQL_FIXED_BOOL(false) },
    { SCHEMA_FIELD_ResourceGroupSchedulerConfig_type, GQL_GET(gql_resource_group_get_scheduler) },
    NODE_CONNECTION(ResourceGroup),
};
GQL_ENTRIES_END(resource_group_v2);
