/* SPDX-License-Identifier: Apache-2.0 */
/* backendai_params.c - see backendai_params.h */
#include "manager/serving/backendai_params.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "model/folder_mount.h"
#include "model/resource_opts.h"

struct backendai_service_params {
    struct serving_params common;
    int64_t replicas;
    const json_t *mounts;
};

#define AT(member) offsetof(struct backendai_service_params, member)
#define SPEC(member) AT(common.spec.member)

static const struct field opts_fields[] = {
    { "shmem", FIELD_SCALAR, FIELD_NULLABLE, SPEC(session.shmem), 1, 64,
      .doc = "shared memory, of what is asked for as mem" },
    { RESOURCE_OPTS_SPLITTING, FIELD_MAYBE, FIELD_NULLABLE, SPEC(session.splitting),
      .doc = "whether an amount of devices may be split where it does not fit on one" },
    FIELD_END,
};

static const struct field config_fields[] = {
    { "model", FIELD_STR, FIELD_NULLABLE, SPEC(model), 1, 128,
      .doc = "folder with the model, by name or id; null: it is in the image" },
    { "model_version|modelVersion", FIELD_IGNORED },
    { "model_mount_destination|modelMountDestination|model_mount_destiation|modelMountDestiation",
      FIELD_STR, FIELD_NULLABLE, SPEC(model_target), 0, 1024, .doc = "default /models" },
    { "model_definition_path|modelDefinitionPath", FIELD_STR, FIELD_NULLABLE, SPEC(definition_path),
      0, 1024, .doc = "file in the folder; default model-definition.yaml" },
    { "vfolder_subpath|vfolderSubpath", FIELD_UNSUPPORTED },
    { "extra_mounts|extraMounts", FIELD_OBJECT, FIELD_NULLABLE, AT(mounts),
      .doc = "further folders: {ID: {\"mount_destination\", \"permission\", \"subpath\"}}" },
    { "environ", FIELD_PAIRS, FIELD_NULLABLE, SPEC(session.environ), 0, SESSION_VARIABLES_MAX },
    { "scaling_group|scalingGroup", FIELD_STR, FIELD_NULLABLE, AT(common.resource_group), 1, 64,
      .doc = "resource group; default: the first one allowed" },
    { "resources", FIELD_OBJECT, FIELD_NULLABLE, AT(common.resources),
      .doc = "of each kernel, e.g. {\"cpu\": \"1\", \"mem\": \"1g\"}" },
    { "resource_opts|resourceOpts", FIELD_STRUCT, FIELD_NULLABLE, .sub = opts_fields },
    FIELD_END,
};

const struct field backendai_service_fields[] = {
    { "name|service_name|serviceName|clientSessionToken", FIELD_STR, FIELD_REQUIRED,
      AT(common.name), MODEL_SERVICE_NAME_MIN, MODEL_SERVICE_NAME_MAX },
    { "replicas|desired_session_count|desiredSessionCount", FIELD_INT, FIELD_NULLABLE, AT(replicas),
      0, MODEL_SERVICE_REPLICAS_MAX, .doc = "default 1" },
    { "image|lang", FIELD_STR, FIELD_REQUIRED, SPEC(session.image), 1, 512 },
    { "architecture|arch", FIELD_STR, FIELD_NULLABLE, SPEC(session.architecture), 1, 32 },
    { "group|group_name|groupName|project", FIELD_STR, FIELD_NULLABLE, AT(common.group), 1, 64,
      .doc = "project; default: \"default\", or the only one" },
    { "domain|domain_name|domainName", FIELD_STR, FIELD_NULLABLE, AT(common.domain), 1, 64,
      .doc = "default: the owner's" },
    { "cluster_size|clusterSize", FIELD_INT, FIELD_NULLABLE, SPEC(cluster_size), 1, 1000 },
    { "cluster_mode|clusterMode", FIELD_WORD, FIELD_NULLABLE, SPEC(is_multi_node),
      .words = "single-node|multi-node" },
    { "tag", FIELD_STR, FIELD_NULLABLE | FIELD_LINE, AT(common.tag), 0, 64 },
    { "startup_command|startupCommand", FIELD_STR, FIELD_NULLABLE, SPEC(session.command), 0,
      SESSION_COMMAND_MAX },
    { "bootstrap_script|bootstrapScript", FIELD_STR, FIELD_NULLABLE, SPEC(session.bootstrap), 0,
      SESSION_BOOTSTRAP_MAX, .doc = "shell text that is run before the command" },
    { "callback_url|callbackUrl|callbackURL", FIELD_UNSUPPORTED },
    { "owner_access_key|ownerAccessKey|owner", FIELD_STR, FIELD_NULLABLE,
      AT(common.owner_access_key), 1, 64, .doc = "act for this key; administrators" },
    { "open_to_public|openToPublic", FIELD_MAYBE, FIELD_NULLABLE, AT(common.is_public),
      .doc = "requests need no token" },
    { "runtime_variant|runtimeVariant", FIELD_STR, FIELD_NULLABLE, SPEC(runtime), 0, 64,
      .doc = "inference server, as GET /services/_/runtimes lists; default custom" },
    { "config", FIELD_STRUCT, FIELD_REQUIRED, .sub = config_fields },
    FIELD_END,
};

