/* SPDX-License-Identifier: Apache-2.0 */
/* /folders: making, changing and removing folders. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "manager/api/folder.h"
#include "manager/request/folder_jobs.h"

/* ---- making one ---- */

struct folder_create_params {
    const char *name, *host, *group, *usage, *permission, *quota;
    bool is_cloneable;
};

#define AT(member) offsetof(struct folder_create_params, member)

static const struct field folder_create_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, AT(name), 1, FOLDER_NAME_MAX },
    { "host|folder_host", FIELD_STR, FIELD_NULLABLE, AT(host), 1, FOLDER_HOST_MAX,
      .doc = "STORAGE:VOLUME; the first that is allowed by default" },
    { "group|group_id|groupId", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64,
      .doc = "name or id of a project that shall own it; its administrators" },
    { "usage_mode", FIELD_STR, FIELD_NULLABLE, AT(usage), 1, 16, .doc = "general, model or data" },
    { "permission", FIELD_STR, FIELD_NULLABLE, AT(permission), 1, 8,
      .doc = "ro, rw or wd: of a project's members" },
    { "quota", FIELD_SCALAR, FIELD_NULLABLE, AT(quota), 0, 32,
      .doc = "bytes at most, e.g. 10g; 0 = as many as the owner may have" },
    { "cloneable", FIELD_BOOL, 0, AT(is_cloneable) },
    { "unmanaged_path|unmanagedPath", FIELD_UNSUPPORTED, 0 },
    FIELD_END,
};

/* What is checked and given on the loop's thread, before the store is asked. */
static int folder_create_place(struct folder_call *call, struct folder_place *place,
                               struct aq_error *err)
{
    const struct folder_create_params *params = call->params;

    place->who = api_principal(call->req);
    if (params->group
        && api_find_project(call->api, call->req, params->group, &place->project, err) < 0)
        return -err->code;
    if (place->project && !principal_sees_domain(place->who, place->project->domain))
        return aq_fail_kind(err, EPERM, "generic-forbidden",
                            "only its administrators make folders of a project");
    if (place->project)
        call->folder.project_id = place->project->id;
    else
        call->folder.user_id = call->who.user_id;
    call->folder.domain = place->project ? place->project->domain : place->who->domain;
    if (call->folder.domain
        && !(call->folder.domain = arena_strdup(request_get_arena(call->req), call->folder.domain)))
        return aq_fail_oom(err);
    call->limits = folder_rules_limits(call->api, place);
    return 0;
}

static int folder_choose_host(struct folder_call *call, const struct folder_place *place,
                              const char *wanted, struct aq_error *err)
{
    const struct storage_host *hosts;
    size_t count;

    hosts = storage_hosts_list(call->api->storage_hosts, &count);
    for (size_t i = 0; !call->folder.host && i < count; i++)
        if ((!wanted || strcmp(wanted, hosts[i].name) == 0)
            && folder_rules_allow(call->api, place, hosts[i].name, "create-vfolder")
            && !(call->folder.host = arena_strdup(request_get_arena(call->req), hosts[i].name)))
            return aq_fail_oom(err);
    if (call->folder.host)
        return 0;
    if (wanted && storage_hosts_find(call->api->storage_hosts, wanted))
        return aq_fail_kind(err, EPERM, "generic-forbidden", "you may not make folders on '%s'",
                            wanted);
    if (wanted)
        return api_fail_param(err, "host", "no host '%.128s' is connected", wanted);
    return aq_fail_kind(err, EHOSTUNREACH, "vfolder-creation-failed",
                        "no host is connected where you may make folders");
}

static int folder_read_options(struct folder *folder, const char *usage, const char *permission,
                               struct aq_error *err)
{
    if (usage && folder_usage_parse(usage, &folder->usage) < 0)
        return api_fail_param(err, "usage_mode", "must be general, model or data");
    return permission ? folder_read_permission("permission", permission, &folder->permission, err)
                      : 0;
}

/* It may be one that sessions mount unasked. */
static int folder_check_new_name(struct api *api, const char *field, const char *name,
                                 struct aq_error *err)
{
    api->has_automatic_folders |= name[0] == '.';
    if (folder_name_is_valid(name))
        return 0;
    return api_fail_param(err, field,
                          "must be 1 to %d letters, digits, dots, hyphens and underscores, with "
                          "a letter or digit first, or a dot before it",
                          FOLDER_NAME_MAX);
}

static json_t *folder_audit_side(const struct folder *folder)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:b}", "name", folder->name, "host", folder->host,
                     "usage_mode", folder_usage_name(folder->usage), "permission",
                     folder_permission_name(folder->permission), "cloneable", folder->is_cloneable);
}

