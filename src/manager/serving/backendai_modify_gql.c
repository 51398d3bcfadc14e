/* SPDX-License-Identifier: Apache-2.0 */
/* modify_endpoint: settings of a model service, and what its replicas are made from, which is a new
 * revision.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graphql/relay.h"
#include "manager/call/graphql/mutation.h"
#include "manager/call/graphql/newer.h"
#include "manager/serving/backendai_endpoint.h"
#include "manager/serving/backendai_input.h"
#include "manager/serving/backendai_params.h"
#include "manager/serving/serving_deploy.h"
#include "manager/serving/serving_feature.h"
#include "manager/serving/serving_params.h"
#include "model/folder_mount.h"
#include "model/resource_opts.h"

/* In the request's arena. */
struct modify {
    struct gql_call *call;
    struct uuid id;
    struct serving_params params;
    json_t *given; /* names of the members that are in params */
    bool has_revision;
    int64_t goal; /* that the revision begins from */
    struct serving_deploy deploy;
};

static struct gql_context *modify_context(const struct modify *m)
{
    return m->call->context;
}

/* By the names that these clients know. */
static int modify_refuse(struct gql_call *call, const struct aq_error *err)
{
    static const char *const names[][2] = {
        { "resources", "resource_slots" }, { "definition", "model_definition_path" },
        { "runtime", "runtime_variant" },  { "scaling_group", "resource_group" },
        { "mounts", "extra_mounts" },      { "shmem", "resource_opts.shmem" }
    };
    struct aq_error named = *err;

    backendai_input_rename(names, AQ_COUNT(names), &named);
    return mutation_refuse(call, &named);
}

static void modify_end(struct modify *m, const struct aq_error *err)
{
    (void)modify_refuse(m->call, err);
    gql_call_done(m->call);
}

static void modify_on_saved(void *data, int r, const struct aq_error *err)
{
    struct modify *m = data;
    const struct api *api = modify_context(m)->api;
    const struct model_service *s = core_find_service_by_id(api->core, &m->id);
    struct endpoint_row *row = NULL;

    if (r < 0) {
        modify_end(m, err);
        return;
    }
    if (s) {
        row = arena_alloc(m->call->arena, sizeof(*row));
        endpoint_fill(api, s, m->call->arena, row);
    }
    (void)mutation_succeed(m->call, row);
    gql_call_done(m->call);
}

/* ---- the service ---- */

static int modify_check_count(const struct modify *m, const char *name, struct aq_error *err)
{
    struct gql_value count = mutation_prop(m->call, name);

    if (!gql_is_given(count) || (count.integer >= 0 && count.integer <= MODEL_SERVICE_REPLICAS_MAX))
        return 0;
    return api_fail_param(err, name, "%" PRId64 " is not within 0..%d", count.integer,
                          MODEL_SERVICE_REPLICAS_MAX);
}

static int modify_apply_settings(const struct modify *m, struct model_service *s,
                                 struct aq_error *err)
{
    struct gql_value group = mutation_prop(m->call, "resource_group");
    struct gql_value is_public = mutation_prop(m->call, "open_to_public");
    struct gql_value count = mutation_prop(m->call, "replicas");
    struct gql_value name = mutation_prop(m->call, "name");

    if (modify_check_count(m, "replicas", err) < 0
        || modify_check_count(m, "desired_session_count", err) < 0)
        return -EINVAL;
    if (!gql_is_given(count))
        count = mutation_prop(m->call, "desired_session_count");
    if (gql_is_given(name) && strcmp(name.text, s->name) != 0)
        return api_fail_param(
            err, "name", "is '%s' and cannot be changed; create another model service", s->name);
    if (gql_is_given(count))
        endpoint_set_replicas(s, count.integer);
    if (gql_is_given(is_public))
        s->is_public = is_public.boolean;
    if (gql_is_given(group) && *group.text
        && !core_find_resource_group(modify_context(m)->api->core, group.text))
        return api_fail_param(err, "resource_group", "there is no resource group '%.64s'",
                              group.text);
    if (gql_is_given(group)) {
        free(s->resource_group);
        s->resource_group = *group.text ? aq_strdup(group.text) : NULL;
    }
    return 0;
}

static void modify_save(struct modify *m)
{
    const struct gql_context *context = modify_context(m);
    const struct model_service *s = core_find_service_by_id(context->api->core, &m->id);
    struct model_service changed;
    struct aq_error err = { 0 };

    if (!s) {
        (void)serving_view_set_unknown("", &err);
        modify_end(m, &err);
        return;
    }
    if (m->has_revision && serving_deploy_check_goal(s, m->goal, &err) < 0) {
        modify_end(m, &err);
        return;
    }
    model_service_copy(&changed, s);
    if (m->has_revision)
        serving_deploy_add_revision(&m->deploy.spec, NULL, &context->who->user_id, &changed);
    if (modify_apply_settings(m, &changed, &err) < 0)
        modify_end(m, &err);
    else
        core_change_service(context->api->core, &changed, NULL, mutation_who(m->call),
                            modify_on_saved, m);
    model_service_done(&changed);
}

