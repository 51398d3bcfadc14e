/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoint: model services. Objects are struct endpoint_row. */
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/image/image.h"
#include "manager/serving/backendai_endpoint_list.h"
#include "manager/serving/backendai_endpoint_text.h"
#include "manager/serving/serving_feature.h"
#include "serving/runtime.h"

#define ROUTES_USUAL 5

/* ---- endpoints ---- */

#define IN_ENDPOINT(member) .offset = offsetof(struct endpoint_row, member)
static const struct filter_field endpoint_fields[] = {
    { "name", "", FILTER_STRING, IN_ENDPOINT(name) },
    { "endpoint_id", "", FILTER_UUID, IN_ENDPOINT(id_text) },
    { "id", "", FILTER_UUID, IN_ENDPOINT(id_text) },
    { "project", "", FILTER_UUID, IN_ENDPOINT(project) },
    { "resource_group", "", FILTER_STRING, IN_ENDPOINT(resource_group) },
    { "created_at", "", FILTER_TIME, IN_ENDPOINT(created_usec) },
    { "retries", "", FILTER_INT, IN_ENDPOINT(failures) },
    { "replicas", "", FILTER_INT, IN_ENDPOINT(replicas) },
    { "desired_session_count", "", FILTER_INT, IN_ENDPOINT(replicas) },
    { "destroyed_at", "", FILTER_TIME, IN_ENDPOINT(destroyed_usec) },
    { "model", "", FILTER_UUID, IN_ENDPOINT(model) },
    { "domain", "", FILTER_STRING, IN_ENDPOINT(domain) },
    { "url", "", FILTER_STRING, IN_ENDPOINT(url) },
    { "lifecycle_stage", "", FILTER_LOWER, IN_ENDPOINT(lifecycle) },
    { "status", "", FILTER_UPPER, IN_ENDPOINT(status) },
    { "tag", "", FILTER_STRING, IN_ENDPOINT(tag) },
    { "open_to_public", "", FILTER_BOOL, IN_ENDPOINT(public_flag) },
    { "created_user", "", FILTER_UUID, IN_ENDPOINT(creator_id_text) },
    { "created_user_id", "", FILTER_UUID, IN_ENDPOINT(creator_id_text) },
    { "created_user_email", "", FILTER_STRING, IN_ENDPOINT(creator_email) },
    { "session_owner_email", "", FILTER_STRING, IN_ENDPOINT(owner_email) },
};

static const char *endpoint_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct endpoint_row *)row)->id_text;
}

static const struct gql_node endpoint_node = { .type = SCHEMA_TYPE_Endpoint,
                                               .id_of = endpoint_id_of,
                                               .fields = endpoint_fields,
                                               .field_count = AQ_COUNT(endpoint_fields) };

static void endpoint_answer_page(struct gql_call *call, const struct endpoint_rows *rows)
{
    call->results[0] = gql_node_page(call, &endpoint_node, rows->items, sizeof(*rows->items),
                                     rows->count);
}

static int endpoint_list(struct gql_call *call)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    const char *filter = gql_arg_text(call, SCHEMA_ARG_Queries_endpoint_list_filter);
    const char *key = gql_arg_text(call, SCHEMA_ARG_Queries_endpoint_list_access_key);
    const struct keypair *keypair = key ? core_find_keypair(core, key) : NULL;
    struct endpoint_query *q = endpoint_query_new(call);
    struct aq_error err = { 0 };

    q->answer = endpoint_answer_page;
    q->domain = gql_arg_text(call, SCHEMA_ARG_Queries_endpoint_list_domain_name);
    if (endpoint_arg_uuid(call, "user_uuid", &q->user_id, &err) < 0
        || endpoint_arg_uuid(call, "group_id", &q->project_id, &err) < 0
        || (!q->project_id && endpoint_arg_uuid(call, "project", &q->project_id, &err) < 0))
        return gql_call_fail(call, "%s", err.text);
    if (key) {
        struct uuid *id = arena_alloc(call->arena, sizeof(*id));

        if (keypair)
            *id = keypair->user_id;
        q->user_id = id;
    }
    return endpoint_query_start(
        q, filter && (strstr(filter, "lifecycle_stage") || strstr(filter, "destroyed_at")));
}

