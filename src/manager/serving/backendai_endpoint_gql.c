/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoint, Routing and EndpointToken: model services, their replicas and tokens.
 *
 * Those that live are in memory, those that have ended in the store. Objects are struct endpoint_row,
 * endpoint_route and endpoint_token, copies in the request's arena.
 */
#include <errno.h>
#include <string.h>

#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/node.h"
#include "manager/image/image.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/serving_feature.h"
#include "serving/runtime.h"
#include "store/model_service.h"

#define TOKENS_USUAL 5
#define ROUTES_USUAL 5

/* ---- the rows that the caller may see ---- */

struct endpoint_rows {
    struct endpoint_row *items;
    uint32_t count;
};

/* A list, or the one of 'id'. */
struct endpoint_query {
    struct gql_call *call;
    const struct uuid *id, *project_id, *user_id;
    const char *domain;
    struct model_service_rows ended;
    void (*answer)(struct gql_call *call, const struct endpoint_rows *rows);
};

static bool endpoint_is_asked(const struct endpoint_query *q, const struct model_service *s)
{
    const struct gql_context *context = q->call->context;

    return serving_view_may(context->req, s) && (!q->id || uuid_equals(q->id, &s->id))
           && (!q->project_id || uuid_equals(q->project_id, &s->project_id))
           && (!q->user_id || uuid_equals(q->user_id, &s->user_id))
           && (!q->domain || (s->domain && strcmp(q->domain, s->domain) == 0));
}

/* The newest first, those that have ended last. */
static struct endpoint_rows endpoint_collect(const struct endpoint_query *q)
{
    const struct api *api = ((const struct gql_context *)q->call->context)->api;
    struct arena *arena = q->call->arena;
    struct endpoint_rows rows = { .count = 0 };
    uint32_t live = 0;

    for (const struct model_service *s = NULL; (s = core_next_service(api->core, s));)
        live += endpoint_is_asked(q, s);
    if (!arena_has_room(arena, live + q->ended.count + 1, sizeof(*rows.items)))
        return rows;
    rows.items = arena_array(arena, live + q->ended.count + 1, sizeof(*rows.items));
    rows.count = live;
    for (const struct model_service *s = NULL; live && (s = core_next_service(api->core, s));)
        if (endpoint_is_asked(q, s))
            endpoint_fill(api, s, arena, &rows.items[--live]);
    for (size_t i = 0; i < q->ended.count && !arena_is_over(arena); i++)
        if (endpoint_is_asked(q, &q->ended.items[i]))
            endpoint_fill(api, &q->ended.items[i], arena, &rows.items[rows.count++]);
    return rows;
}

/* store_tx_fn */
static int endpoint_read_ended(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct endpoint_query *q = data;
    char id[UUID_TEXT_MAX];

    model_service_rows_done(&q->ended); /* of a try before */
    return store_read_ended_model_services(tx, q->id ? uuid_format(q->id, id) : NULL, &q->ended,
                                           err);
}

static void endpoint_on_read(void *data, int r, const struct aq_error *err)
{
    struct endpoint_query *q = data;
    struct endpoint_rows rows;

    if (r < 0) {
        gql_call_fail(q->call, "%s", err->text);
    } else {
        rows = endpoint_collect(q);
        q->answer(q->call, &rows);
    }
    model_service_rows_done(&q->ended);
    gql_call_done(q->call);
}

static int endpoint_query_start(struct endpoint_query *q, bool with_ended)
{
    struct endpoint_rows rows;

    if (with_ended)
        return gql_read(q->call, endpoint_read_ended, endpoint_on_read, q);
    rows = endpoint_collect(q);
    q->answer(q->call, &rows);
    return GQL_DONE;
}

static struct endpoint_query *endpoint_query_new(struct gql_call *call)
{
    struct endpoint_query *q = arena_alloc(call->arena, sizeof(*q));

    q->call = call;
    return q;
}

/* The argument of this name as a UUID; NULL if it was not given. Global ids are fine. -EINVAL. */
static int endpoint_arg_uuid(const struct gql_call *call, const char *name, const struct uuid **ret,
                             struct aq_error *err)
{
    const struct gql_input_def *def = gql_input_find(call->field->args, call->field->arg_count,
                                                     name, strlen(name));
    const char *text = def ? gql_arg_text(call, (unsigned)(def - call->field->args)) : NULL;
    const char *type;
    struct uuid *id;

