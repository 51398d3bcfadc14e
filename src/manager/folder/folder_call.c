/* SPDX-License-Identifier: Apache-2.0 */
/* What requests on folders share: finding the folder, the right to it, and its storage host. */
#include "manager/folder/folder_call.h"

#include <errno.h>
#include <string.h>

#include "manager/folder/folder_feature.h"

#include "base/clock.h"
#include "base/fs.h"
#include "base/json_load.h"
#include "manager/call/repeat.h"
#include "manager/rules/folder_find.h"

#define MIB 1048576

/* ---- the request ---- */

/* Who asks, as of now. */
static void folder_read_viewer(struct folder_call *call)
{
    const struct principal *who = api_principal(call->req);
    const struct user *user = core_find_user(call->api->core, &who->user_id);
    struct arena *arena = request_get_arena(call->req);

    call->who.user_id = who->user_id;
    call->who.is_superadmin = principal_is_superadmin(who);
    call->by = api_who(call->api, call->req);
    call->email = arena_strdup(arena, user ? user->email : "");
    if (who->role == ROLE_ADMIN && who->domain)
        call->who.admin_of = arena_strdup(arena, who->domain);
}

struct folder_call *folder_call_make(struct api *api, struct request *req, enum folder_op op,
                                     size_t params_size, const void *defaults)
{
    struct folder_call *call = arena_alloc(request_get_arena(req), sizeof(*call));

    call->params = arena_alloc(request_get_arena(req), AQ_MAX(params_size, 1));
    if (defaults)
        memcpy(call->params, defaults, params_size);
    call->api = api;
    call->req = req;
    call->op = op;
    call->done = folder_reply;
    folder_read_viewer(call);
    return call;
}

struct folder_call *folder_call_new(struct api *api, struct request *req, enum folder_op op,
                                    size_t params_size, const void *defaults)
{
    struct folder_call *call = folder_call_make(api, req, op, params_size, defaults);
    struct aq_error err = { 0 };

    call->name = request_get_param(req, "name");
    if (api_decode(req, call->params, &call->tree, &err) == 0)
        return call;
    json_decref(call->tree);
    request_fail(req, &err);
    return NULL;
}

void folder_call_fail(struct folder_call *call, const struct aq_error *err)
{
    json_decref(AQ_TAKE(call->tree));
    if (call->finish)
        call->finish(call, err);
    else if (call->is_once)
        repeat_fail(call->api, call->req, err, NULL);
    else
        request_fail(call->req, err);
}

/* ---- the store's part ---- */

static int folder_check_state(const struct folder_call *call, struct aq_error *err)
{
    const struct folder *folder = &call->folder;
    static const unsigned allowed[] = {
        [FOLDER_IF_READY] = 1u << FOLDER_READY,
        [FOLDER_IF_IN_TRASH] = 1u << FOLDER_DELETE_PENDING,
        [FOLDER_IF_SETTLED] = 1u << FOLDER_READY | 1u << FOLDER_DELETE_PENDING,
        [FOLDER_IN_ANY_STATE] = ~0u,
    };

    if (allowed[call->states] & 1u << folder->status)
        return 0;
    return aq_fail_kind(err, EBUSY, "vfolder-operation-failed", "the folder '%s' is %s",
                        folder->name, folder_status_words(folder->status));
}

static int folder_check_right(const struct folder_call *call, struct aq_error *err)
{
    static const char *const ops[FOLDER_OPS] = {
        [FOLDER_SEE] = "seen",         [FOLDER_READ] = "read",
        [FOLDER_WRITE] = "written to", [FOLDER_DELETE] = "deleted",
        [FOLDER_RESTORE] = "restored", [FOLDER_PURGE] = "purged",
        [FOLDER_CHANGE] = "changed",   [FOLDER_INVITE] = "offered to others",
        [FOLDER_SHARE] = "shared",     [FOLDER_CLONE] = "cloned",
        [FOLDER_LEAVE] = "left",       [FOLDER_GIVE] = "given to another owner",
    };
    const struct folder *folder = &call->folder;

    if (folder_may(folder, &call->who, call->op))
        return 0;
    if (call->op == FOLDER_CLONE && !folder->is_cloneable)
        return aq_fail_kind(err, EPERM, "generic-forbidden", "the folder '%s' is not cloneable",
                            folder->name);
    return aq_fail_kind(err, EPERM, "generic-forbidden",
                        "the folder '%s' cannot be %s by you: your permission is %s", folder->name,
                        ops[call->op],
                        folder_permission_name(folder_permission_of(folder, &call->who)));
}