static void endpoint_answer_one(struct gql_call *call, const struct endpoint_rows *rows)
{
    if (rows->count)
        call->results[0] = gql_object(&rows->items[0]);
    else
        (void)gql_call_fail(call, "there is no such model service");
}

static int endpoint_get(struct gql_call *call)
{
    struct endpoint_query *q = endpoint_query_new(call);
    const struct gql_context *context = call->context;
    struct aq_error err = { 0 };

    q->answer = endpoint_answer_one;
    if (endpoint_arg_uuid(call, "endpoint_id", &q->id, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    return endpoint_query_start(q, !core_find_service_by_id(context->api->core, q->id));
}

/* ---- fields ---- */

static int endpoint_get_images(struct gql_call *call)
{
    struct gql_images images;

    gql_images_load(call, &images);
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct endpoint_row *row = call->parents[i];

        call->results[i] = gql_object(gql_images_find(call, &images, row->image));
    }
    return GQL_DONE;
}

static const struct uuid *endpoint_model_of(const void *parent)
{
    return &((const struct endpoint_row *)parent)->model_id;
}

static int endpoint_get_model(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_VirtualFolderNode), endpoint_model_of);
}

static const struct uuid *endpoint_folders_of(const struct gql_call *call, const void *parent,
                                              size_t *ret_count)
{
    const struct endpoint_row *row = parent;
    struct uuid *ids = arena_array(call->arena, row->folder_count + 1, sizeof(*ids));

    for (uint32_t i = 0; i < row->folder_count; i++)
        ids[i] = row->folders[i].id;
    *ret_count = row->folder_count;
    return ids;
}

static int endpoint_get_folders(struct gql_call *call)
{
    return gql_node_load_lists(call, gql_node_find(SCHEMA_TYPE_VirtualFolderNode),
                               endpoint_folders_of);
}

static struct gql_value endpoint_get_routes(struct gql_get *get, const void *parent)
{
    const struct endpoint_row *row = parent;

    return gql_rows_of(get->arena, row->routes, row->route_count, sizeof(*row->routes));
}

static struct gql_value endpoint_get_title(struct gql_get *get, const void *parent)
{
    const struct endpoint_row *row = parent;
    const struct serving_runtime *runtime = serving_runtime_find(row->runtime);

    (void)get;
    return gql_text(runtime ? runtime->title : row->runtime);
}

static struct gql_value endpoint_get_errors(struct gql_get *get, const void *parent)
{
    const struct endpoint_row *row = parent;
    struct gql_value *items = arena_array(get->arena, row->route_count + 2, sizeof(*items));
    uint32_t count = 0;

    if (*row->problem)
        items[count++] = endpoint_make_error(get->arena, NULL, row->status, row->problem);
    for (uint32_t i = 0; i < row->route_count; i++)
        if (*row->routes[i].problem)
            items[count++] = endpoint_make_error(get->arena, &row->routes[i].id,
                                                 row->routes[i].status, row->routes[i].problem);
    return gql_list(items, count);
}

#define ENDPOINT(name) SCHEMA_FIELD_Endpoint_##name
#define E_TEXT(member) ENDPOINT_TEXT_AT(struct endpoint_row, member)
#define E_UUID(member) GQL_UUID_AT(struct endpoint_row, member)

