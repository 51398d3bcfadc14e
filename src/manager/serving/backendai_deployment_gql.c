/* SPDX-License-Identifier: Apache-2.0 */
/* ModelDeployment, ModelReplica and AccessToken: model services as newer clients of Backend.AI know
 * them. Objects are struct endpoint_row, replica_row, which begins with a struct endpoint_route, and
 * endpoint_token.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "graphql/relay.h"
#include "manager/call/graphql/node.h"
#include "manager/serving/backendai_endpoint_list.h"
#include "manager/serving/backendai_endpoint_text.h"
#include "manager/serving/backendai_revision.h"
#include "manager/serving/serving_feature.h"

#define REPLICAS_USUAL 10
#define TOKENS_USUAL 5

/* ---- deployments ---- */

#define IN_ROW(member) .offset = offsetof(struct endpoint_row, member)
static const struct filter_field deployment_fields[] = {
    { "id", "", FILTER_UUID, IN_ROW(id_text) },
    { "name", "", FILTER_STRING, IN_ROW(name) },
    { "tag", "", FILTER_STRING, IN_ROW(tag) },
    { "url", "", FILTER_STRING, IN_ROW(url) },
    { "open_to_public", "", FILTER_BOOL, IN_ROW(public_flag) },
    { "status", "", FILTER_STRING, IN_ROW(phase) },
    { "project", "", FILTER_UUID, IN_ROW(project) },
    { "domain", "", FILTER_STRING, IN_ROW(domain) },
    { "resource_group", "", FILTER_STRING, IN_ROW(resource_group) },
    { "created_at", "", FILTER_TIME, IN_ROW(created_usec) },
};

static const struct newer_word deployment_words[] = {
    { "tags", "tag" },
    { "endpointUrl", "url" },
    { "projectId", "project" },
    { "domainName", "domain" },
};

static const char *deployment_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct endpoint_row *)row)->id_text;
}

static int deployment_get_node(struct gql_call *call, const char *id, uint32_t type);

const struct gql_node backendai_deployment_node = {
    .type = SCHEMA_TYPE_ModelDeployment,
    .id_of = deployment_id_of,
    .get = deployment_get_node,
    .fields = deployment_fields,
    .field_count = AQ_COUNT(deployment_fields),
    .newer_words = deployment_words,
    .newer_word_count = AQ_COUNT(deployment_words),
};

static void deployment_answer_list(struct gql_call *call, const struct endpoint_rows *rows)
{
    call->results[0] = gql_node_connect(call, &backendai_deployment_node, rows->items,
                                        sizeof(*rows->items), rows->count);
}

static bool deployment_is_stopped(const struct gql_type *type, struct gql_value status)
{
    return status.kind == GQL_ENUM && strcmp(type->values[status.integer].name, "STOPPED") == 0;
}

/* Does the filter ask for the status STOPPED, here or in what is nested in it? */
static bool deployment_asks_ended(const struct gql_type *type, struct gql_value value)
{
    bool asks = false;

    if (value.kind == GQL_LIST)
        for (uint32_t i = 0; i < value.count && !asks; i++)
            asks = deployment_asks_ended(type, value.items[i]);
    if (type->kind == GQL_TYPE_ENUM)
        return asks || deployment_is_stopped(type, value);
    for (uint32_t i = 0; value.kind == GQL_INPUT && i < type->input_count && !asks; i++)
        asks = strncmp(type->inputs[i].name, "not", 3) != 0
               && deployment_asks_ended(type->inputs[i].type.type, value.items[i]);
    return asks;
}

static int deployment_list(struct gql_call *call, struct endpoint_query *q)
{
    const struct gql_field_def *field = call->field;
    const struct gql_input_def *filter = gql_input_find(field->args, field->arg_count, "filter", 6);

    q->answer = deployment_answer_list;
    return endpoint_query_start(
        q, deployment_asks_ended(filter->type.type, call->args[filter - field->args]));
}

static int deployment_list_own(struct gql_call *call)
{
    struct endpoint_query *q = endpoint_query_new(call);

    q->user_id = &((const struct gql_context *)call->context)->who->user_id;
    return deployment_list(call, q);
}

