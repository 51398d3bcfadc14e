/* SPDX-License-Identifier: Apache-2.0 */
/* Making a folder; see folder_create.h. */
#include "manager/folder/folder_create.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/json_load.h"
#include "manager/call/repeat.h"
#include "manager/folder/folder_jobs.h"
#include "manager/folder/folder_feature.h"
#include "manager/rules/folder_find.h"

const struct folder_create_params folder_create_defaults = { .quota = "0" };

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
    if (call->folder.domain)
        call->folder.domain = arena_strdup(request_get_arena(call->req), call->folder.domain);
    call->limits = folder_rules_limits(call->api, place);
    return 0;
}

static int folder_choose_host(struct folder_call *call, const struct folder_place *place,
                              const char *wanted, struct aq_error *err)
{
    const struct storage_host *hosts;
    size_t count;

    hosts = storage_hosts_list(call->api->folder->hosts, &count);
    for (size_t i = 0; !call->folder.host && i < count; i++)
        if ((!wanted || strcmp(wanted, hosts[i].name) == 0)
            && folder_rules_allow(call->api, place, hosts[i].name, "create-vfolder"))
            call->folder.host = arena_strdup(request_get_arena(call->req), hosts[i].name);
    if (call->folder.host)
        return 0;
    if (wanted && storage_hosts_find(call->api->folder->hosts, wanted))
        return aq_fail_kind(err, EPERM, "generic-forbidden", "you may not make folders on '%s'",
                            wanted);
    if (wanted)
        return api_fail_param(err, "host", "no host '%.128s' is connected", wanted);
    return aq_fail_kind(err, EHOSTUNREACH, "vfolder-creation-failed",
                        "no host is connected where you may make folders");
}

int folder_read_options(struct folder *folder, const char *usage, const char *permission,
                        struct aq_error *err)
{
    if (usage && folder_usage_parse(usage, &folder->usage) < 0)
        return api_fail_param(err, "usage_mode", "must be general, model or data");
    return permission ? folder_read_permission("permission", permission, &folder->permission, err)
                      : 0;
}

int folder_check_new_name(struct api *api, const char *field, const char *name,
                          struct aq_error *err)
{
    api->folder->has_automatic |= name[0] == '.';
    if (folder_name_is_valid(name))
        return 0;
    return api_fail_param(err, field,
                          "must be 1 to %d letters, digits, dots, hyphens and underscores, with "
                          "a letter or digit first, or a dot before it; '.ssh' is reserved",
                          FOLDER_NAME_MAX);
}

json_t *folder_audit_side(const struct folder *folder)
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

/* Of a copy of a request that is not answered yet, the folder is there, and is not made yet. */
static int folder_create_check_made(struct store_tx *tx, struct folder_call *call,
                                    struct aq_error *err)
{
    struct folder there = { .name = NULL };

    if (folder_find(tx, &call->who, call->folder.name, request_get_arena(call->req), &there, NULL)
            < 0
        || there.status != FOLDER_PERFORMING)
        return -EEXIST;
    return aq_fail_kind(err, EAGAIN, "service-unavailable",
                        "a folder '%s' is being made; try again soon", call->folder.name);
}

static int folder_create_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    int r = folder_check_room(tx, call, &call->folder, err);

    if (r == -EEXIST && call->is_once)
        r = folder_create_check_made(tx, call, err);
    if (r < 0 || (r = folder_insert(tx, &call->folder, err)) < 0)
        return r;
    return folder_audit(tx, call, "create-vfolder", NULL, folder_audit_side(&call->folder), err);
}

/* ---- its files' place ---- */

/* store_tx_fn: as the storage host has answered; with the answer to the request. */
static int folder_settle_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct folder_call *call = data;
    int r = folder_update(tx, &call->folder, err);

    return r == 0 && call->kept ? repeat_keep(tx, call->req, call->status, call->kept, err) : r;
}

static void folder_create_reply_kept(struct folder_call *call)
{
    repeat_note_answered(call->api, call->req);
    request_reply(call->req, call->status, "application/json", call->kept, strlen(call->kept));
}

static void folder_create_keep(struct folder_call *call)
{
    json_auto_t *shown = folder_show(&call->folder, &call->who);
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(shown, JSON_COMPACT);

    call->kept = arena_strdup(request_get_arena(call->req), text);
}

static void folder_create_on_ready(void *data, int r, const struct aq_error *err)
{
    struct folder_call *call = data;

    if (r < 0)
        folder_call_fail(call, err);
    else if (call->finish)
        call->finish(call, NULL);
    else if (call->kept)
        folder_create_reply_kept(call);
    else
        folder_reply_json(call, folder_show(&call->folder, &call->who));
}

/* Of one that could not be made the row goes, too. */
static void folder_create_on_refused(void *data, int r, const struct aq_error *err)
{
    struct folder_call *call = data;

    (void)err;
    if (r == 0)
        folder_jobs_purge(call->api->folder->jobs, &call->folder);
    folder_call_fail(call, call->result);
}

static void folder_create_answered(struct folder_call *call, json_t *answer,
                                   const struct aq_error *err)
{
    struct store *store = core_store(call->api->core);

    if (!answer) {
        struct aq_error *why = arena_alloc(request_get_arena(call->req), sizeof(*why));

        *why = folder_storage_error(err);
        why->kind = "vfolder-creation-failed";
        call->result = why;
    }
    AQ_FAULT("folder.create.made");
    call->folder.status = answer ? FOLDER_READY : FOLDER_DELETE_ONGOING;
    if (answer && call->is_once)
        folder_create_keep(call);
    store_write(store, folder_settle_run,
                answer ? folder_create_on_ready : folder_create_on_refused, call);
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
    folder->created_usec = folder->measured_usec = clock_realtime_usec(); /* it is empty */
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

void folder_create(struct folder_call *call)
{
    struct aq_error err = { 0 };

    if (folder_create_fill(call, &err) < 0) {
        folder_call_fail(call, &err);
        return;
    }
    call->run = folder_create_run;
    call->done = folder_create_done;
    call->status = 201;
    folder_call_write(call);
}