int folder_check_room(struct store_tx *tx, const struct folder_call *call,
                      const struct folder *folder, struct aq_error *err)
{
    const struct folder_owner owner = { folder->user_id, folder->project_id };
    struct folder_use use = { 0 };
    int r = folder_check_name(tx, &owner, folder->name, NULL, err);

    if (r < 0 || (r = folder_read_use(tx, &owner, &use, err)) < 0)
        return r;
    if (use.all >= FOLDERS_MAX)
        return aq_fail_kind(err, E2BIG, "generic-bad-request",
                            "there are %d folders already, with those in the trash; purge some",
                            FOLDERS_MAX);
    if (call->limits.folders && use.folders >= call->limits.folders)
        return aq_fail_kind(err, EDQUOT, "generic-bad-request",
                            "there are %lld folders already, and the policy allows no more",
                            (long long)use.folders);
    if (call->limits.bytes && use.bytes >= call->limits.bytes)
        return aq_fail_kind(err, EDQUOT, "quota-exceeded",
                            "folders have %lld bytes already, and the policy allows %lld",
                            (long long)use.bytes, (long long)call->limits.bytes);
    return 0;
}

static int folder_create_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    int r = folder_check_room(tx, call, &call->folder, err);

    if (r < 0 || (r = folder_insert(tx, &call->folder, err)) < 0)
        return r;
    return folder_audit(tx, call, "create-vfolder", NULL, folder_audit_side(&call->folder), err);
}

/* ---- its files' place ---- */

static int folder_settle_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    return folder_update(tx, &((const struct folder_call *)data)->folder, err);
}

static void folder_create_on_ready(void *data, int r, const struct aq_error *err)
{
    struct folder_call *call = data;

    if (r < 0)
        request_fail(call->req, err);
    else
        folder_reply_json(call, folder_show(&call->folder, &call->who));
}

/* Of one that could not be made the row goes, too. */
static void folder_create_on_refused(void *data, int r, const struct aq_error *err)
{
    struct folder_call *call = data;

    (void)err;
    if (r == 0)
        folder_jobs_purge(call->api->folder_jobs, &call->folder);
    request_fail(call->req, call->result);
}

static void folder_create_answered(struct folder_call *call, json_t *answer,
                                   const struct aq_error *err)
{
    struct store *store = core_store(call->api->core);
    struct aq_error *why = arena_alloc(request_get_arena(call->req), sizeof(*why));
    struct aq_error oom = { 0 };

    if (!answer && why) {
        *why = folder_storage_error(err);
        why->kind = "vfolder-creation-failed";
        call->result = why;
    }
    AQ_FAULT("folder.create.made");
    call->folder.status = answer ? FOLDER_READY : FOLDER_DELETE_ONGOING;
    if (why
        && store_write(store, folder_settle_run,
                       answer ? folder_create_on_ready : folder_create_on_refused, call)
               == 0)
        return;
    aq_fail_oom(&oom);
    request_fail(call->req, &oom);
}

static void folder_create_done(struct folder_call *call)
{
    AQ_FAULT("folder.create.written");
    folder_call_ask(call, "create", json_object(), folder_create_answered);
}

static int folder_create_fill(struct folder_call *call, struct aq_error *err)
{
    const struct folder_create_params *params = call->params;
    struct folder *folder = &call->folder;
    struct folder_place place = { 0 };
    int r;

    folder->id = uuid_random();
    folder->name = params->name;
    folder->permission = FOLDER_READ_WRITE;
    folder->is_cloneable = params->is_cloneable;
    folder->status = FOLDER_PERFORMING;
    folder->creator = call->email;
    folder->created_usec = clock_realtime_usec();
    if ((r = folder_check_new_name(call->api, "name", params->name, err)) < 0
        || (r = folder_read_options(folder, params->usage, params->permission, err)) < 0
        || (r = slot_amount_parse(params->quota, strlen(params->quota), SLOT_BYTES, false, "quota",
                                  &folder->bytes_max, err))
               < 0
        || (r = folder_create_place(call, &place, err)) < 0)
        return r;
    if (place.project) {
        folder->project_name = arena_strdup(request_get_arena(call->req), place.project->name);
    } else {
        folder->user_email = call->email;
    }
    return folder_choose_host(call, &place, params->host, err);
}

static void folder_on_create(struct request *req, void *data)
{
    static const struct folder_create_params defaults = { .quota = "0" };
    struct folder_call *call = folder_call_new(data, req, FOLDER_SEE, sizeof(defaults), &defaults);
    struct aq_error err = { 0 };

    if (!call)
        return;
    if (folder_create_fill(call, &err) < 0) {
        folder_call_fail(call, &err);
        return;
    }
    call->run = folder_create_run;
    call->done = folder_create_done;
    call->status = 201;
    folder_call_write(call);
}