    *ret = NULL;
    if (!text)
        return 0;
    id = arena_alloc(call->arena, sizeof(*id));
    if (uuid_parse(relay_global_id_parse(call->arena, text, &type), id) < 0)
        return aq_fail(err, EINVAL, "%s: '%.64s' is not a UUID", name, text);
    *ret = id;
    return 0;
}

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

/* ---- routes ---- */

struct route_row {
    const char *id_text, *endpoint_id_text, *status;
    int64_t created_usec;
    const struct endpoint_route *route;
};

#define IN_ROUTE(member) .offset = offsetof(struct route_row, member)
static const struct filter_field route_fields[] = {
    { "routing_id", "", FILTER_UUID, IN_ROUTE(id_text) },
    { "session", "", FILTER_UUID, IN_ROUTE(id_text) },
    { "endpoint", "", FILTER_UUID, IN_ROUTE(endpoint_id_text) },
    { "status", "", FILTER_UPPER, IN_ROUTE(status) },
    { "created_at", "", FILTER_TIME, IN_ROUTE(created_usec) },
};

static const char *endpoint_route_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct route_row *)row)->id_text;
}

static const struct gql_node route_node = { .type = SCHEMA_TYPE_Routing,
                                            .id_of = endpoint_route_id_of,
                                            .fields = route_fields,
                                            .field_count = AQ_COUNT(route_fields) };

static void endpoint_route_answer_page(struct gql_call *call, const struct endpoint_rows *rows)
{
    struct route_row *routes;
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++)
        count += rows->items[i].route_count;
    if (!arena_has_room(call->arena, count + 1, sizeof(*routes)))
        return;
    routes = arena_array(call->arena, count + 1, sizeof(*routes));
    count = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t k = 0; k < rows->items[i].route_count; k++) {
            const struct endpoint_route *route = &rows->items[i].routes[k];
            char id[UUID_TEXT_MAX];

            routes[count++] = (struct route_row){
                .id_text = arena_strdup(call->arena, uuid_format(&route->id, id)),
                .endpoint_id_text = rows->items[i].id_text,
                .status = route->status,
                .created_usec = route->created_usec,
                .route = route,
            };
        }
    call->results[0] = gql_node_page(call, &route_node, routes, sizeof(*routes), count);
}

