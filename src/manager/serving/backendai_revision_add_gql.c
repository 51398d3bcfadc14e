/* SPDX-License-Identifier: Apache-2.0 */
/* addModelRevision: a revision of a model service, as newer clients of Backend.AI write it.
 *
 * The input becomes the body of POST .../revisions (serving_params.h), which is decoded and checked as
 * that of any client. It says all that a revision has: nothing is taken from one before.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "graphql/relay.h"
#include "manager/call/graphql/mutation.h"
#include "manager/image/image.h"
#include "manager/serving/backendai_input.h"
#include "manager/serving/backendai_revision.h"
#include "manager/serving/serving_deploy.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "manager/serving/serving_view.h"
#include "serving/command.h"
#include "serving/definition.h"

/* In the request's arena. */
struct addition {
    struct gql_call *call;
    struct uuid id; /* of the service */
    bool activates;
    int64_t number; /* of the revision */
    struct serving_params params;
    struct serving_deploy deploy;
};

/* ---- the end ---- */

/* In the names of the input. */
static void addition_rename(struct aq_error *err)
{
    static const char *const names[][2] = {
        { "resources", "resourceConfig.resourceSlots" },
        { "shmem", "resourceConfig.resourceOpts.shmem" },
        { "environ", "modelRuntimeConfig.environ" },
        { "runtime", "modelRuntimeConfig.runtimeVariantId" },
        { "model_target", "modelMountConfig.mountDestination" },
        { "model", "modelMountConfig.vfolderId" },
        { "definition", "modelMountConfig.definitionPath" },
        { "mounts", "extraMounts" },
        { "cluster_size", "clusterConfig.size" },
        { "port", "modelDefinition.models[0].service.port" },
        { "command", "modelDefinition.models[0].service.startCommand" },
        { "health", "modelDefinition.models[0].service.healthCheck" },
    };

    backendai_input_rename(names, AQ_COUNT(names), err);
}

static void addition_end(struct addition *a, const struct backendai_payload *payload,
                         const struct aq_error *err)
{
    struct aq_error named;

    if (err) {
        named = *err;
        addition_rename(&named);
    }
    backendai_payload_done(a->call, payload, err ? &named : NULL);
}

/* core_done_fn */
static void addition_on_saved(void *data, int r, const struct aq_error *err)
{
    struct addition *a = data;
    const struct model_service *s = core_find_service_by_id(mutation_api(a->call)->core, &a->id);
    const struct model_service_revision *revision = s ? model_service_find_revision(s, a->number)
                                                      : NULL;
    struct revision_row *row = arena_alloc(a->call->arena, sizeof(*row));
    struct backendai_payload payload = { .object = row };
    struct aq_error wrong = { 0 };

    if (r == 0 && !revision)
        (void)aq_fail_kind(&wrong, ESTALE, "conflict", "the model service was ended meanwhile");
    else if (r == 0)
        (void)backendai_revision_fill(s, revision, a->call->arena, row, &wrong);
    addition_end(a, &payload, r < 0 ? err : wrong.code ? &wrong : NULL);
}

/* serving_deployed_fn */
static void addition_on_deployed(struct serving_deploy *deploy, const struct aq_error *err)
{
    struct addition *a = AQ_CONTAINER_OF(deploy, struct addition, deploy);
    const struct gql_context *context = a->call->context;
    const struct model_service *s = core_find_service_by_id(context->api->core, &a->id);
    struct aq_error gone = { 0 };
    struct model_service changed;

    if (!err && !s)
        (void)serving_view_set_unknown("", &gone);
    if (err || gone.code) {
        addition_end(a, NULL, err ? err : &gone);
        return;
    }
    a->number = s->last_number + 1;
    model_service_copy(&changed, s);
    serving_deploy_add_revision(&deploy->spec, NULL, &context->who->user_id, &changed);
    if (!a->activates)
        changed.goal = s->goal; /* if there is one: the first revision is deployed */
    core_change_service(context->api->core, &changed, NULL, mutation_who(a->call),
                        addition_on_saved, a);
    model_service_done(&changed);
}