/* store_tx_fn */
static int folder_call_run(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct folder_call *call = data;
    int r = 0;

    if (call->name
        && ((r = folder_find(tx, &call->who, call->name, request_get_arena(call->req),
                             &call->folder, err))
                < 0
            || (r = folder_check_right(call, err)) < 0 || (r = folder_check_state(call, err)) < 0))
        return r;
    return call->run ? call->run(tx, call, err) : 0;
}

static void folder_call_on_run(void *data, int r, const struct aq_error *err)
{
    struct folder_call *call = data;

    if (r == -EPERM && request_get_method(call->req) != METHOD_GET)
        api_note_denied(call->api, call->req, "vfolder", call->folder.name);
    if (r < 0) {
        (call->failed ? call->failed : folder_call_fail)(call, err);
        return;
    }
    json_decref(AQ_TAKE(call->tree));
    call->done(call);
}

void folder_call_read(struct folder_call *call)
{
    store_read(core_store(call->api->core), folder_call_run, folder_call_on_run, call);
}

void folder_call_write(struct folder_call *call)
{
    store_write(core_store(call->api->core), folder_call_run, folder_call_on_run, call);
}

/* ---- the audit log ---- */

int folder_audit(struct store_tx *tx, const struct folder_call *call, const char *action,
                 json_t *before, json_t *after, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *old = before ? json_dump_text(before, JSON_COMPACT) : NULL;
    AQ_CLEANUP(aq_freep) char *fresh = after ? json_dump_text(after, JSON_COMPACT) : NULL;
    char id[UUID_TEXT_MAX];

    json_decref(before);
    json_decref(after);
    return audit_log_add_change(tx, call->by,
                                &(struct audit_change){
                                    .action = action,
                                    .object_kind = "vfolder",
                                    .object_id = uuid_format(&call->folder.id, id),
                                    .object_name = call->folder.name,
                                    .object_domain = call->folder.domain,
                                    .before = old,
                                    .after = fresh,
                                },
                                err);
}

/* ---- the storage's part ---- */

struct aq_error folder_storage_error(const struct aq_error *err)
{
    struct aq_error known = *err;

    switch (err->code) {
    case ENOENT:
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case EINVAL:
    case ELOOP:
    case ENAMETOOLONG:
        if (!known.kind)
            known.kind = "vfolder-operation-failed";
        break;
    default:
        if (!known.kind && !fs_is_out_of_room(err->code))
            known.kind = "storage-proxy-error";
    }
    return known;
}

static void folder_call_take_answer(struct folder_call *call, json_t *answer,
                                    const struct aq_error *err)
{
    struct aq_error known;

    if (err && !call->answered) {
        known = folder_storage_error(err);
        folder_call_fail(call, &known);
    } else if (call->answered) {
        call->answered(call, answer, err);
    } else {
        folder_reply(call);
    }
}

static void folder_call_on_answer(void *data, json_t *answer, const struct aq_error *err)
{
    struct folder_call *call = data;

    if (call->asked && !call->finish)
        request_set_gone(call->req, NULL, NULL);
    call->asked = NULL;
    folder_call_take_answer(call, answer, err);
}

static void folder_call_on_gone(struct request *req, void *data)
{
    struct folder_call *call = data;
    struct aq_error err = { 0 };

    (void)req;
    storage_call_cancel(AQ_TAKE(call->asked));
    (void)aq_fail(&err, ECANCELED, "the client has gone");
    folder_call_take_answer(call, NULL, &err);
}

/* What of the storage's work ends with its client. A call that is a part of another request has no
 * say in when that ends.
 */
static bool folder_call_ends_with_client(const struct folder_call *call, const char *op)
{
    static const char *const ops[] = { "usage", "list", "delete", "download" };

    for (size_t i = 0; i < AQ_COUNT(ops); i++)
        if (strcmp(ops[i], op) == 0)
            return !call->finish;
    return false;
}

