/* SPDX-License-Identifier: Apache-2.0 */
/* ModelRevision and RuntimeVariant: what replicas of model services are made from. Objects are struct
 * revision_row, and struct runtime_row of a runtime.
 */
#include <string.h>

#include "manager/call/graphql/node.h"
#include "manager/image/image.h"
#include "manager/serving/backendai_endpoint_list.h"
#include "manager/serving/backendai_endpoint_text.h"
#include "manager/serving/backendai_revision.h"
#include "manager/serving/serving_feature.h"

#define REVISIONS_USUAL 10
#define PAIRS_USUAL 5

/* ---- revisions of a service ---- */

#define IN_ROW(member) .offset = offsetof(struct revision_row, member)
static const struct filter_field revision_fields[] = {
    { "revision_number", "", FILTER_INT, IN_ROW(number) },
    { "created_at", "", FILTER_TIME, IN_ROW(created_usec) },
    { "cluster_mode", "", FILTER_STRING, IN_ROW(mode) },
    { "runtime_variant_name", "", FILTER_STRING, IN_ROW(runtime) },
    { "image_id", "", FILTER_UUID, IN_ROW(image_id_text) },
    { "model_vfolder_id", "", FILTER_UUID, IN_ROW(model_id_text) },
};

static const char *revision_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct revision_row *)row)->id_text;
}

const struct gql_node backendai_revision_node = { .type = SCHEMA_TYPE_ModelRevision,
                                                  .id_of = revision_id_of,
                                                  .fields = revision_fields,
                                                  .field_count = AQ_COUNT(revision_fields) };

static const struct core *revision_core(const struct gql_call *call)
{
    return ((const struct gql_context *)call->context)->api->core;
}

/* Null if the service has ended, or keeps none of that number. */
static struct gql_value revision_load(const struct gql_call *call, const struct uuid *service_id,
                                      int64_t number)
{
    const struct model_service *s = core_find_service_by_id(revision_core(call), service_id);
    const struct model_service_revision *revision = s ? model_service_find_revision(s, number)
                                                      : NULL;
    struct revision_row *row;
    struct aq_error err;

    if (!revision)
        return gql_null();
    row = arena_alloc(call->arena, sizeof(*row));
    if (backendai_revision_fill(s, revision, call->arena, row, &err) < 0)
        return gql_error(call->arena, "%s", err.text);
    return gql_object(row);
}

static int revision_get_current(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct endpoint_row *row = call->parents[i];

        call->results[i] = revision_load(call, &row->id, row->current);
    }
    return GQL_DONE;
}

static int revision_get_deploying(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct endpoint_row *row = call->parents[i];

        call->results[i] = revision_load(call, &row->id, row->deploying);
    }
    return GQL_DONE;
}

static int revision_get_of_replica(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct endpoint_route *route = call->parents[i];

        call->results[i] = revision_load(call, &route->endpoint_id, route->revision);
    }
    return GQL_DONE;
}

/* The newest first. */
static struct gql_value revision_connect(struct gql_call *call, const struct model_service *s)
{
    struct revision_row *rows = arena_array(call->arena, s->revision_count + 1, sizeof(*rows));
    uint32_t count = 0;
    struct aq_error err;

    for (size_t i = s->revision_count; i-- > 0 && !arena_is_over(call->arena);)
        if (backendai_revision_fill(s, &s->revisions[i], call->arena, &rows[count++], &err) < 0)
            return gql_error(call->arena, "%s", err.text);
    return gql_node_connect(call, &backendai_revision_node, rows, sizeof(*rows), count);
}

static int revision_list(struct gql_call *call)
{
    static const struct model_service none = { .name = "" };

    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct endpoint_row *row = call->parents[i];
        const struct model_service *s = core_find_service_by_id(revision_core(call), &row->id);

        call->results[i] = revision_connect(call, s ? s : &none);
    }
    return GQL_DONE;
}

static int revision_get_service(struct gql_call *call)
{
    const struct api *api = ((const struct gql_context *)call->context)->api;

    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct revision_row *row = call->parents[i];
        const struct model_service *s = core_find_service_by_id(api->core, &row->service_id);
        struct endpoint_row *service;

        if (!s)
            continue;
        service = arena_alloc(call->arena, sizeof(*service));
        endpoint_fill(api, s, call->arena, service);
        call->results[i] = gql_object(service);
    }
    return GQL_DONE;
}

/* ---- what one has ---- */