/* ---- the body ---- */

static void addition_set(json_t *body, const char *member, const char *text)
{
    if (text && *text)
        (void)json_object_set_new(body, member, json_string(text));
}

/* "entries": [{NAME: .., VALUE: ..}] as an object. -EINVAL: a name twice. */
static int addition_read_entries(const json_t *list, const char *name, const char *value,
                                 const char *field, json_t **ret, struct aq_error *err)
{
    json_auto_t *object = json_object();
    const json_t *entry;
    size_t i;

    json_array_foreach(json_object_get(list, "entries"), i, entry) {
        const char *key = backendai_input_text(entry, name);

        if (json_object_get(object, key))
            return api_fail_param(err, field, "'%.64s' is there twice", key);
        (void)json_object_set(object, key, json_object_get(entry, value));
    }
    *ret = json_incref(object);
    return 0;
}

static int addition_read_resources(const json_t *input, json_t *body, struct aq_error *err)
{
    const json_t *config = json_object_get(input, "resourceConfig");
    json_t *slots = NULL;
    json_auto_t *opts = NULL;
    int r = addition_read_entries(json_object_get(config, "resourceSlots"), "resourceType",
                                  "quantity", "resources", &slots, err);

    if (r < 0)
        return r;
    (void)json_object_set_new(body, "resources", slots);
    if ((r = addition_read_entries(json_object_get(config, "resourceOpts"), "name", "value",
                                   "resourceConfig.resourceOpts", &opts, err))
        < 0)
        return r;
    addition_set(body, "shmem", backendai_input_text(opts, "shmem"));
    return 0;
}

static int addition_read_image(struct gql_call *call, const json_t *input, json_t *body,
                               struct aq_error *err)
{
    const char *id = backendai_input_text(json_object_get(input, "image"), "id");
    const struct image_row *image;
    struct gql_images images;

    gql_images_load(call, &images);
    if (!(image = gql_images_find_id(call, &images, id)))
        return api_fail_param(err, "image.id", "there is no image '%.64s'", id);
    addition_set(body, "image", image->reference);
    return 0;
}

static int addition_read_runtime(struct gql_call *call, const json_t *input, json_t *body,
                                 struct aq_error *err)
{
    const json_t *config = json_object_get(input, "modelRuntimeConfig");
    const struct serving_runtime *runtime;
    json_t *variables = NULL;
    struct uuid id;
    int r = backendai_input_uuid(call, config, "runtimeVariantId", &id, err);

    if (r < 0)
        return r;
    if (!(runtime = backendai_runtime_find(&id)))
        return api_fail_param(err, "runtime", "there is no runtime variant '%.64s'",
                              backendai_input_text(config, "runtimeVariantId"));
    addition_set(body, "runtime", runtime->name);
    if ((r = addition_read_entries(json_object_get(config, "environ"), "name", "value", "environ",
                                   &variables, err))
        == 0)
        (void)json_object_set_new(body, "environ", variables);
    return r;
}

/* "FOLDER:TARGET[:ro]" */
static int addition_read_mounts(struct gql_call *call, const json_t *input, json_t *body,
                                struct aq_error *err)
{
    json_t *list = json_array();
    const json_t *mount;
    size_t i;

    (void)json_object_set_new(body, "mounts", list);
    json_array_foreach(json_object_get(input, "extraMounts"), i, mount) {
        const char *target = backendai_input_text(mount, "mountDestination");
        const char *permission = backendai_input_text(mount, "mountPerm");
        bool is_read_only = permission && strcmp(permission, "READ_ONLY") == 0;
        AQ_CLEANUP(aq_freep) char *text = NULL;
        char id_text[UUID_TEXT_MAX];
        struct uuid id;
        int r = backendai_input_uuid(call, mount, "vfolderId", &id, err);

        if (r < 0)
            return r;
        if (target && strchr(target, ':'))
            return api_fail_param(err, "mounts",
                                  "the mountDestination '%.64s' must not have a colon", target);
        text = aq_format("%s%s%s%s", uuid_format(&id, id_text), target || is_read_only ? ":" : "",
                         target ? target : "", is_read_only ? ":ro" : "");
        (void)json_array_append_new(list, json_string(text));
    }
    return 0;
}

