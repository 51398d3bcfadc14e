/* SPDX-License-Identifier: Apache-2.0 */
/* /folders: which there are, one of them, and the hosts that may have some. */
#include <errno.h>
#include <string.h>

#include "manager/folder/folder_feature.h"
#include "manager/folder/folder_call.h"
#include "manager/call/list.h"

#define LISTED_MAX 1000

/* ---- all ---- */

struct folder_list_params {
    bool all;
    const char *group, *owner_email;
    struct api_page page;
};

#define AT(member) offsetof(struct folder_list_params, member)

static const struct field folder_list_fields[] = {
    { "all", FIELD_BOOL, 0, AT(all), .doc = "of others, too; administrators" },
    { "group_id|group", FIELD_STR, FIELD_NULLABLE, AT(group), 1, 64,
      .doc = "of this project, and the own ones" },
    { "owner_user_email", FIELD_STR, FIELD_NULLABLE, AT(owner_email), 1, 255,
      .doc = "folders of this user; administrators" },
    API_PAGE_FIELDS(struct folder_list_params),
    FIELD_END,
};

struct folder_listing {
    struct folder_list list;
    struct store_query query;
    struct uuid project_id, owner_id;
    bool has_project;
    bool is_page; /* {"items": [...], "total": N} */
    struct store_page *page;
};

static int folder_list_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    struct folder_listing *listing = call->result;

    return store_list_folders(tx, &listing->list, &listing->query, &listing->page, err);
}

static void folder_list_done(struct folder_call *call)
{
    const struct folder_listing *listing = call->result;
    const struct folder *rows = listing->page->rows;
    json_t *all = json_array();
    json_int_t total;

    for (size_t i = 0; i < listing->page->count; i++)
        if (!listing->has_project || uuid_is_nil(&rows[i].project_id)
            || uuid_equals(&rows[i].project_id, &listing->project_id))
            (void)json_array_append_new(all, folder_show(&rows[i], &call->who));
    total = listing->page->total;
    store_page_free(listing->page);
    folder_reply_json(call, listing->is_page ? json_pack("{s:o, s:I}", "items", all, "total", total)
                                             : all);
}

static int folder_list_narrow(const struct folder_call *call, struct folder_listing *listing,
                              struct aq_error *err)
{
    const struct folder_list_params *params = call->params;
    const struct core *core = call->api->core;
    bool is_admin = call->who.is_superadmin || call->who.admin_of;
    const struct project *project;
    const struct user *owner;

    listing->list.who = call->who;
    listing->list.scope = params->all && is_admin ? FOLDERS_VISIBLE : FOLDERS_USABLE;
    listing->list.hides_trash = !listing->is_page && principal_is_old(api_principal(call->req));
    api_page_apply(&params->page, &listing->query);
    listing->query.limit = params->page.limit ? params->page.limit : LISTED_MAX;
    if (params->group) {
        if (api_find_project(call->api, call->req, params->group, &project, err) < 0)
            return -err->code;
        listing->project_id = project->id;
        listing->has_project = true;
    }
    if (!params->owner_email)
        return 0;
    owner = core_find_user_by_email(core, params->owner_email);
    if (!is_admin)
        return aq_fail_kind(err, EPERM, "generic-forbidden", "only administrators name an owner");
    if (!owner)
        return problem_no_such(err, "user", "there is no user '%.64s'", params->owner_email);
    listing->owner_id = owner->id;
    listing->query.user_id = &listing->owner_id;
    listing->list.scope = FOLDERS_VISIBLE;
    return 0;
}

static void folder_list_start(struct api *api, struct request *req, bool is_page)
{
    struct folder_call *call = folder_call_new(api, req, FOLDER_SEE,
                                               sizeof(struct folder_list_params), NULL);
    struct aq_error err = { 0 };
    struct folder_listing *listing;

    if (!call)
        return;
    listing = arena_alloc(request_get_arena(req), sizeof(*listing));
    listing->is_page = is_page;
    if (folder_list_narrow(call, listing, &err) < 0) {
        folder_call_fail(call, &err);
        return;
    }
    call->result = listing;
    call->run = folder_list_run;
    call->done = folder_list_done;
    folder_call_read(call);
}

static void folder_on_list(struct request *req, void *data)
{
    folder_list_start(data, req, false);
}

static void folder_on_page(struct request *req, void *data)
{
    folder_list_start(data, req, true);
}

/* ---- one ---- */

static const struct field folder_id_fields[] = {
    { "name", FIELD_STR, FIELD_REQUIRED, 0, 1, FOLDER_NAME_MAX },
    FIELD_END,
};

static void folder_id_done(struct folder_call *call)
{
    json_t *shown = folder_show(&call->folder, &call->who), *id = json_object_get(shown, "id");

    folder_reply_json(call, id ? json_pack("{s:O}", "id", id) : NULL);
    json_decref(shown);
}

static void folder_on_id(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(data, req, FOLDER_SEE, sizeof(const char *), NULL);

    if (!call)
        return;
    call->name = *(const char **)call->params;
    call->states = FOLDER_IN_ANY_STATE;
    call->done = folder_id_done;
    folder_call_read(call);
}

static int folder_count_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct folder_call *call = data;

    return folder_set_counts(tx, &call->folder, err);
}