static int deployment_list_all(struct gql_call *call)
{
    return deployment_list(call, endpoint_query_new(call));
}

static int deployment_list_of_project(struct gql_call *call)
{
    struct gql_value scope = gql_arg_member(call, "scope", "projectId");
    struct endpoint_query *q = endpoint_query_new(call);
    struct uuid *id = arena_alloc(call->arena, sizeof(*id));

    if (uuid_parse(scope.text, id) < 0)
        return gql_call_fail(call, "scope.projectId: '%.64s' is not a UUID", scope.text);
    q->project_id = id;
    return deployment_list(call, q);
}

static void deployment_answer_one(struct gql_call *call, const struct endpoint_rows *rows)
{
    if (rows->count)
        call->results[0] = gql_object_of(
            call->field->type.type->kind == GQL_TYPE_OBJECT ? 0 : SCHEMA_TYPE_ModelDeployment,
            &rows->items[0]);
}

static int deployment_get_by(struct gql_call *call, const char *text)
{
    const struct api *api = ((const struct gql_context *)call->context)->api;
    struct endpoint_query *q = endpoint_query_new(call);
    struct uuid *id = arena_alloc(call->arena, sizeof(*id));
    const char *type;

    if (uuid_parse(relay_global_id_parse(call->arena, text, &type), id) < 0)
        return gql_call_fail(call, "id: '%.64s' is not the id of a model service", text);
    q->answer = deployment_answer_one;
    q->id = id;
    return endpoint_query_start(q, !core_find_service_by_id(api->core, id));
}

static int deployment_get_node(struct gql_call *call, const char *id, uint32_t type)
{
    (void)type;
    return deployment_get_by(call, id);
}

static int deployment_get(struct gql_call *call)
{
    return deployment_get_by(call, call->args[0].text);
}

/* ---- what one has ---- */

static struct gql_value deployment_get_tags(struct gql_get *get, const void *parent)
{
    return gql_words(get->arena, ((const struct endpoint_row *)parent)->tag, ",");
}

/* The UUID alone, which clients compare with that inside of a revision's global id. */
static struct gql_value deployment_write_revision(struct gql_get *get,
                                                  const struct endpoint_row *row, int64_t number)
{
    struct uuid id = backendai_revision_id(&row->id, number);
    char text[UUID_TEXT_MAX];

    return number ? gql_copy(get, uuid_format(&id, text)) : gql_null();
}

static struct gql_value deployment_get_current(struct gql_get *get, const void *parent)
{
    return deployment_write_revision(get, parent, ((const struct endpoint_row *)parent)->current);
}

static struct gql_value deployment_get_deploying(struct gql_get *get, const void *parent)
{
    return deployment_write_revision(get, parent, ((const struct endpoint_row *)parent)->deploying);
}

static const struct uuid *deployment_project_of(const void *parent)
{
    return &((const struct endpoint_row *)parent)->project_id;
}

static int deployment_get_project(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_ProjectV2), deployment_project_of);
}

static const struct uuid *deployment_creator_of(const void *parent)
{
    return &((const struct endpoint_row *)parent)->creator_id;
}

static int deployment_get_creator(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_UserV2), deployment_creator_of);
}

/* ---- replicas ---- */

/* The words are those of our filters: enums in lower case. */
struct replica_row {
    struct endpoint_route route;
    const char *id_text, *status, *traffic;
};

#define IN_REPLICA(member) .offset = offsetof(struct replica_row, member)
static const struct filter_field replica_fields[] = {
    { "id", "", FILTER_UUID, IN_REPLICA(id_text) },
    { "status", "", FILTER_STRING, IN_REPLICA(status) },
    { "traffic_status", "", FILTER_STRING, IN_REPLICA(traffic) },
    { "created_at", "", FILTER_TIME, IN_REPLICA(route.created_usec) },
};

static const char *deployment_replica_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct replica_row *)row)->id_text;
}

