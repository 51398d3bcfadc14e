/* SPDX-License-Identifier: Apache-2.0 */
/* /folders/{name}/clone: another folder with the same files, as a background task. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/memory.h"
#include "manager/folder/folder_feature.h"
#include "manager/folder/folder_create.h"
#include "manager/folder/folder_jobs.h"
#include "manager/call/tasks.h"

struct folder_clone_params {
    const char *name, *host, *usage, *permission;
    bool is_cloneable;
};

#define AT(member) offsetof(struct folder_clone_params, member)

static const struct field folder_clone_fields[] = {
    { "target_name", FIELD_STR, FIELD_REQUIRED, AT(name), 1, FOLDER_NAME_MAX },
    { "target_host|folder_host", FIELD_STR, FIELD_NULLABLE, AT(host), 1, FOLDER_HOST_MAX,
      .doc = "that of the folder; no other yet" },
    { "usage_mode", FIELD_STR, FIELD_NULLABLE, AT(usage), 1, 16, .doc = "general, model or data" },
    { "permission", FIELD_STR, FIELD_NULLABLE, AT(permission), 1, 8, .doc = "ro, rw or wd" },
    { "cloneable", FIELD_BOOL, 0, AT(is_cloneable) },
    FIELD_END,
};

/* What goes on after the request was answered: its task's. */
struct folder_clone {
    struct api *api;
    struct task *task;
    struct folder folder; /* the new one; texts follow */
    int64_t room;         /* bytes that its owner may have besides; -1 = no limit */
    char name[FOLDER_NAME_MAX + 1], host[FOLDER_HOST_MAX + 1];
    char why[sizeof(((struct aq_error *)0)->text)];
};

/* ---- the task ---- */

static int folder_clone_settle_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    return folder_update(tx, &((const struct folder_clone *)data)->folder, err);
}

/* Whatever has not become whole is removed, now or after a restart. */
static void folder_clone_on_settled(void *data, int r, const struct aq_error *err)
{
    struct folder_clone *clone = data;
    bool is_whole = r == 0 && clone->folder.status == FOLDER_READY;

    if (r == 0 && !is_whole)
        folder_jobs_purge(clone->api->folder->jobs, &clone->folder);
    if (is_whole)
        task_end(clone->task, !is_whole, is_whole ? "" : clone->why[0] ? clone->why : err->text);
}

static void folder_clone_on_progress(void *data, int64_t done, int64_t total)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct folder_clone *clone = data;

    total = AQ_MAX(total, INT64_C(1));
    done = AQ_MAX(AQ_MIN(done, total), INT64_C(0));
    strbuf_adds(&text, "copied ");
    strbuf_add_size(&text, (uint64_t)done);
    strbuf_adds(&text, " of ");
    strbuf_add_size(&text, (uint64_t)total);
    task_set_total(clone->task, total);
    task_update(clone->task, done, text.data);
}

static void folder_clone_on_answer(void *data, json_t *answer, const struct aq_error *err)
{
    struct folder_clone *clone = data;

    AQ_FAULT("folder.clone.made");
    clone->folder.status = answer ? FOLDER_READY : FOLDER_DELETE_ONGOING;
    if (!answer)
        memcpy(clone->why, err->text, sizeof(clone->why));
    store_write(core_store(clone->api->core), folder_clone_settle_run, folder_clone_on_settled,
                clone);
}

/* ---- the request ---- */

/* The copy counts for its owner. */
static int folder_clone_check_bytes(struct store_tx *tx, const struct folder_call *call,
                                    struct folder_clone *clone, struct aq_error *err)
{
    const struct folder_owner owner = { clone->folder.user_id, clone->folder.project_id };
    int64_t most = call->limits.bytes;
    struct folder_use use;
    int r = folder_read_use(tx, &owner, &use, err);

    clone->room = most ? AQ_MAX(most - use.bytes, 0) : -1;
    if (r < 0 || clone->room < 0 || clone->folder.bytes <= clone->room)
        return r;
    return aq_fail_kind(
        err, EDQUOT, "quota-exceeded",
        "the folder has %lld bytes, and there is room for %lld; remove files, or have "
        "the limit raised",
        (long long)clone->folder.bytes, (long long)clone->room);
}