/* ---- changing one ---- */

static const struct field folder_rename_fields[] = {
    { "new_name", FIELD_STR, FIELD_REQUIRED, 0, 1, FOLDER_NAME_MAX },
    FIELD_END,
};

/* Save what has become of the folder as 'old' was. */
static int folder_save(struct store_tx *tx, struct folder_call *call, const char *action,
                       const struct folder *old, struct aq_error *err)
{
    int r = folder_update(tx, &call->folder, err);

    return r < 0 ? r
                 : folder_audit(tx, call, action, folder_audit_side(old),
                                folder_audit_side(&call->folder), err);
}

static int folder_rename_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder old = call->folder;
    const struct folder_owner owner = { old.user_id, old.project_id };
    int r;

    call->folder.name = *(const char **)call->params;
    r = folder_check_name(tx, &owner, call->folder.name, &old.id, err);
    return r < 0 ? r : folder_save(tx, call, "rename-vfolder", &old, err);
}

static void folder_on_rename(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(data, req, FOLDER_CHANGE, sizeof(const char *),
                                               NULL);
    struct aq_error err = { 0 };

    if (!call)
        return;
    if (folder_check_new_name(call->api, "new_name", *(const char **)call->params, &err) < 0) {
        folder_call_fail(call, &err);
        return;
    }
    call->run = folder_rename_run;
    call->status = 201;
    folder_call_write(call);
}

struct folder_options_params {
    enum maybe is_cloneable;
    const char *permission;
};

static const struct field folder_options_fields[] = {
    { "cloneable", FIELD_MAYBE, FIELD_NULLABLE,
      offsetof(struct folder_options_params, is_cloneable) },
    { "permission", FIELD_STR, FIELD_NULLABLE, offsetof(struct folder_options_params, permission),
      1, 8, .doc = "ro, rw or wd" },
    FIELD_END,
};

static int folder_options_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_options_params *params = call->params;
    const struct folder old = call->folder;
    int r = folder_read_options(&call->folder, NULL, params->permission, err);

    if (r < 0)
        return r;
    if (params->is_cloneable != MAYBE_UNSET)
        call->folder.is_cloneable = params->is_cloneable == MAYBE_TRUE;
    return folder_save(tx, call, "modify-vfolder", &old, err);
}

static void folder_on_options(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(data, req, FOLDER_CHANGE,
                                               sizeof(struct folder_options_params), NULL);

    if (!call)
        return;
    call->run = folder_options_run;
    call->status = 201;
    folder_call_write(call);
}

/* ---- another owner ---- */

struct folder_give_params {
    const char *folder, *email;
    struct uuid user_id;
};

static const struct field folder_give_fields[] = {
    { "vfolder", FIELD_STR, FIELD_REQUIRED, offsetof(struct folder_give_params, folder), 1,
      FOLDER_NAME_MAX, .doc = "its id" },
    { "user_email", FIELD_STR, FIELD_REQUIRED, offsetof(struct folder_give_params, email), 1, 255 },
    FIELD_END,
};

static int folder_give_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_give_params *params = call->params;
    const struct folder_owner owner = { .user_id = params->user_id };
    json_t *before = json_pack("{s:s?}", "user", call->folder.user_email);
    json_t *after = json_pack("{s:s}", "user", params->email);
    int r = folder_check_name(tx, &owner, call->folder.name, &call->folder.id, err);

    call->folder.user_id = params->user_id;
    /* What was shared with the new owner is the own now. */
    if (r == 0)
        r = folder_set_share(tx, &call->folder.id, &params->user_id, FOLDER_NONE, err);
    if (r >= 0)
        r = folder_update(tx, &call->folder, err);
    if (r == 0)
        return folder_audit(tx, call, "change-vfolder-owner", before, after, err);
    json_decref(before);
    json_decref(after);
    return r;
}

static void folder_on_give(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(data, req, FOLDER_GIVE,
                                               sizeof(struct folder_give_params), NULL);
    struct folder_give_params *params = call ? call->params : NULL;
    struct aq_error err = { 0 };
    const struct user *user;

    if (!call)
        return;
    user = core_find_user_by_email(call->api->core, params->email);
    if (!user || user->status != USER_ACTIVE
        || !principal_sees_domain(api_principal(req), user->domain)) {
        problem_no_such(&err, "user", "there is no active user '%.64s'", params->email);
        folder_call_fail(call, &err);
        return;
    }
    params->user_id = user->id;
    call->name = params->folder;
    call->run = folder_give_run;
    call->done = folder_reply_empty_object;
    folder_call_write(call);
}

/* ---- the trash ---- */

