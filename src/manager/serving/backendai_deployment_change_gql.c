/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of ModelDeployment and AccessToken: model services are created, changed and ended, and get
 * tokens. What fails is an error of the call.
 */
#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "graphql/relay.h"
#include "manager/call/decode.h"
#include "manager/call/graphql/mutation.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/backendai_input.h"
#include "manager/serving/backendai_revision.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "serving/rollout.h"

/* In the request's arena. */
struct change {
    struct gql_call *call;
    struct uuid id; /* of the service */
    const char *name;
    struct backendai_payload payload;
    struct uuid token_id;
    char token[SERVING_TOKEN_TEXT_MAX];
};

static struct change *change_new(struct gql_call *call)
{
    struct change *c = arena_alloc(call->arena, sizeof(*c));

    c->call = call;
    return c;
}

static const char *change_global_id(struct gql_call *call, const char *type, const struct uuid *id)
{
    char text[UUID_TEXT_MAX];

    return relay_global_id(call->arena, type, uuid_format(id, text));
}

/* In the names of the input. */
static void change_rename(const struct aq_error *err, struct aq_error *ret)
{
    static const char *const names[][2] = {
        { "tag", "tags" },
        { "replicas", "replicaCount" },
        { "domain", "metadata.domainName" },
        { "group", "metadata.projectId" },
        { "scaling_group", "metadata.resourceGroupName" },
        { "rollout", "defaultDeploymentStrategy" },
        { "expires_at", "expiresAt" },
    };

    *ret = *err;
    backendai_input_rename(names, AQ_COUNT(names), ret);
}

static int change_fail(struct gql_call *call, const struct aq_error *err)
{
    struct aq_error named;

    change_rename(err, &named);
    return mutation_fail(call, &named);
}

/* The service as it is then; an error if it has ended since. */
static int change_take_service(struct change *c, struct aq_error *err)
{
    const struct api *api = mutation_api(c->call);
    const struct model_service *s = c->name ? core_find_service(api->core, c->name)
                                            : core_find_service_by_id(api->core, &c->id);
    struct endpoint_row *row = arena_alloc(c->call->arena, sizeof(*row));

    if (!s)
        return aq_fail_kind(err, ESTALE, "conflict", "the model service was ended meanwhile");
    endpoint_fill(api, s, c->call->arena, row);
    c->payload.object = row;
    return 0;
}

/* core_done_fn */
static void change_on_saved(void *data, int r, const struct aq_error *err)
{
    struct change *c = data;
    struct aq_error why = { 0 };

    if (r < 0)
        change_rename(err, &why);
    else
        (void)change_take_service(c, &why);
    backendai_payload_done(c->call, &c->payload, why.code ? &why : NULL);
}

/* ---- what is given ---- */

static int change_read_count(const json_t *input, struct model_service *s, struct aq_error *err)
{
    const json_t *count = json_object_get(input, "replicaCount");

    if (!json_is_integer(count))
        return 0;
    if (json_integer_value(count) < 0 || json_integer_value(count) > MODEL_SERVICE_REPLICAS_MAX)
        return api_fail_param(err, "replicaCount", "%" JSON_INTEGER_FORMAT " is not within 0..%d",
                              json_integer_value(count), MODEL_SERVICE_REPLICAS_MAX);
    endpoint_set_replicas(s, json_integer_value(count));
    return 0;
}

/* A service has one tag: here they are parted by commas. */
static int change_read_tags(const json_t *object, struct model_service *s, struct aq_error *err)
{
    const json_t *tags = json_object_get(object, "tags"), *tag;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    uint32_t code;
    size_t i;

    if (!tags)
        return 0;
    json_array_foreach((json_t *)(uintptr_t)tags, i, tag)
        strbuf_addf(&text, "%s%s", text.len ? "," : "", json_string_value(tag));
    if (!decode_is_plain(text.data ? text.data : "", text.len, false, &code))
        return api_fail_param(err, "tags", "have an invisible or control character (U+%04X)",
                              (unsigned)code);
    if (strcmp(text.data ? text.data : "", SERVING_TRIAL_TAG) == 0)
        return api_fail_param(err, "tags", "'%s' is the tag of services that are tried",
                              SERVING_TRIAL_TAG);
    free(s->tag);
    s->tag = text.len ? aq_strdup(text.data) : NULL;
    return 0;
}

