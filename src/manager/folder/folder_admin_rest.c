/* SPDX-License-Identifier: Apache-2.0 */
/* /folders/_/...: what administrators see and change of folders and their hosts. */
#include <errno.h>
#include <string.h>

#include "manager/folder/folder_feature.h"
#include "manager/folder/folder_call.h"

struct folder_admin_params {
    const char *folder, *user, *permission, *host;
    struct uuid user_id;
    int64_t size;
};

#define AT(member) offsetof(struct folder_admin_params, member)

static struct folder_call *folder_admin_new(struct api *api, struct request *req, enum folder_op op)
{
    struct folder_call *call = folder_call_new(api, req, op, sizeof(struct folder_admin_params),
                                               NULL);

    if (call) {
        call->name = ((const struct folder_admin_params *)call->params)->folder;
        call->states = FOLDER_IN_ANY_STATE;
    }
    return call;
}

/* ---- with whom they are shared ---- */

static const struct field folder_shared_fields[] = {
    { "vfolder_id|vfolder", FIELD_STR, FIELD_NULLABLE, AT(folder), 1, FOLDER_NAME_MAX },
    FIELD_END,
};

static json_t *folder_show_share(const struct folder *folder, const struct folder_share *share)
{
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX], owner[UUID_TEXT_MAX];
    bool is_project = !uuid_is_nil(&folder->project_id);

    return json_pack("{s:s, s:s, s:s, s:s?, s:s, s:{s:s, s:s?}, s:{s:s, s:s}, s:s}", "vfolder_id",
                     uuid_format(&folder->id, id), "vfolder_name", folder->name, "status",
                     folder_status_name(folder->status), "owner",
                     is_project ? folder->project_name : folder->user_email, "type",
                     is_project ? "group" : "user", "shared_by", "uuid",
                     uuid_format(is_project ? &folder->project_id : &folder->user_id, owner),
                     "email", is_project ? folder->project_name : folder->user_email, "shared_to",
                     "uuid", uuid_format(&share->user_id, user), "email", share->email, "perm",
                     folder_permission_name(share->permission));
}

static int folder_add_shares(struct store_tx *tx, struct folder_call *call,
                             const struct folder *folder, struct aq_error *err)
{
    struct folder_share *shares;
    int count = folder_list_shares(tx, &folder->id, request_get_arena(call->req), &shares, err);

    for (int i = 0; i < count; i++)
        (void)json_array_append_new(call->result, folder_show_share(folder, &shares[i]));
    return AQ_MIN(count, 0);
}

static int folder_shared_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    bool is_admin = call->who.is_superadmin || call->who.admin_of;
    const struct folder_list list = { .who = call->who,
                                      .scope = is_admin ? FOLDERS_VISIBLE : FOLDERS_OWN };
    const struct folder *rows;
    int r;

    if (call->name)
        return folder_add_shares(tx, call, &call->folder, err);
    r = folder_list_shared(tx, &list, &page, err);
    rows = r == 0 ? page->rows : NULL;
    for (size_t i = 0; r == 0 && i < page->count; i++)
        r = folder_add_shares(tx, call, &rows[i], err);
    return r;
}

static void folder_shared_done(struct folder_call *call)
{
    folder_reply_json(call, json_pack("{s:o}", "shared", AQ_TAKE(call->result)));
}

static void folder_shared_failed(struct folder_call *call, const struct aq_error *err)
{
    json_decref(call->result);
    folder_call_fail(call, err);
}

static void folder_on_shared(struct request *req, void *data)
{
    struct folder_call *call = folder_admin_new(data, req, FOLDER_CHANGE);

    if (!call)
        return;
    call->result = json_array();
    call->run = folder_shared_run;
    call->done = folder_shared_done;
    call->failed = folder_shared_failed;
    folder_call_read(call);
}

static const struct field folder_shared_update_fields[] = {
    { "vfolder|vfolder_id", FIELD_STR, FIELD_REQUIRED, AT(folder), 1, FOLDER_NAME_MAX },
    { "user|user_id", FIELD_STR, FIELD_REQUIRED, AT(user), 1, 64, .doc = "their id" },
    { "perm|permission", FIELD_STR, FIELD_NULLABLE, AT(permission), 1, 8,
      .doc = "ro, rw or wd; without it the folder is shared with the user no more" },
    FIELD_END,
};

static int folder_shared_update_run(struct store_tx *tx, struct folder_call *call,
                                    struct aq_error *err)
{
    const struct folder_admin_params *params = call->params;
    enum folder_permission permission = FOLDER_NONE;
    struct folder_share *shares;
    int count, r = params->permission
                       ? folder_read_permission("perm", params->permission, &permission, err)
                       : 0;
    bool is_shared = false;

