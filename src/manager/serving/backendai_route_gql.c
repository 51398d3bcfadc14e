/* SPDX-License-Identifier: Apache-2.0 */
/* Routing and EndpointToken: replicas and tokens of model services. Objects are struct endpoint_route
 * and endpoint_token.
 */
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/serving/backendai_endpoint_list.h"
#include "manager/serving/backendai_endpoint_text.h"
#include "manager/serving/serving_feature.h"

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

struct gql_value endpoint_get_text(struct gql_get *get, const void *parent)
{
    const char *text = *(const char *const *)(const void *)((const char *)parent + get->offset);

    return gql_text(*text ? text : NULL);
}

struct endpoint_error {
    struct uuid session_id; /* nil = of none */
    struct gql_value infos;
};

struct endpoint_error_info {
    const char *source, *name, *text;
};

struct gql_value endpoint_make_error(struct arena *arena, const struct uuid *session_id,
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

#define ROUTING(name) SCHEMA_FIELD_Routing_##name
#define TOKEN(name) SCHEMA_FIELD_EndpointToken_##name

static const struct gql_entry backendai_route_entries[] = {
    { SCHEMA_FIELD_Queries_routing, GQL_CALL_COST(endpoint_route_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_routing_list, GQL_CALL_COST(endpoint_route_list, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_endpoint_token, GQL_CALL_COST(endpoint_token_get, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_endpoint_token_list,
      GQL_CALL_COST(endpoint_token_list, GQL_COST_WALK, 1) },
    { ROUTING(id), GQL_UUID_AT(struct endpoint_route, id) },
    { ROUTING(routing_id), GQL_UUID_AT(struct endpoint_route, id) },
    { ROUTING(endpoint), ENDPOINT_TEXT_AT(struct endpoint_route, url) },
    { ROUTING(session), GQL_UUID_AT(struct endpoint_route, id) },
    { ROUTING(status), GQL_TEXT_AT(struct endpoint_route, status) },
    { ROUTING(health_status), GQL_TEXT_AT(struct endpoint_route, health) },
    { ROUTING(traffic_ratio), GQL_GET(endpoint_route_get_ratio) },
    { ROUTING(created_at), GQL_TIME_AT(struct endpoint_route, created_usec) },
    { ROUTING(error), GQL_GET_COST(endpoint_route_get_error, GQL_COST_MADE) },
    { ROUTING(error_data), ENDPOINT_TEXT_AT(struct endpoint_route, error_data) },
    { ROUTING(live_stat), GQL_GET_COST(endpoint_route_get_live_stat, GQL_COST_TEXT) },
    { SCHEMA_FIELD_RoutingList_items, GQL_GET(endpoint_route_get_items) },
    { SCHEMA_FIELD_RoutingList_total_count, GQL_PAGE_TOTAL },
    { TOKEN(id), GQL_UUID_AT(struct endpoint_token, id) },
    { TOKEN(token), GQL_TEXT_AT(struct endpoint_token, text) },
    { TOKEN(endpoint_id), GQL_UUID_AT(struct endpoint_token, endpoint_id) },
    { TOKEN(domain), ENDPOINT_TEXT_AT(struct endpoint_token, domain) },
    { TOKEN(project), GQL_UUID_AT(struct endpoint_token, project_id) },
    { TOKEN(session_owner), GQL_UUID_AT(struct endpoint_token, creator_id) },
    { TOKEN(created_at), GQL_TIME_AT(struct endpoint_token, created_usec) },
    { TOKEN(valid_until), GQL_TIME_AT(struct endpoint_token, expires_usec) },
    { SCHEMA_FIELD_EndpointTokenList_items, GQL_GET(endpoint_token_get_items) },
    { SCHEMA_FIELD_EndpointTokenList_total_count, GQL_PAGE_TOTAL },
    { SCHEMA_FIELD_InferenceSessionError_session_id,
      GQL_UUID_AT(struct endpoint_error, session_id) },
    { SCHEMA_FIELD_InferenceSessionError_errors, GQL_VALUE_AT(struct endpoint_error, infos) },
    { SCHEMA_FIELD_InferenceSessionErrorInfo_src, GQL_TEXT_AT(struct endpoint_error_info, source) },
    { SCHEMA_FIELD_InferenceSessionErrorInfo_name, GQL_TEXT_AT(struct endpoint_error_info, name) },
    { SCHEMA_FIELD_InferenceSessionErrorInfo_repr, GQL_TEXT_AT(struct endpoint_error_info, text) },
};
GQL_ENTRIES_END(backendai_route);