void folder_call_ask(struct folder_call *call, const char *op, json_t *args,
                     folder_answer_fn *answered)
{
    json_auto_t *all = args;
    struct storage_call *asked;
    struct aq_error err = { 0 };
    char id[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    bool ends = folder_call_ends_with_client(call, op);

    call->answered = answered;
    (void)json_object_set_new(all, "id", json_string(uuid_format(&call->folder.id, id)));
    (void)json_object_set_new(all, "user", json_string(uuid_format(&call->who.user_id, user)));
    (void)json_object_set_new(all, "key", json_string(api_principal(call->req)->access_key));
    if (ends && request_is_gone(call->req))
        (void)aq_fail(&err, ECANCELED, "the client has gone");
    else
        (void)storage_ask(call->api->folder->hosts, call->folder.host, op, all,
                          folder_call_on_answer, call, &asked, &err);
    if (err.code) {
        folder_call_on_answer(call, NULL, &err);
    } else if (ends) {
        call->asked = asked;
        request_set_gone(call->req, folder_call_on_gone, call);
    }
}

/* ---- answers ---- */

void folder_reply(struct folder_call *call)
{
    if (call->finish)
        call->finish(call, NULL);
    else
        request_reply_empty(call->req, call->status ? call->status : 204);
}

void folder_reply_empty_object(struct folder_call *call)
{
    request_reply(call->req, call->status ? call->status : 200, "application/json", "{}", 2);
}

void folder_reply_json(struct folder_call *call, json_t *body)
{
    AQ_CLEANUP(aq_freep) char *text = json_dump_text(body, JSON_COMPACT);

    json_decref(body);
    request_reply(call->req, call->status ? call->status : 200, "application/json", text,
                  strlen(text));
}

int folder_read_permission(const char *field, const char *text, enum folder_permission *ret,
                           struct aq_error *err)
{
    if (folder_permission_parse(text, ret) < 0)
        return api_fail_param(err, field, "must be ro, rw or wd");
    return 0;
}

static const char *folder_format_time(int64_t usec, char iso[CLOCK_ISO_MAX])
{
    return usec ? clock_format_iso(usec, iso) : NULL;
}

static const char *folder_format_id(const struct uuid *id, char text[UUID_TEXT_MAX])
{
    return uuid_is_nil(id) ? NULL : uuid_format(id, text);
}

/* A folder that was never measured is not shown as an empty one. */
static json_t *folder_show_count(const struct folder *f, int64_t count)
{
    return f->measured_usec ? json_integer(count) : json_null();
}

json_t *folder_show(const struct folder *f, const struct folder_viewer *who)
{
    char created[CLOCK_ISO_MAX], used[CLOCK_ISO_MAX], user[UUID_TEXT_MAX], project[UUID_TEXT_MAX];
    char measured[CLOCK_ISO_MAX], id[UUID_TEXT_MAX], hex[33];
    const char *type = uuid_is_nil(&f->project_id) ? "user" : "group";
    size_t n = 0;

    (void)uuid_format(&f->id, id);
    for (const char *at = id; *at; at++)
        if (*at != '-')
            hex[n++] = *at;
    hex[n] = '\0';
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:b, s:s, s:s?, s:s?, s:s, s:s?, s:s?, s:s, s:s, s:b, s:i, s:o,"
        " s:o, s:o, s:o, s:o, s:s?, s:s, s:s, s:s?, s:n}",
        "id", hex, "name", f->name, "host", f->host, "status", folder_status_name(f->status),
        "usage_mode", folder_usage_name(f->usage), "is_owner", folder_is_owner(f, who),
        "permission", folder_permission_name(folder_permission_shown(f, who)), "user",
        folder_format_id(&f->user_id, user), "group", folder_format_id(&f->project_id, project),
        "creator", f->creator, "user_email", f->user_email, "group_name", f->project_name,
        "ownership_type", type, "type", type, "cloneable", f->is_cloneable, "max_files", 0,
        "max_size", f->bytes_max ? json_integer((f->bytes_max + MIB - 1) / MIB) : json_null(),
        "numFiles", folder_show_count(f, f->files), "num_files", folder_show_count(f, f->files),
        "used_bytes", folder_show_count(f, f->bytes), "cur_size", folder_show_count(f, f->bytes),
        "measured_at", folder_format_time(f->measured_usec, measured), "created",
        folder_format_time(f->created_usec, created), "created_at", created, "last_used",
        folder_format_time(f->used_usec, used), "unmanaged_path");
}