static int folder_set_status(struct store_tx *tx, struct folder_call *call, const char *action,
                             enum folder_status status, struct aq_error *err)
{
    int r;

    call->folder.status = status;
    r = folder_update(tx, &call->folder, err);
    return r < 0 ? r : folder_audit(tx, call, action, NULL, NULL, err);
}

static int folder_delete_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    int r = folder_check_unused(call, err);

    return r < 0 ? r : folder_set_status(tx, call, "delete-vfolder", FOLDER_DELETE_PENDING, err);
}

static int folder_restore_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_owner owner = { call->folder.user_id, call->folder.project_id };
    int r = folder_check_name(tx, &owner, call->folder.name, &call->folder.id, err);

    return r < 0 ? r : folder_set_status(tx, call, "restore-vfolder", FOLDER_READY, err);
}

static int folder_purge_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    int r = folder_check_unused(call, err);

    return r < 0 ? r : folder_set_status(tx, call, "purge-vfolder", FOLDER_DELETE_ONGOING, err);
}

static void folder_purge_done(struct folder_call *call)
{
    AQ_FAULT("folder.purge.written");
    folder_jobs_purge(call->api->folder_jobs, &call->folder);
    folder_reply(call);
}

/* By its id in the parameters. */
static const struct field folder_by_id_fields[] = {
    { "id|vfolder_id|vfolderId", FIELD_STR, FIELD_REQUIRED, 0, 1, FOLDER_NAME_MAX },
    FIELD_END,
};

static struct folder_call *folder_call_by_id(struct api *api, struct request *req,
                                             enum folder_op op, enum folder_states states,
                                             folder_run_fn *run)
{
    struct folder_call *call = folder_call_new(api, req, op, sizeof(const char *), NULL);

    if (!call)
        return NULL;
    if (!call->name)
        call->name = *(const char **)call->params;
    call->states = states;
    call->run = run;
    return call;
}

static void folder_on_delete(struct request *req, void *data)
{
    struct folder_call *call = folder_call_by_id(data, req, FOLDER_DELETE, FOLDER_IF_READY,
                                                 folder_delete_run);

    if (call)
        folder_call_write_unused(call);
}

static void folder_on_restore(struct request *req, void *data)
{
    struct folder_call *call = folder_call_by_id(data, req, FOLDER_RESTORE, FOLDER_IF_IN_TRASH,
                                                 folder_restore_run);

    if (!call)
        return;
    call->status = 201;
    folder_call_write(call);
}

static void folder_on_purge(struct request *req, void *data)
{
    struct folder_call *call = folder_call_by_id(data, req, FOLDER_PURGE, FOLDER_IF_IN_TRASH,
                                                 folder_purge_run);

    if (!call)
        return;
    call->done = folder_purge_done;
    folder_call_write_unused(call);
}

static void folder_on_force(struct request *req, void *data)
{
    struct folder_call *call = folder_call_by_id(data, req, FOLDER_PURGE, FOLDER_IF_SETTLED,
                                                 folder_purge_run);

    if (!call)
        return;
    call->done = folder_purge_done;
    folder_call_write_unused(call);
}

#define CHANGE (API_USER | API_FREEZABLE)

const struct route folder_change_routes[] = {
    { METHOD_POST, "/folders", CHANGE, folder_on_create, folder_create_fields, "Make a folder" },
    { METHOD_POST, "/folders/{name}/rename", CHANGE, folder_on_rename, folder_rename_fields,
      "Rename a folder" },
    { METHOD_POST, "/folders/{name}/update-options", CHANGE, folder_on_options,
      folder_options_fields, "Change a folder" },
    { METHOD_POST, "/folders/_/change-ownership", API_ADMIN | API_FREEZABLE, folder_on_give,
      folder_give_fields, "Give a user's folder to another user" },
    { METHOD_DELETE, "/folders", CHANGE, folder_on_delete, folder_by_id_fields,
      "Put a folder into the trash" },
    { METHOD_DELETE, "/folders/{name}", CHANGE, folder_on_delete, NULL,
      "Put a folder into the trash" },
    { METHOD_POST, "/folders/restore-from-trash-bin", CHANGE, folder_on_restore,
      folder_by_id_fields, "Take a folder out of the trash" },
    { METHOD_POST, "/folders/delete-from-trash-bin", CHANGE, folder_on_purge, folder_by_id_fields,
      "Remove a folder that is in the trash for good" },
    { METHOD_POST, "/folders/purge", CHANGE, folder_on_purge, folder_by_id_fields,
      "Remove a folder that is in the trash for good" },
    { METHOD_DELETE, "/folders/{name}/force", CHANGE, folder_on_force, NULL,
      "Remove a folder for good, without the trash" },
};
API_ROUTES_END(folder_change);