const struct gql_node backendai_replica_node = { .type = SCHEMA_TYPE_ModelReplica,
                                                 .id_of = deployment_replica_id_of,
                                                 .fields = replica_fields,
                                                 .field_count = AQ_COUNT(replica_fields) };

static bool deployment_replica_takes_requests(const struct endpoint_route *route)
{
    return strcmp(route->status, "HEALTHY") == 0 && route->ratio_ppm > 0;
}

static const char *deployment_replica_word(const char *name)
{
    static const char *const words[] = { "provisioning", "running", "terminating" };
    size_t i = 0;

    while (i + 1 < AQ_COUNT(words) && strcasecmp(words[i], name) != 0)
        i++;
    return words[i];
}

static struct gql_value deployment_replica_connect(struct gql_call *call,
                                                   const struct endpoint_row *row)
{
    struct replica_row *rows = arena_array(call->arena, row->route_count + 1, sizeof(*rows));
    char id[UUID_TEXT_MAX];

    for (uint32_t i = 0; i < row->route_count; i++)
        rows[i] = (struct replica_row){
            .route = row->routes[i],
            .id_text = arena_strdup(call->arena, uuid_format(&row->routes[i].id, id)),
            .status = deployment_replica_word(row->routes[i].lifecycle),
            .traffic = deployment_replica_takes_requests(&row->routes[i]) ? "active" : "inactive",
        };
    return gql_node_connect(call, &backendai_replica_node, rows, sizeof(*rows), row->route_count);
}

static int deployment_replica_list(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++)
        call->results[i] = deployment_replica_connect(call, call->parents[i]);
    return GQL_DONE;
}

static struct gql_value deployment_replica_get_revision(struct gql_get *get, const void *parent)
{
    const struct endpoint_route *route = parent;
    struct uuid id = backendai_revision_id(&route->endpoint_id, route->revision);
    char text[UUID_TEXT_MAX];

    return gql_copy(get, uuid_format(&id, text));
}

static struct gql_value deployment_replica_get_traffic(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(deployment_replica_takes_requests(parent) ? "ACTIVE" : "INACTIVE");
}

static struct gql_value deployment_replica_get_health(struct gql_get *get, const void *parent)
{
    const char *health = ((const struct endpoint_route *)parent)->health;

    (void)get;
    return gql_text(strcmp(health, "healthy") == 0     ? "HEALTHY"
                    : strcmp(health, "unhealthy") == 0 ? "UNHEALTHY"
                                                       : "NOT_CHECKED");
}

static const struct uuid *deployment_replica_session_of(const void *parent)
{
    return &((const struct endpoint_route *)parent)->id;
}

static int deployment_replica_get_session(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_SessionV2), deployment_replica_session_of);
}

/* ---- tokens ---- */

#define IN_TOKEN(member) .offset = offsetof(struct endpoint_token, member)
static const struct filter_field access_token_fields[] = {
    { "created_at", "", FILTER_TIME, IN_TOKEN(created_usec) },
    { "expires_at", "", FILTER_TIME, IN_TOKEN(expires_usec) },
};

static const char *deployment_token_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct endpoint_token *)row)->id, scratch);
}

const struct gql_node backendai_token_node = { .type = SCHEMA_TYPE_AccessToken,
                                               .id_of = deployment_token_id_of,
                                               .fields = access_token_fields,
                                               .field_count = AQ_COUNT(access_token_fields) };

static int deployment_token_list(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct endpoint_row *row = call->parents[i];

        call->results[i] = gql_node_connect(call, &backendai_token_node, row->tokens,
                                            sizeof(*row->tokens), row->token_count);
    }
    return GQL_DONE;
}

/* ---- fields ---- */

#define OF(type, name) SCHEMA_FIELD_##type##_##name
#define DEPLOYMENT(name) OF(ModelDeployment, name)
#define METADATA(name) OF(ModelDeploymentMetadata, name)
#define REPLICA(name) OF(ModelReplica, name)
#define TEXT(member) GQL_TEXT_AT(struct endpoint_row, member)
#define LIST(fn) GQL_CALL_COST(fn, GQL_COST_WALK, GQL_ROWS_WHOLE)
#define RELATED(fn) GQL_CALL_COST(fn, GQL_COST_READ / 10, 1)