/* The other settings, and where a rollout is, stay. */
static int change_read_strategy(const json_t *input, struct arena *arena, struct model_service *s,
                                struct aq_error *err)
{
    static const char *const names[] = { "ROLLING", "BLUE_GREEN", "CANARY" };
    const char *name = backendai_input_text(json_object_get(input, "defaultDeploymentStrategy"),
                                            "type");
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct rollout rollout = rollout_default();
    struct rollout_state state = { .phase = ROLLOUT_NONE };
    size_t which = 0;

    if (!name)
        return 0;
    if (s->rollout
        && rollout_parse(s->rollout, strlen(s->rollout), arena, &rollout, &state, err) < 0)
        return -err->code;
    while (which + 1 < AQ_COUNT(names) && strcmp(names[which], name) != 0)
        which++;
    if (rollout.strategy == (enum rollout_strategy)which)
        return 0;
    rollout.strategy = (enum rollout_strategy)which;
    if (rollout.strategy == ROLLOUT_CANARY && !rollout.step_count)
        return api_fail_param(err, "defaultDeploymentStrategy.type",
                              "CANARY needs steps: set them by 'aliquot service update --steps'");
    rollout_write(&rollout, state.phase == ROLLOUT_NONE ? NULL : &state, &w);
    free(s->rollout);
    s->rollout = aq_strdup(text.data);
    return 0;
}

/* ---- creating ---- */

/* Whose it is. */
static int deployment_read_owner(struct gql_call *call, const json_t *metadata,
                                 struct model_service *s, struct aq_error *err)
{
    const struct gql_context *context = call->context;
    const struct core *core = context->api->core;
    char text[UUID_TEXT_MAX];
    struct session_request request = { .access_key = context->who->access_key,
                                       .domain = backendai_input_text(metadata, "domainName") };
    const struct project *project;
    struct core_owner owner;
    struct uuid id;
    int r;

    if ((r = backendai_input_uuid(call, metadata, "projectId", &id, err)) < 0)
        return r;
    if (api_find_project(context->api, context->req, uuid_format(&id, text), &project, err) < 0)
        return api_fail_param(err, "metadata.projectId", "there is no project '%.64s'",
                              backendai_input_text(metadata, "projectId"));
    request.group = project->name;
    if ((r = core_find_owner(core, &request, &owner, err)) < 0)
        return r;
    if (!uuid_equals(&owner.project_id, &id))
        return api_fail_param(err, "metadata.projectId", "the project '%s' is of another domain",
                              project->name);
    s->user_id = owner.user_id;
    s->project_id = owner.project_id;
    s->domain = aq_strdup(owner.domain);
    (void)snprintf(s->access_key, sizeof(s->access_key), "%s", context->who->access_key);
    return 0;
}

static int deployment_read_new(struct gql_call *call, const json_t *input, struct model_service *s,
                               struct aq_error *err)
{
    const json_t *metadata = json_object_get(input, "metadata");
    const json_t *access = json_object_get(input, "networkAccess");
    const char *name = backendai_input_text(metadata, "name");
    const char *group = backendai_input_text(metadata, "resourceGroupName");
    int r;

    if ((r = backendai_input_check_frozen(call, err)) < 0
        || (r = model_service_check_name(name, err)) < 0)
        return r;
    if (!json_is_null(json_object_get(input, "initialRevision"))
        && json_object_get(input, "initialRevision"))
        return api_fail_param(err, "initialRevision", "must be null: addModelRevision adds it");
    if (backendai_input_text(access, "preferredDomainName"))
        return api_fail_param(err, "networkAccess.preferredDomainName",
                              "must be null: proxies have one domain for all");
    if (group && !core_find_resource_group(mutation_api(call)->core, group))
        return api_fail_param(err, "metadata.resourceGroupName",
                              "there is no resource group '%.64s'", group);
    (void)snprintf(s->name, sizeof(s->name), "%s", name);
    s->is_public = json_is_true(json_object_get(access, "openToPublic"));
    s->resource_group = group ? aq_strdup(group) : NULL;
    if ((r = deployment_read_owner(call, metadata, s, err)) < 0
        || (r = change_read_tags(metadata, s, err)) < 0
        || (r = change_read_count(input, s, err)) < 0)
        return r;
    return change_read_strategy(input, call->arena, s, err);
}