static void folder_info_on_counted(void *data, int r, const struct aq_error *err)
{
    struct folder_call *call = data;

    (void)r;
    (void)err;
    folder_reply_json(call, folder_show(&call->folder, &call->who));
}

/* Without an answer it is shown as it was counted last. */
static void folder_info_answered(struct folder_call *call, json_t *answer,
                                 const struct aq_error *err)
{
    struct aq_error ignored = { 0 };

    (void)err;
    if (answer) {
        call->folder.files = json_integer_value(json_object_get(answer, "files"));
        call->folder.bytes = json_integer_value(json_object_get(answer, "bytes"));
        call->folder.measured_usec = clock_realtime_usec();
    }
    if (answer)
        store_write(core_store(call->api->core), folder_count_run, folder_info_on_counted, call);
    else
        folder_info_on_counted(call, 0, &ignored);
}

static void folder_info_done(struct folder_call *call)
{
    struct aq_error ignored = { 0 };

    if (call->folder.status == FOLDER_READY)
        folder_call_ask(call, "usage", json_object(), folder_info_answered);
    else
        folder_info_on_counted(call, 0, &ignored);
}

static void folder_on_info(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(data, req, FOLDER_SEE, 0, NULL);

    if (!call)
        return;
    call->states = FOLDER_IN_ANY_STATE;
    call->done = folder_info_done;
    folder_call_read(call);
}

/* ---- hosts ---- */

struct folder_hosts_params {
    const char *group;
};

static const struct field folder_hosts_fields[] = {
    { "group_id|group", FIELD_STR, FIELD_NULLABLE, offsetof(struct folder_hosts_params, group), 1,
      64, .doc = "for folders of this project" },
    FIELD_END,
};

static void folder_add_host(json_t *allowed, json_t *info, const struct storage_host *host)
{
    json_t *percentage = host->capacity > 0
                             ? json_real(100.0 * (double)host->used / (double)host->capacity)
                             : json_null();
    json_t *about = json_pack("{s:s, s:O?, s:{s:o, s:n, s:n}, s:[]}", "backend", host->backend,
                              "capabilities", host->capabilities, "usage", "percentage", percentage,
                              "total", "used", "sftp_scaling_groups");

    (void)json_array_append_new(allowed, json_string(host->name));
    (void)json_object_set_new(info, host->name, about);
}

/* 'place' NULL = all of them. */
static json_t *folder_show_hosts(const struct api *api, const struct folder_place *place)
{
    json_auto_t *allowed = json_array(), *info = json_object();
    const struct storage_host *hosts;
    size_t count;

    hosts = storage_hosts_list(api->folder->hosts, &count);
    for (size_t i = 0; i < count; i++)
        if (!place || folder_rules_allow(api, place, hosts[i].name, "create-vfolder"))
            folder_add_host(allowed, info, &hosts[i]);
    return json_pack("{s:O?, s:O, s:O}", "default", json_array_get(allowed, 0), "allowed", allowed,
                     "volume_info", info);
}

static void folder_reply_hosts(struct request *req, json_t *hosts)
{
    struct folder_call call = { .req = req };

    folder_reply_json(&call, hosts);
}

static void folder_on_hosts(struct request *req, void *data)
{
    struct folder_hosts_params params = { .group = NULL };
    struct folder_place place = { .who = api_principal(req) };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0
        || (params.group && api_find_project(data, req, params.group, &place.project, &err) < 0))
        request_fail(req, &err);
    else
        folder_reply_hosts(req, folder_show_hosts(data, &place));
}

static void folder_on_all_hosts(struct request *req, void *data)
{
    if (api_has_no_params(req))
        folder_reply_hosts(req, folder_show_hosts(data, NULL));
}

static void folder_on_types(struct request *req, void *data)
{
    (void)data;
    if (api_has_no_params(req))
        folder_reply_hosts(req, json_pack("[s, s]", "user", "group"));
}

static const struct route folder_list_routes[] = {
    { METHOD_GET, "/folders", API_USER, folder_on_list, folder_list_fields,
      "Folders that the caller may use" },
    { METHOD_GET, "/aliquot/v1/folders", API_USER, folder_on_page, folder_list_fields,
      "Folders that the caller may use, in pages" },
    { METHOD_GET, "/folders/_/id", API_USER, folder_on_id, folder_id_fields,
      "The id of a folder, by name" },
    { METHOD_GET, "/folders/_/hosts", API_USER, folder_on_hosts, folder_hosts_fields,
      "Hosts where the caller may make folders" },
    { METHOD_GET, "/folders/_/all_hosts", API_SUPERADMIN, folder_on_all_hosts, NULL,
      "All hosts of folders that are connected" },
    { METHOD_GET, "/folders/_/all-hosts", API_SUPERADMIN, folder_on_all_hosts, NULL,
      "All hosts of folders that are connected" },
    { METHOD_GET, "/folders/_/allowed_types", API_USER, folder_on_types, NULL,
      "Who may own folders" },
    { METHOD_GET, "/folders/_/allowed-types", API_USER, folder_on_types, NULL,
      "Who may own folders" },
    { METHOD_GET, "/folders/{name}", API_USER, folder_on_info, NULL,
      "A folder, by name or id; its files are counted" },
};
API_ROUTES_END(folder_list);