static int addition_read_model(struct gql_call *call, const json_t *input, json_t *body,
                               struct aq_error *err)
{
    const json_t *config = json_object_get(input, "modelMountConfig");
    char text[UUID_TEXT_MAX];
    struct uuid id;
    int r;

    if (!json_is_object(config))
        return 0;
    if ((r = backendai_input_uuid(call, config, "vfolderId", &id, err)) < 0)
        return r;
    addition_set(body, "model", uuid_format(&id, text));
    addition_set(body, "model_target", backendai_input_text(config, "mountDestination"));
    addition_set(body, "definition", backendai_input_text(config, "definitionPath"));
    return 0;
}

/* ---- how the model is served ---- */

static void addition_set_seconds(const json_t *from, const char *name, json_t *to,
                                 const char *member)
{
    const json_t *value = json_object_get(from, name);

    if (json_is_number(value))
        (void)json_object_set_new(to, member,
                                  json_integer((json_int_t)llround(json_number_value(value))));
}

/* A health check that is not enabled is a connection; what is said of how long it takes stays. */
static void addition_read_health(const json_t *check, json_t *body)
{
    json_t *health = json_object();

    if (!json_is_object(check) || json_is_false(json_object_get(check, "enable"))) {
        json_decref(health);
        return;
    }
    (void)json_object_set_new(body, "health", health);
    addition_set(health, "path", backendai_input_text(check, "path"));
    addition_set_seconds(check, "interval", health, "interval");
    addition_set_seconds(check, "maxWaitTime", health, "timeout");
    addition_set_seconds(check, "maxRetries", health, "retries");
    addition_set_seconds(check, "expectedStatusCode", health, "status");
    if (json_number_value(json_object_get(check, "initialDelay")) >= 1)
        addition_set_seconds(check, "initialDelay", body, "ready_timeout");
}

/* A line, or words that a shell is to read as they are. */
static int addition_read_command(const json_t *service, json_t *body, struct aq_error *err)
{
    const json_t *command = json_object_get(service, "startCommand"), *word;
    AQ_CLEANUP(strbuf_donep) struct strbuf line = STRBUF_INIT;
    size_t i;

    if (backendai_input_text(service, "command"))
        strbuf_adds(&line, backendai_input_text(service, "command"));
    else if (json_is_string(command))
        strbuf_adds(&line, json_string_value(command));
    else if (command && !json_is_null(command) && !json_is_array(command))
        return api_fail_param(err, "command", "must be a text or a list of texts");
    json_array_foreach((json_t *)(uintptr_t)command, i, word) {
        if (!json_is_string(word))
            return api_fail_param(err, "command", "must be a text or a list of texts");
        strbuf_adds(&line, line.len ? " " : "");
        if (command_is_plain(json_string_value(word)) || strchr(json_string_value(word), '{'))
            strbuf_adds(&line, json_string_value(word));
        else
            command_quote(json_string_value(word), &line);
    }
    addition_set(body, "command", line.data);
    return 0;
}

/* The actions as the script that runs first: as of a definition that has nothing else. */
static int addition_read_actions(struct gql_call *call, const json_t *actions, const char *path,
                                 json_t *body, struct aq_error *err)
{
    json_auto_t *tree = json_pack("{s:[{s:s, s:s, s:{s:O, s:i}}]}", "models", "name", "model",
                                  "model_path", path, "service", "pre_start_actions", actions,
                                  "port", 8000);
    AQ_CLEANUP(model_definition_freep) struct model_definition *definition = NULL;
    AQ_CLEANUP(aq_freep) char *text = json_dumps(tree, JSON_COMPACT);
    struct model_service_spec spec = { .port = 8000 };
    struct aq_error why = { 0 };

    if (model_definition_parse(text, strlen(text), &definition, &why) < 0
        || model_definition_apply(definition, &spec, call->arena, NULL, &why) < 0)
        return api_fail_param(err, "modelDefinition", "%s", why.text);
    addition_set(body, "bootstrap", spec.session.bootstrap);
    return 0;
}