static int deployment_create(struct gql_call *call)
{
    struct change *c = change_new(call);
    json_auto_t *input = backendai_input_read(call);
    struct model_service s = { .goal = 0 };
    struct aq_error err = { 0 };

    if (deployment_read_new(call, input, &s, &err) < 0) {
        model_service_done(&s);
        return change_fail(call, &err);
    }
    c->name = arena_strdup(call->arena, s.name);
    core_create_service(mutation_api(call)->core, &s, NULL, NULL, mutation_who(call),
                        change_on_saved, c);
    model_service_done(&s);
    return GQL_LATER;
}

/* ---- changing ---- */

static int deployment_read_changes(struct gql_call *call, const json_t *input,
                                   struct model_service *s, struct aq_error *err)
{
    const char *name = backendai_input_text(input, "name");
    const json_t *is_public = json_object_get(input, "openToPublic");
    int r;

    if (name && strcasecmp(name, s->name) != 0)
        return api_fail_param(
            err, "name", "is '%s' and cannot be changed; create another model service", s->name);
    if (json_is_boolean(is_public))
        s->is_public = json_is_true(is_public);
    if ((r = change_read_tags(input, s, err)) < 0 || (r = change_read_count(input, s, err)) < 0)
        return r;
    return change_read_strategy(input, call->arena, s, err);
}

static int deployment_update(struct gql_call *call)
{
    struct change *c = change_new(call);
    json_auto_t *input = backendai_input_read(call);
    const struct model_service *s;
    struct model_service changed;
    struct aq_error err = { 0 };

    if (backendai_input_check_frozen(call, &err) < 0
        || !(s = backendai_input_service(call, input, "id", &err)))
        return change_fail(call, &err);
    c->id = s->id;
    model_service_copy(&changed, s);
    if (deployment_read_changes(call, input, &changed, &err) < 0) {
        model_service_done(&changed);
        return change_fail(call, &err);
    }
    core_change_service(mutation_api(call)->core, &changed, NULL, mutation_who(call),
                        change_on_saved, c);
    model_service_done(&changed);
    return GQL_LATER;
}

/* The goal is that revision. */
static int deployment_activate(struct gql_call *call)
{
    struct change *c = change_new(call);
    json_auto_t *input = backendai_input_read(call);
    const struct model_service_revision *revision;
    const struct model_service *s;
    struct model_service changed;
    struct uuid id, before;
    struct aq_error err = { 0 };

    if (backendai_input_check_frozen(call, &err) < 0
        || !(s = backendai_input_service(call, input, "deploymentId", &err))
        || backendai_input_uuid(call, input, "revisionId", &id, &err) < 0)
        return change_fail(call, &err);
    if (!(revision = backendai_revision_find(s, &id))) {
        (void)api_fail_param(&err, "revisionId",
                             "'%s' has no revision '%.64s', or keeps it no more", s->name,
                             backendai_input_text(input, "revisionId"));
        return change_fail(call, &err);
    }
    before = backendai_revision_id(&s->id, s->goal);
    c->id = s->id;
    c->payload.activated_id = change_global_id(call, "ModelRevision", &id);
    c->payload.previous_id = s->goal ? change_global_id(call, "ModelRevision", &before) : NULL;
    model_service_copy(&changed, s);
    changed.goal = revision->number;
    core_change_service(mutation_api(call)->core, &changed, NULL, mutation_who(call),
                        change_on_saved, c);
    model_service_done(&changed);
    return GQL_LATER;
}

/* ---- what goes ---- */

/* core_done_fn: the payload is made already. */
static void change_on_done(void *data, int r, const struct aq_error *err)
{
    struct change *c = data;

    backendai_payload_done(c->call, &c->payload, r < 0 ? err : NULL);
}

static int deployment_delete(struct gql_call *call)
{
    struct change *c = change_new(call);
    json_auto_t *input = backendai_input_read(call);
    const struct model_service *s;
    struct aq_error err = { 0 };

    if (!(s = backendai_input_service(call, input, "id", &err)))
        return change_fail(call, &err);
    c->payload.id = change_global_id(call, "ModelDeployment", &s->id);
    core_end_service(mutation_api(call)->core, &s->id, false, mutation_who(call), change_on_done,
                     c);
    return GQL_LATER;
}

/* ---- tokens ---- */