static int revision_get_images(struct gql_call *call)
{
    struct gql_images images;

    gql_images_load(call, &images);
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++) {
        const struct revision_row *row = call->parents[i];

        call->results[i] = gql_object(gql_images_find(call, &images, row->asked.session.image));
    }
    return GQL_DONE;
}

static const struct uuid *revision_model_of(const void *parent)
{
    return &((const struct revision_row *)parent)->model_id;
}

static int revision_get_model(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_VirtualFolderNode), revision_model_of);
}

static const struct uuid *revision_folder_of(const void *parent)
{
    return &((const struct endpoint_folder *)parent)->id;
}

static int revision_get_folder(struct gql_call *call)
{
    return gql_node_load(call, gql_node_find(SCHEMA_TYPE_VirtualFolderNode), revision_folder_of);
}

static struct gql_value revision_get_folders(struct gql_get *get, const void *parent)
{
    const struct revision_row *row = parent;

    return gql_rows_of(get->arena, row->folders, row->folder_count, sizeof(*row->folders));
}

static struct gql_value revision_get_permission(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_enum(!((const struct endpoint_folder *)parent)->is_read_only);
}

static struct gql_value revision_get_mode(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_enum(((const struct revision_row *)parent)->asked.is_multi_node);
}

static struct gql_value revision_list_pairs(struct arena *arena, const struct pair_list *pairs)
{
    return gql_rows_of(arena, pairs->items, (uint32_t)pairs->count, sizeof(*pairs->items));
}

static struct gql_value revision_get_slots(struct gql_get *get, const void *parent)
{
    return revision_list_pairs(get->arena, &((const struct revision_row *)parent)->asked.resources);
}

static struct gql_value revision_get_environ(struct gql_get *get, const void *parent)
{
    const struct revision_row *row = parent;

    return revision_list_pairs(get->arena, &row->asked.session.environ);
}

static struct gql_value revision_get_opts(struct gql_get *get, const void *parent)
{
    const char *shmem = ((const struct revision_row *)parent)->asked.session.shmem;
    struct text_pair *pair = arena_alloc(get->arena, sizeof(*pair));

    *pair = (struct text_pair){ "shmem", shmem };
    return gql_rows_of(get->arena, pair, shmem != NULL, sizeof(*pair));
}

/* The row itself, unless the model is in the image. */
static struct gql_value revision_get_mount(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_object(uuid_is_nil(revision_model_of(parent)) ? NULL : parent);
}

static struct gql_value revision_get_models(struct gql_get *get, const void *parent)
{
    return gql_rows_of(get->arena, parent, 1, sizeof(struct revision_row));
}

static struct gql_value revision_get_health(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_object(((const struct revision_row *)parent)->health_path ? parent : NULL);
}

static struct gql_value revision_get_seconds(struct gql_get *get, const void *parent)
{
    return gql_float(*(const double *)(const void *)((const char *)parent + get->offset));
}

/* ---- runtimes ---- */

struct runtime_row {
    struct uuid id;
    const char *name;
    bool reads_folder;
};

static const struct filter_field runtime_fields[] = {
    { "name", "", FILTER_STRING, .offset = offsetof(struct runtime_row, name) },
};

static const char *revision_runtime_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct runtime_row *)row)->id, scratch);
}

const struct gql_node backendai_runtime_node = { .type = SCHEMA_TYPE_RuntimeVariant,
                                                 .id_of = revision_runtime_id_of,
                                                 .fields = runtime_fields,
                                                 .field_count = AQ_COUNT(runtime_fields) };

static void revision_runtime_fill(const char *name, struct runtime_row *ret)
{
    *ret = (struct runtime_row){ .id = backendai_runtime_id(name),
                                 .name = name,
                                 .reads_folder = strcmp(name, SERVING_RUNTIME_DEFAULT) == 0 };
}

static int revision_runtime_list(struct gql_call *call)
{
    struct runtime_row *rows;
    uint32_t count = 0;

    while (serving_runtimes[count].name)
        count++;
    rows = arena_array(call->arena, count + 1, sizeof(*rows));
    for (uint32_t i = 0; i < count; i++)
        revision_runtime_fill(serving_runtimes[i].name, &rows[i]);
    call->results[0] = gql_node_connect(call, &backendai_runtime_node, rows, sizeof(*rows), count);
    return GQL_DONE;
}