/* serving_deployed_fn */
static void modify_on_deployed(struct serving_deploy *deploy, const struct aq_error *err)
{
    struct modify *m = AQ_CONTAINER_OF(deploy, struct modify, deploy);

    if (err)
        modify_end(m, err);
    else
        modify_save(m);
}

/* ---- the revision ---- */

static void modify_note(struct modify *m, const char *member)
{
    (void)json_object_set_new(m->given, member, json_true());
    m->has_revision = true;
}

/* A member that is JSON in a text: an object; *ret is NULL if it was not given. */
static int modify_read_object(const struct modify *m, const char *name, json_t **ret,
                              struct aq_error *err)
{
    struct gql_value value = mutation_prop(m->call, name);

    *ret = NULL;
    if (!gql_is_given(value))
        return 0;
    if (decode_json(value.text, strlen(value.text), ret, err) < 0 || !json_is_object(*ret)) {
        json_decref(AQ_TAKE(*ret));
        return api_fail_param(err, name, "must be the text of a JSON object");
    }
    return 0;
}

static int modify_read_environ(struct modify *m, struct aq_error *err)
{
    static const struct field fields[] = {
        { "environ", FIELD_PAIRS, 0, offsetof(struct serving_params, spec.session.environ), 0,
          SESSION_VARIABLES_MAX },
        FIELD_END,
    };
    json_auto_t *object = NULL, *outer = json_object();
    int r = modify_read_object(m, "environ", &object, err);

    if (r < 0 || !object)
        return r;
    (void)json_object_set(outer, "environ", object);
    modify_note(m, "environ");
    return decode_object(fields, outer, m->call->arena, &m->params, err);
}

static int modify_read_opts(struct modify *m, struct aq_error *err)
{
    json_auto_t *object = NULL;
    int r = modify_read_object(m, "resource_opts", &object, err);
    const json_t *shmem = json_object_get(object, "shmem");
    const json_t *splitting = json_object_get(object, RESOURCE_OPTS_SPLITTING);
    char text[32];

    if (r < 0 || !object)
        return r;
    if (json_is_integer(shmem)) {
        (void)snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, json_integer_value(shmem));
        m->params.spec.session.shmem = arena_strdup(m->call->arena, text);
    } else if (json_is_string(shmem)) {
        m->params.spec.session.shmem = arena_strdup(m->call->arena, json_string_value(shmem));
    } else if (shmem && !json_is_null(shmem)) {
        return api_fail_param(err, "resource_opts.shmem", "must be a size such as 64m");
    }
    if (shmem)
        modify_note(m, "shmem");
    if (json_is_boolean(splitting)) {
        m->params.spec.session.splitting = json_is_true(splitting) ? SPLITTING_ALLOWED
                                                                   : SPLITTING_FORBIDDEN;
        modify_note(m, "splitting");
    }
    return 0;
}

static int modify_read_mounts(struct modify *m, struct aq_error *err)
{
    static const char *const names[] = { "mount_destination", "type", "permission" };
    struct gql_value list = mutation_prop(m->call, "extra_mounts");
    const struct gql_type *type;
    struct str_list *mounts = &m->params.spec.mounts;
    int r = 0;

    if (!gql_is_given(list))
        return 0;
    if (list.count > FOLDER_MOUNTS_MAX)
        return api_fail_param(err, "extra_mounts", "has %u folders; %d are allowed", list.count,
                              FOLDER_MOUNTS_MAX);
    type = gql_input_find(m->call->field->args[1].type.type->inputs,
                          m->call->field->args[1].type.type->input_count, "extra_mounts", 12)
               ->type.type;
    mounts->items = arena_array(m->call->arena, list.count + 1, sizeof(char *));
    for (uint32_t i = 0; r == 0 && i < list.count; i++) {
        json_auto_t *options = json_object();
        const char *folder = "";

        for (uint32_t k = 0; gql_is_given(list.items[i]) && k < type->input_count; k++) {
            struct gql_value value = list.items[i].items[k];

            if (!gql_is_given(value))
                continue;
            if (strcmp(type->inputs[k].name, "vfolder_id") == 0)
                folder = value.text;
            for (size_t n = 0; n < AQ_COUNT(names); n++)
                if (strcmp(type->inputs[k].name, names[n]) == 0)
                    (void)json_object_set_new(options, names[n], json_string(value.text));
        }
        r = backendai_mount_read(folder, options, "extra_mounts", m->call->arena,
                                 &mounts->items[mounts->count++], err);
    }
    modify_note(m, "mounts");
    return r;
}