static const struct gql_entry backendai_deployment_entries[] = {
    { OF(Queries, myDeployments), LIST(deployment_list_own) },
    { OF(Queries, projectDeployments), LIST(deployment_list_of_project) },
    { OF(Queries, adminDeployments), LIST(deployment_list_all) },
    { OF(Queries, deployment), GQL_CALL_COST(deployment_get, GQL_COST_READ, 1) },
    { DEPLOYMENT(id), GQL_GET(gql_node_get_id) },
    { DEPLOYMENT(metadata), GQL_SELF },
    { DEPLOYMENT(networkAccess), GQL_SELF },
    { DEPLOYMENT(defaultDeploymentStrategy), GQL_SELF },
    { DEPLOYMENT(replicaState), GQL_SELF },
    { DEPLOYMENT(currentRevisionId), GQL_GET(deployment_get_current) },
    { DEPLOYMENT(deployingRevisionId), GQL_GET(deployment_get_deploying) },
    { DEPLOYMENT(replicas),
      GQL_CALL_SHORT(deployment_replica_list, GQL_COST_MADE, REPLICAS_USUAL) },
    { DEPLOYMENT(accessTokens),
      GQL_CALL_SHORT(deployment_token_list, GQL_COST_MADE, TOKENS_USUAL) },
    { DEPLOYMENT(creator), RELATED(deployment_get_creator) },
    { METADATA(projectId), GQL_UUID_AT(struct endpoint_row, project_id) },
    { METADATA(domainName), TEXT(domain) },
    { METADATA(name), TEXT(name) },
    { METADATA(status), GQL_ENUM_AT(struct endpoint_row, deployment_status) },
    { METADATA(tags), GQL_GET(deployment_get_tags) },
    { METADATA(createdAt), GQL_TIME_AT(struct endpoint_row, created_usec) },
    { METADATA(updatedAt), GQL_ALWAYS_NULL },
    { METADATA(resourceGroupName), ENDPOINT_TEXT_AT(struct endpoint_row, resource_group) },
    { METADATA(projectV2), RELATED(deployment_get_project) },
    { OF(ModelDeploymentNetworkAccess, endpointUrl), ENDPOINT_TEXT_AT(struct endpoint_row, url) },
    { OF(ModelDeploymentNetworkAccess, preferredDomainName), GQL_ALWAYS_NULL },
    { OF(ModelDeploymentNetworkAccess, openToPublic), GQL_BOOL_AT(struct endpoint_row, is_public) },
    { OF(DeploymentStrategy, type), GQL_ENUM_AT(struct endpoint_row, strategy) },
    { OF(ReplicaState, desiredReplicaCount), GQL_COUNT_AT(struct endpoint_row, replicas) },
    NODE_CONNECTION(ModelDeployment),
    { REPLICA(id), GQL_GET(gql_node_get_id) },
    { REPLICA(sessionId), GQL_UUID_AT(struct endpoint_route, id) },
    { REPLICA(revisionId), GQL_GET(deployment_replica_get_revision) },
    { REPLICA(status), GQL_TEXT_AT(struct endpoint_route, lifecycle) },
    { REPLICA(trafficStatus), GQL_GET(deployment_replica_get_traffic) },
    { REPLICA(healthStatus), GQL_GET(deployment_replica_get_health) },
    { REPLICA(createdAt), GQL_TIME_AT(struct endpoint_route, created_usec) },
    { REPLICA(sessionV2), RELATED(deployment_replica_get_session) },
    NODE_CONNECTION(ModelReplica),
    { OF(AccessToken, id), GQL_GET(gql_node_get_id) },
    { OF(AccessToken, token), GQL_TEXT_AT(struct endpoint_token, text) },
    { OF(AccessToken, createdAt), GQL_TIME_AT(struct endpoint_token, created_usec) },
    { OF(AccessToken, expiresAt), GQL_TIME_AT(struct endpoint_token, expires_usec) },
    NODE_CONNECTION(AccessToken),
};
GQL_ENTRIES_END(backendai_deployment);