static int revision_runtime_get(struct gql_call *call)
{
    const struct serving_runtime *runtime;
    const struct uuid *id;
    struct runtime_row *row;
    struct aq_error err = { 0 };

    if (endpoint_arg_uuid(call, "id", &id, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    if ((runtime = backendai_runtime_find(id))) {
        row = arena_alloc(call->arena, sizeof(*row));
        revision_runtime_fill(runtime->name, row);
        call->results[0] = gql_object(row);
    }
    return GQL_DONE;
}

static struct gql_value revision_runtime_get_of_revision(struct gql_get *get, const void *parent)
{
    struct runtime_row *row = arena_alloc(get->arena, sizeof(*row));

    revision_runtime_fill(((const struct revision_row *)parent)->runtime, row);
    return gql_object(row);
}

static struct gql_value revision_runtime_get_id_of_revision(struct gql_get *get, const void *parent)
{
    struct uuid id = backendai_runtime_id(((const struct revision_row *)parent)->runtime);
    char text[UUID_TEXT_MAX];

    return gql_copy(get, uuid_format(&id, text));
}

/* ---- fields ---- */

#define OF(type, name) SCHEMA_FIELD_##type##_##name
#define REVISION(name) OF(ModelRevision, name)
#define TEXT(member) GQL_TEXT_AT(struct revision_row, member)
#define COUNT(member) GQL_COUNT_AT(struct revision_row, member)
/* clang-format off */
#define PAIRS(fn) { .how = GQL_HOW_GET, .rows = PAIRS_USUAL, .get = (fn) }
#define SECONDS(member)                                                                            \
    { .how = GQL_HOW_GET, .offset = (uint32_t)offsetof(struct revision_row, member),               \
      .get = revision_get_seconds }
/* clang-format on */
#define PAIR_NAME GQL_TEXT_AT(struct text_pair, key)
#define PAIR_VALUE GQL_TEXT_AT(struct text_pair, value)
#define FOLDER_COST (GQL_COST_READ / 10)

static const struct gql_entry backendai_revision_entries[] = {
    { OF(Queries, runtimeVariants),
      GQL_CALL_SHORT(revision_runtime_list, GQL_COST_MADE, GQL_ROWS_WHOLE) },
    { OF(Queries, runtimeVariant), GQL_CALL(revision_runtime_get) },
    { OF(ModelDeployment, currentRevision), GQL_CALL_COST(revision_get_current, GQL_COST_MADE, 1) },
    { OF(ModelDeployment, deployingRevision),
      GQL_CALL_COST(revision_get_deploying, GQL_COST_MADE, 1) },
    { OF(ModelDeployment, revisionHistory),
      GQL_CALL_SHORT(revision_list, GQL_COST_READ, REVISIONS_USUAL) },
    { OF(ModelReplica, revision), GQL_CALL_COST(revision_get_of_replica, GQL_COST_MADE, 1) },
    { REVISION(id), GQL_GET(gql_node_get_id) },
    { REVISION(revisionNumber), COUNT(number) },
    { REVISION(createdAt), GQL_TIME_AT(struct revision_row, created_usec) },
    { REVISION(revisionPresetId), GQL_ALWAYS_NULL },
    { REVISION(clusterConfig), GQL_SELF },
    { REVISION(resourceConfig), GQL_SELF },
    { REVISION(resourceSlots), PAIRS(revision_get_slots) },
    { REVISION(modelRuntimeConfig), GQL_SELF },
    { REVISION(modelMountConfig), GQL_GET(revision_get_mount) },
    { REVISION(extraMounts), PAIRS(revision_get_folders) },
    { REVISION(imageV2), GQL_CALL_COST(revision_get_images, GQL_COST_WALK / GQL_ROWS_WHOLE, 1) },
    { REVISION(modelDefinition), GQL_SELF },
    { REVISION(deployment), GQL_CALL_COST(revision_get_service, GQL_COST_READ, 1) },
    { OF(ClusterConfig, mode), GQL_GET(revision_get_mode) },
    { OF(ClusterConfig, size), COUNT(cluster_size) },
    { OF(ResourceConfig, resourceOpts), GQL_SELF },
    { OF(ResourceOpts, entries), PAIRS(revision_get_opts) },
    { OF(ResourceOptsEntry, name), PAIR_NAME },
    { OF(ResourceOptsEntry, value), PAIR_VALUE },
    { OF(AllocatedResourceSlot, slotName), PAIR_NAME },
    { OF(AllocatedResourceSlot, quantity), PAIR_VALUE },
    { OF(ModelRuntimeConfig, runtimeVariantId), GQL_GET(revision_runtime_get_id_of_revision) },
    { OF(ModelRuntimeConfig, runtimeVariant), GQL_GET(revision_runtime_get_of_revision) },
    { OF(ModelRuntimeConfig, inferenceRuntimeConfig), GQL_ALWAYS_NULL },
    { OF(ModelRuntimeConfig, environ), GQL_SELF },
    { OF(ModelRuntimeConfig, runtimeVariantPresetValues), GQL_FIXED_EMPTY },
    { OF(EnvironmentVariables, entries), PAIRS(revision_get_environ) },
    { OF(EnvironmentVariableEntry, name), PAIR_NAME },
    { OF(EnvironmentVariableEntry, value), PAIR_VALUE },
    { OF(RuntimeVariantPresetValue, presetId), GQL_ALWAYS_NULL },
    { OF(RuntimeVariantPresetValue, value), GQL_ALWAYS_NULL },
    { OF(RuntimeVariantPresetValue, preset), GQL_ALWAYS_NULL },
    { OF(RuntimeVariantPreset, id), GQL_ALWAYS_NULL },
    { OF(RuntimeVariantPreset, name), GQL_ALWAYS_NULL },
    { OF(RuntimeVariantPreset, displayName), GQL_ALWAYS_NULL },
    { OF(RuntimeVariantPreset, targetSpec), GQL_ALWAYS_NULL },
    { OF(PresetTargetSpec, key), GQL_ALWAYS_NULL },
    { OF(RuntimeVariant, id), GQL_GET(gql_node_get_id) },
    { OF(RuntimeVariant, name), GQL_TEXT_AT(struct runtime_row, name) },
    { OF(RuntimeVariant, readsVfolderConfigFiles), GQL_BOOL_AT(struct runtime_row, reads_folder) },
    NODE_CONNECTION(RuntimeVariant),
    { OF(ModelMountConfig, vfolderId), GQL_UUID_AT(struct revision_row, model_id) },
    { OF(ModelMountConfig, mountDestination), TEXT(target) },
    { OF(ModelMountConfig, definitionPath), TEXT(asked.definition_path) },
    { OF(ModelMountConfig, subpath), GQL_ALWAYS_NULL },
    { OF(ModelMountConfig, vfolder), GQL_CALL_COST(revision_get_model, FOLDER_COST, 1) },
    { OF(ExtraVFolderMountInfo, vfolderId), GQL_UUID_AT(struct endpoint_folder, id) },
    { OF(ExtraVFolderMountInfo, mountDestination),
      ENDPOINT_TEXT_AT(struct endpoint_folder, target) },
    { OF(ExtraVFolderMountInfo, mountPerm), GQL_GET(revision_get_permission) },
    { OF(ExtraVFolderMountInfo, vfolder), GQL_CALL_COST(revision_get_folder, FOLDER_COST, 1) },
    { OF(ModelDefinition, models), { .how = GQL_HOW_GET, .rows = 1, .get = revision_get_models } },
    { OF(ModelConfig, name), TEXT(title) },
    { OF(ModelConfig, modelPath), TEXT(target) },
    { OF(ModelConfig, service), GQL_SELF },
    { OF(ModelConfig, metadata), GQL_ALWAYS_NULL },
    { OF(ModelMetadata, version), GQL_ALWAYS_NULL },
    { OF(ModelServiceConfig, command), TEXT(asked.session.command) },
    { OF(ModelServiceConfig, startCommand), TEXT(asked.session.command) },
    { OF(ModelServiceConfig, shell), GQL_ALWAYS_NULL },
    { OF(ModelServiceConfig, port), COUNT(port) },
    { OF(ModelServiceConfig, preStartActions), GQL_FIXED_EMPTY },
    { OF(PreStartAction, action), GQL_ALWAYS_NULL },
    { OF(PreStartAction, args), GQL_ALWAYS_NULL },
    { OF(ModelServiceConfig, healthCheck), GQL_GET(revision_get_health) },
    { OF(ModelHealthCheck, enable), GQL_FIXED_BOOL(true) },
    { OF(ModelHealthCheck, path), TEXT(health_path) },
    { OF(ModelHealthCheck, interval), SECONDS(health_interval_sec) },
    { OF(ModelHealthCheck, maxRetries), COUNT(health_retries) },
    { OF(ModelHealthCheck, maxWaitTime), SECONDS(health_timeout_sec) },
    { OF(ModelHealthCheck, expectedStatusCode), COUNT(health_status) },
    { OF(ModelHealthCheck, initialDelay), SECONDS(ready_sec) },
    NODE_CONNECTION(ModelRevision),
};
GQL_ENTRIES_END(backendai_revision);
