/* SPDX-License-Identifier: Apache-2.0 */
/* DeploymentRevisionPreset and QueryDefinition: what pages of newer clients offer to choose from when a
 * revision or a rule is made. Lists are empty: there are no presets.
 */
#include "manager/call/graphql/node.h"
#include "manager/serving/serving_feature.h"

/* A row that there would be, for filters and orders. */
struct preset_row {
    const char *id, *name;
    int64_t rank;
};

#define IN_ROW(member) .offset = offsetof(struct preset_row, member)
static const struct filter_field preset_fields[] = {
    { "id", "", FILTER_UUID, IN_ROW(id) },
    { "name", "", FILTER_STRING, IN_ROW(name) },
    { "rank", "", FILTER_INT, IN_ROW(rank) },
};

static const char *preset_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct preset_row *)row)->id;
}

const struct gql_node backendai_measurement_node = { .type = SCHEMA_TYPE_QueryDefinition,
                                                     .id_of = preset_id_of,
                                                     .fields = preset_fields,
                                                     .field_count = AQ_COUNT(preset_fields) };
const struct gql_node backendai_preset_node = { .type = SCHEMA_TYPE_DeploymentRevisionPreset,
                                                .id_of = preset_id_of,
                                                .fields = preset_fields,
                                                .field_count = AQ_COUNT(preset_fields) };

static int preset_list(struct gql_call *call)
{
    const struct preset_row none = { .id = "" };

    call->results[0] = gql_node_connect(call, gql_node_of_connection(call->field->type.type), &none,
                                        sizeof(none), 0);
    return GQL_DONE;
}

#define OF(type, name) SCHEMA_FIELD_##type##_##name
#define NEVER(type, name)               \
    {                                   \
        OF(type, name), GQL_ALWAYS_NULL \
    }

static const struct gql_entry backendai_presets_entries[] = {
    { OF(Queries, prometheusQueryPresets), GQL_CALL_SHORT(preset_list, GQL_COST_MADE, 1) },
    { OF(Queries, deploymentRevisionPresets), GQL_CALL_SHORT(preset_list, GQL_COST_MADE, 1) },
    NEVER(QueryDefinition, id),
    NEVER(QueryDefinition, name),
    NEVER(QueryDefinition, description),
    NEVER(QueryDefinition, rank),
    NEVER(QueryDefinition, categoryId),
    NEVER(QueryDefinition, metricName),
    NEVER(QueryDefinition, queryTemplate),
    NEVER(QueryDefinition, timeWindow),
    NEVER(QueryDefinition, category),
    NEVER(QueryPresetCategory, id),
    NEVER(QueryPresetCategory, name),
    NODE_CONNECTION(QueryDefinition),
    NEVER(DeploymentRevisionPreset, id),
    NEVER(DeploymentRevisionPreset, name),
    NEVER(DeploymentRevisionPreset, description),
    NEVER(DeploymentRevisionPreset, rank),
    NEVER(DeploymentRevisionPreset, runtimeVariantId),
    NEVER(DeploymentRevisionPreset, runtimeVariant),
    NODE_CONNECTION(DeploymentRevisionPreset),
};
GQL_ENTRIES_END(backendai_presets);