static int folder_clone_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_clone_params *params = call->params;
    struct folder_clone *clone = call->result;
    struct folder *target = &clone->folder;
    const struct folder source = call->folder;
    int r;

    if (params->host && strcmp(params->host, source.host) != 0)
        return aq_fail_field(err, ENOTSUP, "target_host",
                             "a folder of '%s' cannot be cloned to another host yet", source.host);
    (void)strcpy(clone->host, source.host);
    target->host = clone->host;
    target->files = source.files;
    target->bytes = source.bytes;
    call->folder = *target;
    if ((r = folder_check_room(tx, call, target, err)) < 0
        || (r = folder_clone_check_bytes(tx, call, clone, err)) < 0
        || (r = folder_insert(tx, target, err)) < 0)
        return r;
    r = folder_audit(tx, call, "clone-vfolder", json_pack("{s:s}", "name", source.name),
                     json_pack("{s:s, s:s}", "name", target->name, "host", target->host), err);
    call->folder.id = source.id;
    return r;
}

static void folder_clone_done(struct folder_call *call)
{
    struct folder_clone *clone = call->result;
    char source[UUID_TEXT_MAX], target[UUID_TEXT_MAX], task[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    json_auto_t *args = json_pack("{s:s, s:s, s:s}", "id", uuid_format(&call->folder.id, source),
                                  "to", uuid_format(&clone->folder.id, target), "user",
                                  uuid_format(&call->who.user_id, user));
    json_t *shown = folder_show(&clone->folder, &call->who);
    struct storage_call *asked;
    struct aq_error err = { 0 };

    AQ_FAULT("folder.clone.written");
    clone->task = task_start(call->api->tasks, &call->who.user_id, clone);
    task_set_total(clone->task, AQ_MAX(clone->folder.bytes, 1));
    if (clone->room >= 0)
        (void)json_object_set_new(args, "quota_bytes", json_integer(AQ_MAX(clone->room, 1)));
    if (storage_ask(call->api->folder->hosts, clone->host, "clone", args, folder_clone_on_answer,
                    clone, &asked, &err)
        == 0) {
        storage_call_follow(asked, folder_clone_on_progress);
        (void)json_object_set_new(shown, "bgtask_id",
                                  json_string(uuid_format(task_id(clone->task), task)));
        folder_reply_json(call, shown);
        return;
    }
    json_decref(shown);
    folder_clone_on_answer(clone, NULL, &err);
    request_fail(call->req, &err);
}

static int folder_clone_fill(struct folder_call *call, struct folder_clone *clone,
                             struct aq_error *err)
{
    const struct folder_clone_params *params = call->params;
    struct folder *target = &clone->folder;
    const struct folder_place place = { .who = api_principal(call->req) };

    if (!folder_name_is_valid(params->name))
        return api_fail_param(err, "target_name", "is no name of a folder");
    call->api->folder->has_automatic |= params->name[0] == '.';
    (void)strcpy(clone->name, params->name);
    *target = (struct folder){ .id = uuid_random(),
                               .name = clone->name,
                               .user_id = call->who.user_id,
                               .user_email = call->email,
                               .domain = place.who->domain,
                               .permission = FOLDER_READ_WRITE,
                               .is_cloneable = params->is_cloneable,
                               .status = FOLDER_CLONING,
                               .creator = call->email,
                               .created_usec = clock_realtime_usec() };
    call->limits = folder_rules_limits(call->api, &place);
    if (params->usage && folder_usage_parse(params->usage, &target->usage) < 0)
        return api_fail_param(err, "usage_mode", "must be general, model or data");
    return params->permission
               ? folder_read_permission("permission", params->permission, &target->permission, err)
               : 0;
}

static void folder_clone_on_failed(struct folder_call *call, const struct aq_error *err)
{
    free(call->result);
    folder_call_fail(call, err);
}

static void folder_on_clone(struct request *req, void *data)
{
    struct folder_call *call = folder_call_new(data, req, FOLDER_CLONE,
                                               sizeof(struct folder_clone_params), NULL);
    struct folder_clone *clone;
    struct aq_error err = { 0 };

    if (!call)
        return;
    call->result = clone = aq_alloc(sizeof(*clone));
    if (folder_clone_fill(call, clone, &err) < 0) {
        folder_clone_on_failed(call, &err);
        return;
    }
    clone->api = call->api;
    call->run = folder_clone_run;
    call->done = folder_clone_done;
    call->failed = folder_clone_on_failed;
    call->status = 201;
    folder_call_write(call);
}

static const struct route folder_clone_routes[] = {
    { METHOD_POST, "/folders/{name}/clone", API_USER | API_FREEZABLE, folder_on_clone,
      folder_clone_fields, "Clone a folder; its progress is a background task's",
      .answer = { 201 } },
};
API_ROUTES_END(folder_clone);