static int endpoint_route_list(struct gql_call *call)
{
    struct endpoint_query *q = endpoint_query_new(call);
    struct aq_error err = { 0 };

    q->answer = endpoint_route_answer_page;
    if (endpoint_arg_uuid(call, "endpoint_id", &q->id, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    return endpoint_query_start(q, false);
}

/* Rows of the list are route_row, of which the fields of a Routing know the route. */
static struct gql_value endpoint_route_get_items(struct gql_get *get, const void *parent)
{
    const struct gql_rows_page *page = parent;
    const void **routes = arena_array(get->arena, page->items.count + 1, sizeof(*routes));

    for (uint32_t i = 0; i < page->items.count; i++)
        routes[i] = ((const struct route_row *)page->items.rows[i])->route;
    return gql_rows(routes, page->items.count);
}

static int endpoint_route_get(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    struct endpoint_query *q = endpoint_query_new(call);
    struct core_replica replica;
    const struct session *session;
    const struct uuid *id;
    struct endpoint_rows rows;
    struct aq_error err = { 0 };

    if (endpoint_arg_uuid(call, "routing_id", &id, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    session = core_find_session(context->api->core, id);
    if (session && core_find_replica(context->api->core, session, &replica)) {
        q->id = &replica.service->id;
        rows = endpoint_collect(q);
        for (uint32_t i = 0; rows.count && i < rows.items[0].route_count; i++)
            if (uuid_equals(&rows.items[0].routes[i].id, id))
                call->results[0] = gql_object(&rows.items[0].routes[i]);
    }
    return call->results[0].kind == GQL_OBJECT
               ? GQL_DONE
               : gql_call_fail(call, "there is no such replica, or it has ended");
}

/* ---- tokens ---- */

struct token_row {
    const char *id_text, *endpoint_id_text;
    int64_t created_usec, expires_usec;
    const struct endpoint_token *token;
};

#define IN_TOKEN(member) .offset = offsetof(struct token_row, member)
static const struct filter_field token_fields[] = {
    { "id", "", FILTER_UUID, IN_TOKEN(id_text) },
    { "endpoint", "", FILTER_UUID, IN_TOKEN(endpoint_id_text) },
    { "endpoint_id", "", FILTER_UUID, IN_TOKEN(endpoint_id_text) },
    { "created_at", "", FILTER_TIME, IN_TOKEN(created_usec) },
    { "valid_until", "", FILTER_TIME, IN_TOKEN(expires_usec) },
};

static const char *endpoint_token_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct token_row *)row)->id_text;
}

static const struct gql_node token_node = { .type = SCHEMA_TYPE_EndpointToken,
                                            .id_of = endpoint_token_id_of,
                                            .fields = token_fields,
                                            .field_count = AQ_COUNT(token_fields) };

static void endpoint_token_answer_page(struct gql_call *call, const struct endpoint_rows *rows)
{
    struct token_row *tokens;
    uint32_t count = 0;

    for (uint32_t i = 0; i < rows->count; i++)
        count += rows->items[i].token_count;
    if (!arena_has_room(call->arena, count + 1, sizeof(*tokens)))
        return;
    tokens = arena_array(call->arena, count + 1, sizeof(*tokens));
    count = 0;
    for (uint32_t i = 0; i < rows->count; i++)
        for (uint32_t k = rows->items[i].token_count; k-- > 0;) {
            const struct endpoint_token *token = &rows->items[i].tokens[k];
            char id[UUID_TEXT_MAX];

            tokens[count++] = (struct token_row){
                .id_text = arena_strdup(call->arena, uuid_format(&token->id, id)),
                .endpoint_id_text = rows->items[i].id_text,
                .created_usec = token->created_usec,
                .expires_usec = token->expires_usec,
                .token = token,
            };
        }
    call->results[0] = gql_node_page(call, &token_node, tokens, sizeof(*tokens), count);
}

static int endpoint_token_list(struct gql_call *call)
{
    struct endpoint_query *q = endpoint_query_new(call);
    struct aq_error err = { 0 };

    q->answer = endpoint_token_answer_page;
    if (endpoint_arg_uuid(call, "endpoint_id", &q->id, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    return endpoint_query_start(q, false);
}

static struct gql_value endpoint_token_get_items(struct gql_get *get, const void *parent)
{
    const struct gql_rows_page *page = parent;
    const void **tokens = arena_array(get->arena, page->items.count + 1, sizeof(*tokens));

    for (uint32_t i = 0; i < page->items.count; i++)
        tokens[i] = ((const struct token_row *)page->items.rows[i])->token;
    return gql_rows(tokens, page->items.count);
}

static int endpoint_token_get(struct gql_call *call)
{
    struct endpoint_query *q = endpoint_query_new(call);
    struct endpoint_rows rows = endpoint_collect(q);
    const struct uuid *id;
    struct aq_error err = { 0 };

    if (endpoint_arg_uuid(call, "token", &id, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    for (uint32_t i = 0; i < rows.count; i++)
        for (uint32_t k = 0; k < rows.items[i].token_count; k++)
            if (uuid_equals(&rows.items[i].tokens[k].id, id))
                call->results[0] = gql_object(&rows.items[i].tokens[k]);
    return call->results[0].kind == GQL_OBJECT ? GQL_DONE
                                               : gql_call_fail(call, "there is no such token");
}

/* ---- fields ---- */

/* A text that is "" if it is not known. */
static struct gql_value endpoint_get_text(struct gql_get *get, const void *parent)
{
    const char *text = *(const char *const *)(const void *)((const char *)parent + get->offset);

    return gql_text(*text ? text : NULL);
}

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

struct endpoint_error {
    struct uuid session_id; /* nil = of none */
    struct gql_value infos;
};

struct endpoint_error_info {
    const char *source, *name, *text;
};

static struct gql_value endpoint_make_error(struct arena *arena, const struct uuid *session_id,
                                            const char *name, const char *text)
{
    struct endpoint_error *error = arena_alloc(arena, sizeof(*error));
    struct endpoint_error_info *info = arena_alloc(arena, sizeof(*info));

    *info = (struct endpoint_error_info){ "model service", name, text };
    if (session_id)
        error->session_id = *session_id;
    error->infos = gql_rows_of(arena, info, 1, sizeof(*info));
    return gql_object(error);
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

static struct gql_value endpoint_route_get_error(struct gql_get *get, const void *parent)
{
    const struct endpoint_route *route = parent;

    return *route->problem
               ? endpoint_make_error(get->arena, &route->id, route->status, route->problem)
               : gql_null();
}

static struct gql_value endpoint_route_get_ratio(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_float((double)((const struct endpoint_route *)parent)->ratio_ppm / 1e6);
}

#define ENDPOINT(name) SCHEMA_FIELD_Endpoint_##name
#define ROUTING(name) SCHEMA_FIELD_Routing_##name
#define TOKEN(name) SCHEMA_FIELD_EndpointToken_##name
/* clang-format off */
#define OPTIONAL_AT(type, member)                                                                  \
    { .how = GQL_HOW_GET, .offset = (uint32_t)offsetof(type, member), .get = endpoint_get_text }
/* clang-format on */
#define E_TEXT(member) OPTIONAL_AT(struct endpoint_row, member)
#define E_UUID(member) GQL_UUID_AT(struct endpoint_row, member)

static const struct gql_entry backendai_endpoint_entries[] = {
    { SCHEMA_FIELD_Queries_endpoint, GQL_CALL_COST(endpoint_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_endpoint_list, GQL_CALL_COST(endpoint_list, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_routing, GQL_CALL_COST(endpoint_route_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_routing_list, GQL_CALL_COST(endpoint_route_list, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_endpoint_token, GQL_CALL_COST(endpoint_token_get, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_endpoint_token_list,
      GQL_CALL_COST(endpoint_token_list, GQL_COST_WALK, 1) },
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
    { SCHEMA_FIELD_InferenceSessionError_session_id,
      GQL_UUID_AT(struct endpoint_error, session_id) },
    { SCHEMA_FIELD_InferenceSessionError_errors, GQL_VALUE_AT(struct endpoint_error, infos) },
    { SCHEMA_FIELD_InferenceSessionErrorInfo_src, GQL_TEXT_AT(struct endpoint_error_info, source) },
    { SCHEMA_FIELD_InferenceSessionErrorInfo_name, GQL_TEXT_AT(struct endpoint_error_info, name) },
    { SCHEMA_FIELD_InferenceSessionErrorInfo_repr, GQL_TEXT_AT(struct endpoint_error_info, text) },
    { ROUTING(id), GQL_UUID_AT(struct endpoint_route, id) },
    { ROUTING(routing_id), GQL_UUID_AT(struct endpoint_route, id) },
    { ROUTING(endpoint), OPTIONAL_AT(struct endpoint_route, url) },
    { ROUTING(session), GQL_UUID_AT(struct endpoint_route, id) },
    { ROUTING(status), GQL_TEXT_AT(struct endpoint_route, status) },
    { ROUTING(health_status), GQL_TEXT_AT(struct endpoint_route, health) },
    { ROUTING(traffic_ratio), GQL_GET(endpoint_route_get_ratio) },
    { ROUTING(created_at), GQL_TIME_AT(struct endpoint_route, created_usec) },
    { ROUTING(error), GQL_GET_COST(endpoint_route_get_error, GQL_COST_MADE) },
    { ROUTING(error_data), OPTIONAL_AT(struct endpoint_route, error_data) },
    { ROUTING(live_stat), GQL_GET_COST(endpoint_route_get_live_stat, GQL_COST_TEXT) },
    { SCHEMA_FIELD_RoutingList_items, GQL_GET(endpoint_route_get_items) },
    { SCHEMA_FIELD_RoutingList_total_count, GQL_PAGE_TOTAL },
    { TOKEN(id), GQL_UUID_AT(struct endpoint_token, id) },
    { TOKEN(token), GQL_TEXT_AT(struct endpoint_token, text) },
    { TOKEN(endpoint_id), GQL_UUID_AT(struct endpoint_token, endpoint_id) },
    { TOKEN(domain), OPTIONAL_AT(struct endpoint_token, domain) },
    { TOKEN(project), GQL_UUID_AT(struct endpoint_token, project_id) },
    { TOKEN(session_owner), GQL_UUID_AT(struct endpoint_token, creator_id) },
    { TOKEN(created_at), GQL_TIME_AT(struct endpoint_token, created_usec) },
    { TOKEN(valid_until), GQL_TIME_AT(struct endpoint_token, expires_usec) },
    { SCHEMA_FIELD_EndpointTokenList_items, GQL_GET(endpoint_token_get_items) },
    { SCHEMA_FIELD_EndpointTokenList_total_count, GQL_PAGE_TOTAL },
};
GQL_ENTRIES_END(backendai_endpoint);
