/* SPDX-License-Identifier: Apache-2.0 */
/* /folders: making, changing and removing folders. */
#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "manager/call/repeat.h"
#include "manager/folder/folder_feature.h"
#include "manager/folder/folder_create.h"
#include "manager/folder/folder_jobs.h"
#include "manager/rules/folder_find.h"

/* ---- making one ---- */

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
    { "type", FIELD_IGNORED }, /* "user" or "project": the group says it */
    { "unmanaged_path|unmanagedPath", FIELD_UNSUPPORTED, 0 },
    FIELD_END,
};

static void folder_make(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(
        data, req, FOLDER_SEE, sizeof(struct folder_create_params), &folder_create_defaults);

    if (!call)
        return;
    call->is_once = true;
    folder_create(call);
}

static void folder_on_create(struct request *req, void *data)
{
    static const struct repeat_handler handler = { folder_make, NULL };

    repeat_start(data, req, &handler);
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
    /* What the former owner offered is not the former owner's to give any more. */
    if (r >= 0)
        r = folder_remove_invitations(tx, &call->folder.id, err);
    if (r == 0)
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
    folder_jobs_purge(call->api->folder->jobs, &call->folder);
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

static const struct route folder_change_routes[] = {
    { METHOD_POST, "/folders", CHANGE | API_ANSWERED_ONCE, folder_on_create, folder_create_fields,
      "Make a folder", .answer = { 201 } },
    { METHOD_POST, "/folders/{name}/rename", CHANGE, folder_on_rename, folder_rename_fields,
      "Rename a folder", .answer = { 201, .types = "" } },
    { METHOD_POST, "/folders/{name}/update-options", CHANGE, folder_on_options,
      folder_options_fields, "Change a folder", .answer = { 201, .types = "" } },
    { METHOD_POST, "/folders/_/change-ownership", API_ADMIN | API_FREEZABLE, folder_on_give,
      folder_give_fields, "Give a user's folder to another user" },
    { METHOD_DELETE, "/folders", CHANGE, folder_on_delete, folder_by_id_fields,
      "Put a folder into the trash", .answer = { 204 } },
    { METHOD_DELETE, "/folders/{name}", CHANGE, folder_on_delete, NULL,
      "Put a folder into the trash", .answer = { 204 } },
    { METHOD_POST, "/folders/restore-from-trash-bin", CHANGE, folder_on_restore,
      folder_by_id_fields, "Take a folder out of the trash", .answer = { 201, .types = "" } },
    { METHOD_POST, "/folders/delete-from-trash-bin", CHANGE, folder_on_purge, folder_by_id_fields,
      "Remove a folder that is in the trash for good", .answer = { 204 } },
    { METHOD_POST, "/folders/purge", CHANGE, folder_on_purge, folder_by_id_fields,
      "Remove a folder that is in the trash for good", .answer = { 204 } },
    { METHOD_DELETE, "/folders/{name}/force", CHANGE, folder_on_force, NULL,
      "Remove a folder for good, without the trash", .answer = { 204 } },
};
API_ROUTES_END(folder_change);
