/* SPDX-License-Identifier: Apache-2.0 */
/* session_mounts.c - the folders that POST /session asks for */
#include "manager/session/session_mounts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/folder/folder.h"
#include "manager/rules/folder_mount.h"

struct session_mount_options {
    const char *type, *permission, *path, *target;
};

#define AT(member) offsetof(struct session_mount_options, member)

static const struct field session_mount_fields[] = {
    { "type", FIELD_STR, FIELD_NULLABLE, AT(type), 0, 32 },
    { "permission|perm", FIELD_STR, FIELD_NULLABLE, AT(permission), 0, 8 },
    { "subpath", FIELD_STR, FIELD_NULLABLE, AT(path), 0, FOLDER_PATH_MAX },
    { "mount_destination|target", FIELD_STR, FIELD_NULLABLE, AT(target), 0, FOLDER_PATH_MAX },
    FIELD_END,
};

static const char *session_mounts_find_target(const struct pair_list *targets, const char *folder)
{
    for (size_t i = 0; i < targets->count; i++)
        if (strcmp(targets->items[i].key, folder) == 0)
            return targets->items[i].value;
    return NULL;
}

static int session_mounts_read_options(const json_t *all, struct arena *arena,
                                       struct named_mount *named, struct aq_error *err)
{
    struct session_mount_options options = { .type = NULL };
    const json_t *given = json_object_get(all, named->folder);

    if (!given || json_is_null(given))
        return 0;
    if (!json_is_object(given))
        return api_fail_param(err, "config.mount_options", "of '%.64s' is no object",
                              named->folder);
    if (decode_object(session_mount_fields, given, arena, &options, err) < 0) {
        (void)snprintf(err->field, sizeof(err->field), "config.mount_options");
        return -err->code;
    }
    if (options.type && strcmp(options.type, "bind") != 0)
        return api_fail_param(err, "config.mount_options",
                              "folders are mounted with the type bind, not '%.32s'", options.type);
    if (options.permission && *options.permission
        && folder_permission_parse(options.permission, &named->permission) < 0)
        return api_fail_param(err, "config.mount_options", "permission must be ro or rw");
    named->path = options.path;
    if (!named->target)
        named->target = options.target;
    return 0;
}

static int session_mounts_add(const struct str_list *folders, const struct pair_list *targets,
                              const json_t *options, struct arena *arena, struct named_mount *named,
                              struct aq_error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < folders->count; i++) {
        named[i] = (struct named_mount){
            .folder = folders->items[i],
            .target = session_mounts_find_target(targets, folders->items[i]),
        };
        r = session_mounts_read_options(options, arena, &named[i], err);
        if (named[i].target && !*named[i].target)
            named[i].target = NULL;
    }
    return r;
}

static bool session_mounts_has(const struct str_list *folders, const char *folder)
{
    for (size_t i = 0; i < folders->count; i++)
        if (strcmp(folders->items[i], folder) == 0)
            return true;
    return false;
}

/* A target or an option of a folder that is not mounted is a mistake in its name. */
static int session_mounts_check_names(const struct session_mount_params *params,
                                      struct aq_error *err)
{
    const char *name;
    json_t *ignored;

    for (size_t i = 0; i < params->targets.count; i++)
        if (!session_mounts_has(&params->names, params->targets.items[i].key))
            return api_fail_param(err, "config.mount_map", "'%.64s' is not among the mounts",
                                  params->targets.items[i].key);
    for (size_t i = 0; i < params->id_targets.count; i++)
        if (!session_mounts_has(&params->ids, params->id_targets.items[i].key))
            return api_fail_param(err, "config.mount_id_map", "'%.64s' is not among the mount_ids",
                                  params->id_targets.items[i].key);
    json_object_foreach((json_t *)(uintptr_t)params->options, name, ignored) {
        (void)ignored;
        if (!session_mounts_has(&params->names, name) && !session_mounts_has(&params->ids, name))
            return api_fail_param(err, "config.mount_options", "'%.64s' is not mounted", name);
    }
    return 0;
}

static int session_mounts_check_ids(const struct str_list *ids, struct aq_error *err)
{
    struct uuid id;

    for (size_t i = 0; i < ids->count; i++)
        if (uuid_parse(ids->items[i], &id) < 0)
            return api_fail_param(err, "config.mount_ids", "'%.64s' is no folder's id",
                                  ids->items[i]);
    return 0;
}

/* By the rules of the session's owner. */
static bool session_mounts_may(void *data, const struct session *session,
                               const struct folder *folder)
{
    const struct api *api = data;
    struct principal owner = { .user_id = session->user_id, .domain = session->domain };
    const struct folder_place place = {
        .who = &owner,
        .project = core_find_project(api->core, &folder->project_id),
    };

    memcpy(owner.access_key, session->access_key, sizeof(owner.access_key));
    return folder_rules_allow(api, &place, folder->host, "mount-in-session");
}

int session_mounts_read(const struct api *api, struct request *req,
                        const struct session_mount_params *params, struct session_mounts *ret,
                        struct aq_error *err)
{
    struct arena *arena = request_get_arena(req);
    size_t count = params->names.count + params->ids.count;
    struct named_mount *named = arena_array(arena, count + 1, sizeof(*named));
    int r;

    if ((r = session_mounts_check_names(params, err)) < 0
        || (r = session_mounts_check_ids(&params->ids, err)) < 0
        || (r = session_mounts_add(&params->names, &params->targets, params->options, arena, named,
                                   err))
               < 0
        || (r = session_mounts_add(&params->ids, &params->id_targets, params->options, arena,
                                   named + params->names.count, err))
               < 0)
        return r;
    *ret = (struct session_mounts){ .named = named,
                                    .count = count,
                                    .is_automatic = ret->is_automatic
                                                    && folder_mounts_automatic(api),
                                    .may_mount = session_mounts_may,
                                    .data = (void *)(uintptr_t)api };
    return 0;
}