/* REGISTRY/NAME as one reference; "name" may be whole already. */
static int modify_read_image(struct modify *m, struct aq_error *err)
{
    static const char *const names[] = { "name", "registry", "architecture" };
    const struct gql_type *props = m->call->field->args[1].type.type;
    struct gql_value image = mutation_prop(m->call, "image");
    const struct gql_type *type =
        gql_input_find(props->inputs, props->input_count, "image", 5)->type.type;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *parts[AQ_COUNT(names)] = { NULL };

    if (!gql_is_given(image))
        return 0;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        struct gql_value part =
            image.items[gql_input_find(type->inputs, type->input_count, names[i], strlen(names[i]))
                        - type->inputs];

        parts[i] = gql_is_given(part) && *part.text ? part.text : NULL;
    }
    if (!parts[0])
        return api_fail_param(err, "image.name", "must not be empty");
    if (parts[1] && strncmp(parts[0], parts[1], strlen(parts[1])) != 0)
        strbuf_addf(&text, "%s/", parts[1]);
    strbuf_adds(&text, parts[0]);
    m->params.spec.session.image = arena_strdup(m->call->arena, text.data);
    modify_note(m, "image");
    if (parts[2]) {
        m->params.spec.session.architecture = parts[2];
        modify_note(m, "architecture");
    }
    return 0;
}

static int modify_read_texts(struct modify *m, struct aq_error *err)
{
    struct gql_value mode = mutation_prop(m->call, "cluster_mode");
    struct gql_value size = mutation_prop(m->call, "cluster_size");
    struct gql_value path = mutation_prop(m->call, "model_definition_path");
    struct gql_value runtime = mutation_prop(m->call, "runtime_variant");
    char word[32];

    if (gql_is_given(mode)) {
        newer_lower_word(mode.text, word, sizeof(word)); /* some send SINGLE_NODE */
        m->params.spec.is_multi_node = strcmp(word, "multi-node") == 0;
        if (!m->params.spec.is_multi_node && strcmp(word, "single-node") != 0)
            return api_fail_param(err, "cluster_mode",
                                  "'%.40s' is neither single-node nor multi-node", mode.text);
        modify_note(m, "cluster_mode");
    }
    if (gql_is_given(size)) {
        if (size.integer < 1 || size.integer > 1000)
            return api_fail_param(err, "cluster_size", "%" PRId64 " is not within 1..1000",
                                  size.integer);
        m->params.spec.cluster_size = size.integer;
        modify_note(m, "cluster_size");
    }
    if (gql_is_given(path)) {
        m->params.spec.definition_path = *path.text ? path.text : NULL;
        modify_note(m, "definition");
    }
    if (gql_is_given(runtime)) {
        m->params.spec.runtime = *runtime.text ? runtime.text : NULL;
        modify_note(m, "runtime");
    }
    return 0;
}

/* The revision that is the goal, with what is given. */
static int modify_read_revision(struct modify *m, const struct model_service *s,
                                struct aq_error *err)
{
    const struct core *core = modify_context(m)->api->core;
    json_auto_t *resources = NULL;
    int r;

    if ((r = modify_read_texts(m, err)) < 0 || (r = modify_read_image(m, err)) < 0
        || (r = modify_read_mounts(m, err)) < 0 || (r = modify_read_environ(m, err)) < 0
        || (r = modify_read_opts(m, err)) < 0
        || (r = modify_read_object(m, "resource_slots", &resources, err)) < 0)
        return r;
    if (resources) {
        m->params.resources = resources;
        modify_note(m, "resources");
    }
    if (!m->has_revision)
        return 0;
    if ((r = serving_deploy_take_owner(&m->deploy, s, err)) < 0
        || (r = serving_deploy_read_goal(s, m->call->arena, &m->deploy.spec, err)) < 0)
        return r;
    return serving_params_apply_spec(&m->params, m->given, core_slot_types(core), m->call->arena,
                                     &m->deploy.spec, err);
}

static int modify_endpoint(struct gql_call *call)
{
    struct gql_context *context = call->context;
    struct modify *m = arena_alloc(call->arena, sizeof(*m));
    const char *type, *id = relay_global_id_parse(call->arena, gql_arg_text(call, 0), &type);
    const struct model_service *s = core_find_service(context->api->core, id);
    struct aq_error err = { 0 };
    int r;

    if (context->api->is_frozen)
        return mutation_finish(call, false, "the manager is frozen by an administrator; try later",
                               NULL);
    if (!s || !serving_view_may(context->req, s)) {
        (void)serving_view_set_unknown(id, &err);
        return mutation_refuse(call, &err);
    }
    m->call = call;
    m->id = s->id;
    m->goal = s->goal;
    m->deploy.api = context->api;
    m->deploy.req = context->req;
    m->deploy.done = modify_on_deployed;
    m->given = json_object();
    r = modify_read_revision(m, s, &err);
    json_decref(AQ_TAKE(m->given));
    if (r < 0)
        return modify_refuse(call, &err);
    if (m->has_revision)
        serving_deploy_start(&m->deploy);
    else
        modify_save(m);
    return GQL_LATER;
}

static const struct gql_entry backendai_modify_entries[] = {
    { SCHEMA_FIELD_Mutations_modify_endpoint, GQL_CALL_COST(modify_endpoint, GQL_COST_WRITE, 1) },
    MUTATION_RESULT(ModifyEndpoint),
    { SCHEMA_FIELD_ModifyEndpoint_endpoint, GQL_OBJECT_AT(struct mutation_result, object) },
};
GQL_ENTRIES_END(backendai_modify);