static int addition_read_definition(struct gql_call *call, const json_t *input, json_t *body,
                                    struct aq_error *err)
{
    const json_t *models = json_object_get(json_object_get(input, "modelDefinition"), "models");
    const json_t *model = json_array_get(models, 0);
    const json_t *service = json_object_get(model, "service");
    const json_t *actions = json_object_get(service, "preStartActions");
    const char *target = backendai_input_text(body, "model_target");
    const char *path = backendai_input_text(model, "modelPath");
    int r;

    if (json_array_size(models) > 1)
        return api_fail_param(err, "modelDefinition.models", "has %zu models; one is served",
                              json_array_size(models));
    if (!json_is_object(service))
        return 0;
    if (json_is_integer(json_object_get(service, "port")))
        (void)json_object_set(body, "port", json_object_get(service, "port"));
    addition_read_health(json_object_get(service, "healthCheck"), body);
    if ((r = addition_read_command(service, body, err)) < 0 || !json_array_size(actions))
        return r;
    return addition_read_actions(call, actions,
                                 path     ? path
                                 : target ? target
                                          : SERVING_MODEL_TARGET,
                                 body, err);
}

static int addition_make_body(struct gql_call *call, const json_t *input, json_t *body,
                              struct aq_error *err)
{
    const json_t *cluster = json_object_get(input, "clusterConfig");
    const char *mode = backendai_input_text(cluster, "mode");
    int r;

    (void)json_object_set(body, "cluster_size", json_object_get(cluster, "size"));
    addition_set(body, "cluster_mode",
                 strcmp(mode, "MULTI_NODE") == 0 ? "multi-node" : "single-node");
    if ((r = addition_read_image(call, input, body, err)) < 0
        || (r = addition_read_resources(input, body, err)) < 0
        || (r = addition_read_runtime(call, input, body, err)) < 0
        || (r = addition_read_model(call, input, body, err)) < 0
        || (r = addition_read_mounts(call, input, body, err)) < 0)
        return r;
    return addition_read_definition(call, input, body, err);
}

static int addition_prepare(struct addition *a, const json_t *input, struct aq_error *err)
{
    const struct gql_context *context = a->call->context;
    struct arena *arena = request_get_arena(context->req);
    const json_t *options = json_object_get(input, "options");
    struct serving_deploy *d = &a->deploy;
    const struct model_service *s;
    json_auto_t *body = json_object();
    int r = backendai_input_check_frozen(a->call, err);

    if (r < 0)
        return r;
    if (!(s = backendai_input_service(a->call, input, "deploymentId", err)))
        return -err->code;
    a->id = s->id;
    a->activates = !json_is_false(json_object_get(options, "autoActivate"));
    d->api = context->api;
    d->req = context->req;
    d->done = addition_on_deployed;
    d->spec = (struct model_service_spec){ .priority = SERVING_PRIORITY_DEFAULT };
    if ((r = serving_deploy_take_owner(d, s, err)) < 0
        || (r = addition_make_body(a->call, input, body, err)) < 0
        || (r = decode_object(serving_revision_fields, body, arena, &a->params, err)) < 0)
        return r;
    return serving_params_apply_spec(&a->params, body, core_slot_types(context->api->core), arena,
                                     &d->spec, err);
}

static int revision_add(struct gql_call *call)
{
    struct addition *a = arena_alloc(call->arena, sizeof(*a));
    json_auto_t *input = backendai_input_read(call);
    struct aq_error err = { 0 };

    a->call = call;
    if (addition_prepare(a, input, &err) < 0) {
        addition_rename(&err);
        return mutation_fail(call, &err);
    }
    serving_deploy_start(&a->deploy);
    return GQL_LATER;
}

static const struct gql_entry backendai_revision_add_entries[] = {
    { SCHEMA_FIELD_Mutations_addModelRevision, GQL_CALL_COST(revision_add, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_AddRevisionPayload_revision, GQL_OBJECT_AT(struct backendai_payload, object) },
};
GQL_ENTRIES_END(backendai_revision_add);
