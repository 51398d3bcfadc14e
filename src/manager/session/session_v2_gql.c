/* SPDX-License-Identifier: Apache-2.0 */
/* AgentV2, SessionV2 and ImageV2: what runs where, as newer clients know it. The objects are struct
 * agent_row, session_row and image_row.
 */
#include <string.h>

#include "manager/image/image.h"
#include "manager/call/graphql/node.h"
#include "manager/session/session_view.h"
#include "manager/session/session_feature.h"

#define SESSION(name) SCHEMA_FIELD_SessionV2##name
#define AT(how, member) GQL_##how##_AT(struct session_row, member)

static int gql_agent_v2_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    return gql_node_find(SCHEMA_TYPE_AgentNode)->narrow(fetch, id, err);
}

static const char *gql_agent_v2_id_of(const void *row, char scratch[64])
{
    return gql_node_find(SCHEMA_TYPE_AgentNode)->id_of(row, scratch);
}

const struct gql_node agent_v2_node = {
    .type = SCHEMA_TYPE_AgentV2,
    .id_of = gql_agent_v2_id_of,
    .list = store_list_agents,
    .row_size = sizeof(struct agent_row),
    .narrow = gql_agent_v2_narrow,
    .is_unowned = true,
};

static int gql_session_v2_narrow(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    return session_node.narrow(fetch, id, err);
}

static const char *gql_session_v2_id_of(const void *row, char scratch[64])
{
    return session_node.id_of(row, scratch);
}

const struct gql_node session_v2_node = {
    .type = SCHEMA_TYPE_SessionV2,
    .id_of = gql_session_v2_id_of,
    .list = store_list_sessions,
    .row_size = sizeof(struct session_row),
    .narrow = gql_session_v2_narrow,
};

static const char *gql_image_v2_id_of(const void *row, char scratch[64])
{
    return gql_node_find(SCHEMA_TYPE_ImageNode)->id_of(row, scratch);
}

static int gql_image_v2_get(struct gql_call *call, const char *id, uint32_t type)
{
    return gql_node_find(SCHEMA_TYPE_ImageNode)->get(call, id, type);
}

const struct gql_node image_v2_node = {
    .type = SCHEMA_TYPE_ImageV2,
    .id_of = gql_image_v2_id_of,
    .get = gql_image_v2_get,
};

/* ---- what a session is related to ---- */

static const struct uuid *gql_session_v2_project_of(const void *parent)
{
    return &((const struct session_row *)parent)->session.project_id;
}

static int gql_session_v2_project(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_ProjectV2), gql_session_v2_project_of);
}

static const struct uuid *gql_session_v2_user_of(const void *parent)
{
    return &((const struct session_row *)parent)->session.user_id;
}

static int gql_session_v2_user(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_UserV2), gql_session_v2_user_of);
}

static int gql_session_v2_images(struct gql_call *call)
{
    struct gql_images images;

    gql_images_load(call, &images);
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct session_row *row = call->parents[i];
        const struct image_row *image = gql_images_find(call, &images, row->session.image);

        call->results[i] = gql_node_connect(call, &image_v2_node, image, sizeof(*image), !!image);
    }
    return GQL_DONE;
}

/* ---- values ---- */

struct session_v2_amount {
    const char *slot, *amount;
};

static struct gql_value gql_session_v2_list_slots(struct gql_get *get, const struct slots *slots)
{
    const struct gql_context *context = get->context;
    struct session_v2_amount *rows = arena_array(get->arena, slots->count + 1, sizeof(*rows));
    struct gql_value *entries = arena_alloc(get->arena, sizeof(*entries));

    for (size_t i = 0; i < slots->count; i++) {
        const struct slot *slot = &slots->items[i];
        char text[AMOUNT_TEXT_MAX];

        slot_amount_format(slot->amount, slot_types_get(context->types, slot->name), text);
        rows[i].slot = slot->name;
        rows[i].amount = arena_strdup(get->arena, text);
    }
    *entries = gql_rows_of(get->arena, rows, (uint32_t)slots->count, sizeof(*rows));
    return gql_object(entries);
}