    if (r < 0)
        return r;
    count = folder_list_shares(tx, &call->folder.id, request_get_arena(call->req), &shares, err);
    for (int i = 0; i < count; i++)
        is_shared |= uuid_equals(&shares[i].user_id, &params->user_id);
    if (count < 0)
        return count;
    if (!is_shared)
        return problem_no_such(err, "user", "the folder is not shared with that user");
    r = folder_set_share(tx, &call->folder.id, &params->user_id, permission, err);
    return r < 0 ? r
                 : folder_audit(tx, call, "modify-vfolder-share", NULL,
                                json_pack("{s:s, s:s?}", "user", params->user, "permission",
                                          params->permission),
                                err);
}

static void folder_on_shared_update(struct request *req, void *data)
{
    struct folder_call *call = folder_admin_new(data, req, FOLDER_CHANGE);
    struct folder_admin_params *params = call ? call->params : NULL;
    struct aq_error err = { 0 };

    if (!call)
        return;
    if (uuid_parse(params->user, &params->user_id) < 0) {
        api_fail_param(&err, "user", "is no UUID");
        folder_call_fail(call, &err);
        return;
    }
    call->run = folder_shared_update_run;
    call->done = folder_reply_empty_object;
    folder_call_write(call);
}

/* ---- sizes ---- */

static const struct field folder_usage_fields[] = {
    { "id|vfolder_id", FIELD_STR, FIELD_REQUIRED, AT(folder), 1, FOLDER_NAME_MAX },
    { "folder_host", FIELD_IGNORED, 0 },
    FIELD_END,
};

static void folder_usage_answered(struct folder_call *call, json_t *answer,
                                  const struct aq_error *err)
{
    struct aq_error known;

    if (answer) {
        folder_reply_json(call,
                          json_pack("{s:O, s:O}", "file_count", json_object_get(answer, "files"),
                                    "used_bytes", json_object_get(answer, "bytes")));
        return;
    }
    known = folder_storage_error(err);
    request_fail(call->req, &known);
}

static void folder_usage_done(struct folder_call *call)
{
    folder_call_ask(call, "usage", json_object(), folder_usage_answered);
}

static void folder_on_usage(struct request *req, void *data)
{
    struct folder_call *call = folder_admin_new(data, req, FOLDER_SEE);

    if (!call)
        return;
    call->done = folder_usage_done;
    folder_call_read(call);
}

static void folder_quota_done(struct folder_call *call)
{
    call->status = 200;
    folder_reply_json(call,
                      json_pack("{s:I, s:I, s:I}", "size_bytes", (json_int_t)call->folder.bytes_max,
                                "limit_bytes", (json_int_t)call->folder.bytes_max, "used_bytes",
                                (json_int_t)call->folder.bytes));
}

static void folder_on_quota(struct request *req, void *data)
{
    struct folder_call *call = folder_admin_new(data, req, FOLDER_SEE);

    if (!call)
        return;
    call->done = folder_quota_done;
    folder_call_read(call);
}

static const struct field folder_quota_input_fields[] = {
    { "size_bytes", FIELD_INT, FIELD_REQUIRED, AT(size), 0, INT64_C(1) << 60 },
    FIELD_END,
};

static const struct field folder_quota_set_fields[] = {
    { "id|vfolder_id", FIELD_STR, FIELD_REQUIRED, AT(folder), 1, FOLDER_NAME_MAX },
    { "folder_host", FIELD_IGNORED, 0 },
    { "input", FIELD_STRUCT, FIELD_REQUIRED, .sub = folder_quota_input_fields },
    FIELD_END,
};

static int folder_quota_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_admin_params *params = call->params;
    int64_t before = call->folder.bytes_max;
    int r;

    call->folder.bytes_max = params->size;
    r = folder_update(tx, &call->folder, err);
    return r < 0 ? r
                 : folder_audit(tx, call, "modify-vfolder",
                                json_pack("{s:I}", "max_size", (json_int_t)before),
                                json_pack("{s:I}", "max_size", (json_int_t)params->size), err);
}

static void folder_on_set_quota(struct request *req, void *data)
{
    struct folder_call *call = folder_admin_new(data, req, FOLDER_CHANGE);

    if (!call)
        return;
    call->run = folder_quota_run;
    call->done = folder_quota_done;
    folder_call_write(call);
}

/* ---- hosts ---- */

static const struct field folder_host_fields[] = {
    { "folder_host", FIELD_STR, FIELD_REQUIRED, AT(host), 1, FOLDER_HOST_MAX },
    FIELD_END,
};