/* ---- folders ---- */

struct mount_params {
    const char *target, *permission, *subpath;
};

static const struct field mount_fields[] = {
    { "mount_destination|mountDestination", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct mount_params, target), 0, 1024 },
    { "type", FIELD_IGNORED },
    { "permission|mount_permission", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct mount_params, permission), 0, 32 },
    { "subpath", FIELD_STR, FIELD_NULLABLE, offsetof(struct mount_params, subpath), 0, 1024 },
    FIELD_END,
};

int backendai_mount_read(const char *folder, const json_t *options, const char *field,
                         struct arena *arena, const char **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct mount_params params = { .target = NULL };
    bool is_read_only;

    if (decode_object(mount_fields, options, arena, &params, err) < 0) {
        char member[sizeof(err->field)];

        memcpy(member, err->field, sizeof(member));
        (void)snprintf(err->field, sizeof(err->field), "%s.%.60s", field, member);
        return -err->code;
    }
    if (!*folder || strpbrk(folder, ":/"))
        return api_fail_param(err, field, "'%.64s' is not the id of a folder", folder);
    if (params.target && strchr(params.target, ':'))
        return api_fail_param(err, field, "the mount_destination '%.64s' must not have a colon",
                              params.target);
    if (params.subpath && strchr(params.subpath, ':'))
        return api_fail_param(err, field, "the subpath '%.64s' must not have a colon",
                              params.subpath);
    is_read_only = params.permission && strcmp(params.permission, "ro") == 0;
    strbuf_adds(&text, folder);
    if (params.subpath && *params.subpath && strcmp(params.subpath, ".") != 0)
        strbuf_addf(&text, "/%s", params.subpath);
    if ((params.target && *params.target) || is_read_only)
        strbuf_addf(&text, ":%s%s", params.target ? params.target : "", is_read_only ? ":ro" : "");
    *ret = arena_strdup(arena, text.data);
    return 0;
}

static int backendai_read_mounts(const json_t *mounts, struct arena *arena, struct str_list *ret,
                                 struct aq_error *err)
{
    static const char field[] = "config.extra_mounts";
    const char *folder;
    json_t *options;
    int r;

    if (json_object_size(mounts) > FOLDER_MOUNTS_MAX)
        return api_fail_param(err, field, "has %zu folders; %d are allowed",
                              json_object_size(mounts), FOLDER_MOUNTS_MAX);
    *ret = (struct str_list){ arena_array(arena, json_object_size(mounts) + 1, sizeof(char *)), 0 };
    json_object_foreach((json_t *)(uintptr_t)mounts, folder, options) {
        json_auto_t *none = json_object();

        r = backendai_mount_read(folder, json_is_object(options) ? options : none, field, arena,
                                 &ret->items[ret->count++], err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- the body ---- */

/* Pages send texts that are empty. */
static void backendai_unset_empty(struct model_service_spec *spec)
{
    const char **texts[] = { &spec->model_target, &spec->definition_path, &spec->session.command,
                             &spec->session.bootstrap, &spec->runtime };

    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        if (*texts[i] && !**texts[i])
            *texts[i] = NULL;
}

int backendai_params_read(struct request *req, struct serving_params *ret, json_t **ret_tree,
                          struct aq_error *err)
{
    struct arena *arena = request_get_arena(req);
    struct backendai_service_params params = { .replicas = 1 };
    char replicas[24];
    int r;

    params.common.spec.priority = SERVING_PRIORITY_DEFAULT;
    if ((r = api_decode(req, &params, ret_tree, err)) < 0
        || (r = backendai_read_mounts(params.mounts, arena, &params.common.spec.mounts, err)) < 0)
        return r;
    backendai_unset_empty(&params.common.spec);
    (void)snprintf(replicas, sizeof(replicas), "%" PRId64, params.replicas);
    params.common.replicas = arena_strdup(arena, replicas);
    *ret = params.common;
    return 0;
}