static struct gql_value gql_session_v2_get_slots(struct gql_get *get, const void *parent)
{
    bool is_used = strcmp(get->field->name, "used") == 0;
    AQ_CLEANUP(slots_donep) struct slots held = { 0 }, requested = { 0 };

    session_view_slots(parent, &held, &requested);
    return gql_session_v2_list_slots(get, is_used ? &held : &requested);
}

static struct gql_value gql_session_v2_get_entries(struct gql_get *get, const void *parent)
{
    (void)get;
    return *(const struct gql_value *)parent;
}

static struct gql_value gql_session_v2_get_mode(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_enum(((const struct session_row *)parent)->session.is_multi_node);
}

static struct gql_value gql_session_v2_get_size(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_int((int64_t)((const struct session_row *)parent)->kernel_count);
}

static const struct gql_entry session_v2_entries[] = {
    { SCHEMA_FIELD_Queries_agentsV2, GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_AgentV2_id, GQL_GET(gql_node_get_id) },
    NODE_CONNECTION(AgentV2),
    { SESSION(_id), GQL_GET(gql_node_get_id) },
    { SESSION(_metadata), GQL_SELF },
    { SESSION(_lifecycle), GQL_SELF },
    { SESSION(_resource), GQL_SELF },
    { SESSION(_project), GQL_CALL_COST(gql_session_v2_project, GQL_COST_READ / 10, 1) },
    { SESSION(_user), GQL_CALL_COST(gql_session_v2_user, GQL_COST_READ / 10, 1) },
    { SESSION(_images), GQL_CALL_COST(gql_session_v2_images, GQL_COST_WALK / GQL_ROWS_WHOLE, 1) },
    { SESSION(MetadataInfo_name), AT(CHARS, session.name) },
    { SESSION(MetadataInfo_sessionType), AT(ENUM, session.type) },
    { SESSION(MetadataInfo_clusterMode), GQL_GET(gql_session_v2_get_mode) },
    { SESSION(MetadataInfo_clusterSize), GQL_GET(gql_session_v2_get_size) },
    { SESSION(LifecycleInfo_status), AT(ENUM, session.status) },
    { SESSION(LifecycleInfo_createdAt), AT(TIME, session.created_usec) },
    { SESSION(LifecycleInfo_terminatedAt), AT(TIME, terminated_usec) },
    { SESSION(ResourceInfo_resourceGroupName), AT(TEXT, session.resource_group) },
    { SESSION(ResourceInfo_allocation), GQL_SELF },
    NODE_CONNECTION(SessionV2),
    { SCHEMA_FIELD_ResourceAllocation_requested,
      GQL_GET_COST(gql_session_v2_get_slots, GQL_COST_MADE) },
    { SCHEMA_FIELD_ResourceAllocation_used, GQL_GET_COST(gql_session_v2_get_slots, GQL_COST_MADE) },
    { SCHEMA_FIELD_ResourceSlot_entries, GQL_GET(gql_session_v2_get_entries) },
    { SCHEMA_FIELD_ResourceSlotEntry_resourceType, GQL_TEXT_AT(struct session_v2_amount, slot) },
    { SCHEMA_FIELD_ResourceSlotEntry_quantity, GQL_TEXT_AT(struct session_v2_amount, amount) },
    { SCHEMA_FIELD_ImageV2_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ImageV2_identity, GQL_SELF },
    { SCHEMA_FIELD_ImageV2_metadata, GQL_SELF },
    { SCHEMA_FIELD_ImageV2IdentityInfo_canonicalName, GQL_TEXT_AT(struct image_row, reference) },
    { SCHEMA_FIELD_ImageV2IdentityInfo_architecture, GQL_TEXT_AT(struct image_row, architecture) },
    { SCHEMA_FIELD_ImageV2MetadataInfo_tags, GQL_VALUE_AT(struct image_row, tags) },
    { SCHEMA_FIELD_ImageV2MetadataInfo_labels, GQL_VALUE_AT(struct image_row, labels) },
    NODE_CONNECTION(ImageV2),
};
GQL_ENTRIES_END(session_v2);