/* What is on a host, as it was counted last; nothing of its speed is measured. */
static int folder_metric_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_admin_params *params = call->params;
    struct folder_host_use *use = arena_alloc(request_get_arena(call->req), sizeof(*use));

    call->result = use;
    return folder_read_host_use(tx, params->host, use, err);
}

static void folder_metric_done(struct folder_call *call)
{
    const struct folder_host_use *use = call->result;

    folder_reply_json(call, json_pack("{s:{s:I, s:I, s:I}}", "metric", "folders",
                                      (json_int_t)use->folders, "files", (json_int_t)use->files,
                                      "used_bytes", (json_int_t)use->bytes));
}

static void folder_on_metric(struct request *req, void *data)
{
    struct folder_call *call = folder_admin_new(data, req, FOLDER_SEE);
    const struct folder_admin_params *params = call ? call->params : NULL;
    struct aq_error err = { 0 };

    if (!call)
        return;
    if (!storage_hosts_find(call->api->folder->hosts, params->host)) {
        problem_no_such(&err, "storage volume", "no host '%.128s' is connected", params->host);
        folder_call_fail(call, &err);
        return;
    }
    call->run = folder_metric_run;
    call->done = folder_metric_done;
    folder_call_read(call);
}

static void folder_on_mounts(struct request *req, void *data)
{
    const struct api *api = data;
    struct folder_call call = { .req = req };
    const struct storage_host *hosts;
    json_auto_t *mounts = json_array();
    size_t count;

    if (!api_has_no_params(req))
        return;
    hosts = storage_hosts_list(api->folder->hosts, &count);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(mounts, json_string(hosts[i].name));
    folder_reply_json(&call,
                      json_pack("{s:{s:b, s:O, s:s}, s:{}, s:{}}", "manager", "success", true,
                                "mounts", mounts, "message", "", "storage_proxy", "agents"));
}

static const struct field folder_fstab_fields[] = {
    { "fstab_path", FIELD_IGNORED, 0 },
    { "agent_id", FIELD_IGNORED, 0 },
    FIELD_END,
};

/* Hosts are directories that storage.toml names; how the machine mounts them is its own. */
static void folder_on_unmanaged(struct request *req, void *data)
{
    struct aq_error err = { 0 };

    (void)data;
    if (!api_has_no_params(req))
        return;
    aq_fail_kind(&err, ENOTSUP, "not-implemented",
                 "hosts of folders are the volumes of storage.toml; what is mounted there is for "
                 "the storage's machine to say");
    request_fail(req, &err);
}

static const struct field folder_mount_fields[] = {
    { "name", FIELD_IGNORED, 0 },
    { "fs_location|fsLocation", FIELD_IGNORED, 0 },
    { "options", FIELD_IGNORED, 0 },
    { "edit_fstab|editFstab", FIELD_IGNORED, 0 },
    FIELD_END,
};

static const struct route folder_admin_routes[] = {
    { METHOD_GET, "/folders/_/shared", API_USER, folder_on_shared, folder_shared_fields,
      "With whom folders are shared" },
    { METHOD_POST, "/folders/_/shared", API_USER | API_FREEZABLE, folder_on_shared_update,
      folder_shared_update_fields, "Change a share of a folder" },
    { METHOD_GET, "/folders/_/usage", API_USER, folder_on_usage, folder_usage_fields,
      "Count the files of a folder" },
    { METHOD_GET, "/folders/_/quota", API_USER, folder_on_quota, folder_usage_fields,
      "How large a folder may be" },
    { METHOD_POST, "/folders/_/quota", API_ADMIN | API_FREEZABLE, folder_on_set_quota,
      folder_quota_set_fields, "Limit the size of a folder" },
    { METHOD_GET, "/folders/_/perf-metric", API_SUPERADMIN, folder_on_metric, folder_host_fields,
      "What is on a host of folders" },
    { METHOD_GET, "/folders/_/mounts", API_SUPERADMIN, folder_on_mounts, NULL,
      "Hosts of folders that are connected" },
    { METHOD_GET, "/folders/_/fstab", API_SUPERADMIN, folder_on_unmanaged, folder_fstab_fields,
      "Refused: mounts are not the manager's", .answer = { ROUTE_REFUSED } },
    { METHOD_POST, "/folders/_/mounts", API_SUPERADMIN, folder_on_unmanaged, folder_mount_fields,
      "Refused: mounts are not the manager's", .answer = { ROUTE_REFUSED } },
    { METHOD_DELETE, "/folders/_/mounts", API_SUPERADMIN, folder_on_unmanaged, folder_mount_fields,
      "Refused: mounts are not the manager's", .answer = { ROUTE_REFUSED } },
};
API_ROUTES_END(folder_admin);