static const struct gql_entry backendai_endpoint_entries[] = {
    { SCHEMA_FIELD_Queries_endpoint, GQL_CALL_COST(endpoint_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_endpoint_list, GQL_CALL_COST(endpoint_list, GQL_COST_WALK, 1) },
    { ENDPOINT(id), GQL_TEXT_AT(struct endpoint_row, id_text) },
    { ENDPOINT(endpoint_id), E_UUID(id) },
    { ENDPOINT(image), E_TEXT(image) },
    { ENDPOINT(image_object), GQL_CALL_COST(endpoint_get_images, GQL_COST_WALK, 1) },
    { ENDPOINT(domain), E_TEXT(domain) },
    { ENDPOINT(project), E_TEXT(project) },
    { ENDPOINT(resource_group), E_TEXT(resource_group) },
    { ENDPOINT(resource_slots), E_TEXT(resources) },
    { ENDPOINT(url), E_TEXT(url) },
    { ENDPOINT(model), E_UUID(model_id) },
    { ENDPOINT(model_definition_path), E_TEXT(definition) },
    { ENDPOINT(model_vfolder), GQL_CALL_COST(endpoint_get_model, GQL_COST_READ, 1) },
    { ENDPOINT(model_mount_destination), E_TEXT(model_target) },
    { ENDPOINT(model_mount_destiation), E_TEXT(model_target) },
    { ENDPOINT(extra_mounts), GQL_CALL_COST(endpoint_get_folders, GQL_COST_READ, ROUTES_USUAL) },
    { ENDPOINT(created_user), E_UUID(creator_id) },
    { ENDPOINT(created_user_id), E_UUID(creator_id) },
    { ENDPOINT(created_user_email), E_TEXT(creator_email) },
    { ENDPOINT(session_owner), E_UUID(user_id) },
    { ENDPOINT(session_owner_id), E_UUID(user_id) },
    { ENDPOINT(session_owner_email), E_TEXT(owner_email) },
    { ENDPOINT(tag), E_TEXT(tag) },
    { ENDPOINT(startup_command), E_TEXT(command) },
    { ENDPOINT(bootstrap_script), E_TEXT(bootstrap) },
    { ENDPOINT(callback_url), GQL_ALWAYS_NULL },
    { ENDPOINT(environ), E_TEXT(environ) },
    { ENDPOINT(name), E_TEXT(name) },
    { ENDPOINT(resource_opts), E_TEXT(resource_opts) },
    { ENDPOINT(replicas), GQL_COUNT_AT(struct endpoint_row, replicas) },
    { ENDPOINT(desired_session_count), GQL_COUNT_AT(struct endpoint_row, replicas) },
    { ENDPOINT(cluster_mode), E_TEXT(cluster_mode) },
    { ENDPOINT(cluster_size), GQL_COUNT_AT(struct endpoint_row, cluster_size) },
    { ENDPOINT(open_to_public), GQL_BOOL_AT(struct endpoint_row, is_public) },
    { ENDPOINT(runtime_variant), GQL_SELF },
    { SCHEMA_FIELD_RuntimeVariantInfo_name, E_TEXT(runtime) },
    { SCHEMA_FIELD_RuntimeVariantInfo_human_readable_name, GQL_GET(endpoint_get_title) },
    { ENDPOINT(created_at), GQL_TIME_AT(struct endpoint_row, created_usec) },
    { ENDPOINT(destroyed_at), GQL_TIME_AT(struct endpoint_row, destroyed_usec) },
    { ENDPOINT(routings),
      { .how = GQL_HOW_GET, .rows = ROUTES_USUAL, .get = endpoint_get_routes } },
    { ENDPOINT(retries), GQL_COUNT_AT(struct endpoint_row, failures) },
    { ENDPOINT(status), E_TEXT(status) },
    { ENDPOINT(lifecycle_stage), E_TEXT(lifecycle) },
    { ENDPOINT(errors), { .how = GQL_HOW_GET, .rows = 2, .get = endpoint_get_errors } },
    { ENDPOINT(live_stat), GQL_GET_COST(endpoint_get_live_stat, GQL_COST_TEXT) },
    { SCHEMA_FIELD_EndpointList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_EndpointList_total_count, GQL_PAGE_TOTAL },
};
GQL_ENTRIES_END(backendai_endpoint);