/* core_done_fn */
static void deployment_on_token(void *data, int r, const struct aq_error *err)
{
    struct change *c = data;
    const struct model_service *s = core_find_service_by_id(mutation_api(c->call)->core, &c->id);
    const struct model_service_token *token = s ? model_service_find_token(s, &c->token_id) : NULL;
    struct endpoint_token *row = arena_alloc(c->call->arena, sizeof(*row));
    struct aq_error gone = { 0 };

    if (r == 0 && !token)
        (void)aq_fail_kind(&gone, ESTALE, "conflict", "the token was revoked meanwhile");
    if (r == 0 && token)
        *row = (struct endpoint_token){ .id = token->id,
                                        .endpoint_id = c->id,
                                        .text = arena_strdup(c->call->arena, c->token),
                                        .created_usec = token->created_usec,
                                        .expires_usec = token->expires_usec };
    OPENSSL_cleanse(c->token, sizeof(c->token));
    c->payload.object = row;
    backendai_payload_done(c->call, &c->payload, r < 0 ? err : gone.code ? &gone : NULL);
}

static int deployment_create_token(struct gql_call *call)
{
    struct change *c = change_new(call);
    json_auto_t *input = backendai_input_read(call);
    struct serving_token_params params = { .expires_at = backendai_input_text(input, "expiresAt") };
    struct model_service_token token = { .label = NULL };
    const struct model_service *s;
    struct aq_error err = { 0 };

    if (backendai_input_check_frozen(call, &err) < 0
        || !(s = backendai_input_service(call, input, "modelDeploymentId", &err)))
        return change_fail(call, &err);
    if (serving_token_make(&params, clock_realtime_usec(), &token, c->token, &err) < 0)
        return change_fail(call, &err);
    c->id = s->id;
    token.creator_id = ((const struct gql_context *)call->context)->who->user_id;
    core_add_service_token(mutation_api(call)->core, &s->id, &token, mutation_who(call),
                           deployment_on_token, c);
    c->token_id = token.id;
    model_service_token_done(&token);
    return GQL_LATER;
}

static int deployment_delete_token(struct gql_call *call)
{
    const struct gql_context *context = call->context;
    struct change *c = change_new(call);
    json_auto_t *input = backendai_input_read(call);
    struct aq_error err = { 0 };
    struct uuid id;

    if (backendai_input_uuid(call, input, "id", &id, &err) < 0)
        return change_fail(call, &err);
    c->payload.id = change_global_id(call, "AccessToken", &id);
    for (const struct model_service *s = NULL; (s = core_next_service(context->api->core, s));)
        if (model_service_find_token(s, &id) && serving_view_may(context->req, s)) {
            core_revoke_service_token(context->api->core, &s->id, &id, mutation_who(call),
                                      change_on_done, c);
            return GQL_LATER;
        }
    (void)problem_no_such(&err, "token", "there is no token '%.64s'",
                          backendai_input_text(input, "id"));
    return change_fail(call, &err);
}

/* ---- fields ---- */

#define OF(type, name) SCHEMA_FIELD_##type##_##name
#define MUTATION(name, fn)                                        \
    {                                                             \
        OF(Mutations, name), GQL_CALL_COST(fn, GQL_COST_WRITE, 1) \
    }
#define PAYLOAD(type, member)                                             \
    {                                                                     \
        OF(type, member), GQL_OBJECT_AT(struct backendai_payload, object) \
    }
#define PAYLOAD_ID(type, name, member)                                \
    {                                                                 \
        OF(type, name), GQL_TEXT_AT(struct backendai_payload, member) \
    }

static const struct gql_entry backendai_deployment_change_entries[] = {
    MUTATION(createModelDeployment, deployment_create),
    MUTATION(updateModelDeployment, deployment_update),
    MUTATION(deleteModelDeployment, deployment_delete),
    MUTATION(activateDeploymentRevision, deployment_activate),
    MUTATION(createAccessToken, deployment_create_token),
    MUTATION(deleteAccessToken, deployment_delete_token),
    PAYLOAD(CreateDeploymentPayload, deployment),
    PAYLOAD(UpdateDeploymentPayload, deployment),
    PAYLOAD_ID(DeleteDeploymentPayload, id, id),
    PAYLOAD(ActivateRevisionPayload, deployment),
    PAYLOAD_ID(ActivateRevisionPayload, previousRevisionId, previous_id),
    PAYLOAD_ID(ActivateRevisionPayload, activatedRevisionId, activated_id),
    PAYLOAD(CreateAccessTokenPayload, accessToken),
    PAYLOAD_ID(DeleteAccessTokenPayload, id, id),
};
GQL_ENTRIES_END(backendai_deployment_change);
