/* SPDX-License-Identifier: Apache-2.0 */
/* /folders/{name}/...: files of a folder, which its storage host looks after. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/call/turns.h"
#include "manager/folder/folder_feature.h"
#include "manager/folder/folder_call.h"
#include "transfer/name.h"

#define FILES_MAX 1000   /* that are removed or made by one request */
#define LISTED_MAX 10000 /* entries of a request that does not ask for pages */
#define PAGE_MAX 10000 /* entries that a host is asked for at once; it gives fewer of long names */
#define SIZE_MAX_BYTES (INT64_C(1) << 50)

struct folder_files_params {
    const char *path, *source, *target, *new_name, *after;
    struct str_list paths;
    int64_t size, limit;
    bool parents, exist_ok, recursive, archive, tree, missing_ok;
};

#define AT(member) offsetof(struct folder_files_params, member)
#define PATH_FIELD(name, member)                                        \
    {                                                                   \
        name, FIELD_STR, FIELD_REQUIRED, AT(member), 1, FOLDER_PATH_MAX \
    }

static struct folder_call *folder_files_new(struct api *api, struct request *req, enum folder_op op)
{
    static const struct folder_files_params defaults = { .path = "." };

    return folder_call_new(api, req, op, sizeof(defaults), &defaults);
}

/* ---- folders in it ---- */

static const struct field folder_mkdir_fields[] = {
    { "path", FIELD_STR_LIST, FIELD_REQUIRED, AT(paths), .max = FILES_MAX },
    { "parents", FIELD_BOOL, FIELD_NULLABLE, AT(parents) },
    { "exist_ok", FIELD_BOOL, FIELD_NULLABLE, AT(exist_ok) },
    FIELD_END,
};

/* One path after the other; what fails is said of each, unless there is a single one. */
struct folder_mkdir {
    bool is_list;
    size_t next;
    json_t *success, *failed;
};

static void folder_mkdir_next(struct folder_call *call);

static void folder_mkdir_end(struct folder_call *call)
{
    struct folder_mkdir *mkdir = call->result;

    call->status = json_array_size(mkdir->failed) ? 207 : 200;
    folder_reply_json(call, json_pack("{s:{s:o, s:o}}", "results", "success",
                                      AQ_TAKE(mkdir->success), "failed", AQ_TAKE(mkdir->failed)));
}

static void folder_mkdir_answered(struct folder_call *call, json_t *answer,
                                  const struct aq_error *err)
{
    const struct folder_files_params *params = call->params;
    struct folder_mkdir *mkdir = call->result;
    const char *path = params->paths.items[mkdir->next++];
    struct aq_error known = answer ? (struct aq_error){ 0 } : folder_storage_error(err);

    if (!answer && !mkdir->is_list) {
        json_decref(AQ_TAKE(mkdir->success));
        json_decref(AQ_TAKE(mkdir->failed));
        request_fail(call->req, &known);
        return;
    }
    if (answer)
        (void)json_array_append_new(mkdir->success, json_pack("{s:s}", "item", path));
    else
        (void)json_array_append_new(mkdir->failed,
                                    json_pack("{s:s, s:s}", "item", path, "msg", known.text));
    folder_mkdir_next(call);
}

static void folder_mkdir_next(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;
    const struct folder_mkdir *mkdir = call->result;

    if (mkdir->next == params->paths.count)
        folder_mkdir_end(call);
    else
        folder_call_ask(call, "mkdir",
                        json_pack("{s:s, s:b, s:b}", "path", params->paths.items[mkdir->next],
                                  "parents", params->parents, "exist_ok", params->exist_ok),
                        folder_mkdir_answered);
}

static void folder_mkdir_done(struct folder_call *call)
{
    struct folder_mkdir *mkdir = call->result;

    mkdir->success = json_array();
    mkdir->failed = json_array();
    folder_mkdir_next(call);
}

static void folder_on_mkdir(struct request *req, void *data)
{
    struct folder_call *call = folder_files_new(data, req, FOLDER_WRITE);
    struct folder_mkdir *mkdir;

    if (!call)
        return;
    mkdir = arena_alloc(request_get_arena(req), sizeof(*mkdir));
    mkdir->is_list = json_is_array(json_object_get(call->tree, "path"));
    call->result = mkdir;
    call->done = folder_mkdir_done;
    folder_call_read(call);
}

/* ---- the list ---- */

static const struct field folder_list_files_fields[] = {
    { "path", FIELD_STR, 0, AT(path), 0, FOLDER_PATH_MAX, .doc = "the whole folder by default" },
    { "after", FIELD_STR, FIELD_NULLABLE, AT(after), 1, NAME_TEXT_MAX(255),
      .doc = "the last name of the page before" },
    { "limit", FIELD_INT, 0, AT(limit), 1, PAGE_MAX,
      .doc = "entries of a page at most; without it all are listed, if they are 10000 at most" },
    { "missing_ok", FIELD_BOOL, FIELD_NULLABLE, AT(missing_ok),
      .doc = "of a path that is not there: an empty list, and is_missing" },
    FIELD_END,
};

/* A user's lists of one storage host's files are read one after the other, as each may be
 * megabytes; a host that hangs keeps the user from no other.
 */
struct folder_files_list {
    struct folder_call *call;
    struct turn turn;
    struct uuid turn_of; /* the user and the host */
    json_t *items;
    bool more, is_file, is_missing;
};

static void folder_files_ask(struct folder_call *call, const char *after);

/* As ls -l has it. */
static char *folder_format_mode(json_int_t mode, char ret[11])
{
    static const char letters[] = "rwxrwxrwx";

    ret[0] = S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : '-';
    for (int i = 0; i < 9; i++)
        ret[1 + i] = mode & 0400 >> i ? letters[i] : '-';
    ret[10] = '\0';
    return ret;
}

static json_t *folder_show_file(const json_t *item)
{
    json_int_t created = json_integer_value(json_object_get(item, "created"));
    json_int_t modified = json_integer_value(json_object_get(item, "modified"));
    char born[CLOCK_ISO_MAX], changed[CLOCK_ISO_MAX], mode[11];

    return json_pack(
        "{s:O, s:O, s:O, s:s, s:s, s:s}", "name", json_object_get(item, "name"), "type",
        json_object_get(item, "type"), "size", json_object_get(item, "size"), "mode",
        folder_format_mode(json_integer_value(json_object_get(item, "mode")), mode), "created",
        clock_format_iso(created, born), "modified", clock_format_iso(modified, changed));
}

/* As clients before 26 read it. */
static json_t *folder_show_old_file(const json_t *item)
{
    double modified = (double)json_integer_value(json_object_get(item, "modified"))
                      / (double)USEC_PER_SEC;
    char mode[11];

    return json_pack("{s:O, s:O, s:s, s:f, s:f, s:f}", "filename", json_object_get(item, "name"),
                     "size", json_object_get(item, "size"), "mode",
                     folder_format_mode(json_integer_value(json_object_get(item, "mode")), mode),
                     "ctime", modified, "atime", modified, "mtime", modified);
}

static json_t *folder_show_files(const json_t *items, json_t *(*show)(const json_t *item))
{
    json_t *files = json_array();
    const json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
        (void)json_array_append_new(files, show(item));
    return files;
}

static void folder_files_end(struct folder_call *call)
{
    struct folder_files_list *list = call->result;
    struct turn_queue *turns = call->api->file_turns;
    const struct uuid turn_of = list->turn_of;
    bool is_old = principal_is_old(api_principal(call->req));
    json_auto_t *found = AQ_TAKE(list->items);
    json_auto_t *items = folder_show_files(found, folder_show_file);
    json_auto_t *old = is_old ? folder_show_files(found, folder_show_old_file) : json_array();
    AQ_CLEANUP(aq_freep) char *text = old ? json_dump_text(old, JSON_COMPACT) : NULL;

    folder_reply_json(call, items && text ? json_pack("{s:O, s:s, s:b, s:b, s:b}", "items", items,
                                                      "files", text, "more", list->more, "is_file",
                                                      list->is_file, "is_missing", list->is_missing)
                                          : NULL);
    turns_leave(turns, &turn_of);
}

static void folder_files_fail(struct folder_call *call, const struct aq_error *err)
{
    struct folder_files_list *list = call->result;
    struct turn_queue *turns = call->api->file_turns;
    const struct uuid turn_of = list->turn_of;

    json_decref(AQ_TAKE(list->items));
    request_fail(call->req, err);
    turns_leave(turns, &turn_of);
}

static void folder_files_answered(struct folder_call *call, json_t *answer,
                                  const struct aq_error *err)
{
    const struct folder_files_params *params = call->params;
    struct folder_files_list *list = call->result;
    json_t *items = json_object_get(answer, "items");
    size_t count;
    struct aq_error known = answer ? (struct aq_error){ 0 } : folder_storage_error(err);

    if (answer)
        (void)json_array_extend(list->items, items);
    count = json_array_size(list->items);
    list->is_file = json_is_true(json_object_get(answer, "is_file"));
    list->is_missing = json_is_true(json_object_get(answer, "is_missing"));
    list->more = json_is_true(json_object_get(answer, "more")) && json_array_size(items);
    if (!known.code && !params->limit && list->more && count >= LISTED_MAX)
        aq_fail_kind(&known, EMSGSIZE, "request-too-large",
                     "more than %d entries: ask for pages, with limit and after", LISTED_MAX);
    if (known.code)
        folder_files_fail(call, &known);
    else if (params->limit || !list->more)
        folder_files_end(call);
    else
        folder_files_ask(call, json_string_value(json_object_get(
                                   json_array_get(list->items, count - 1), "name")));
}

static void folder_files_ask(struct folder_call *call, const char *after)
{
    const struct folder_files_params *params = call->params;

    folder_call_ask(call, "list",
                    json_pack("{s:s, s:s?, s:b, s:I}", "path", params->path, "after", after,
                              "missing_ok", params->missing_ok, "limit",
                              (json_int_t)(params->limit ? params->limit : PAGE_MAX)),
                    folder_files_answered);
}

static void folder_files_done(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;
    struct folder_files_list *list = call->result;

    list->items = json_array();
    folder_files_ask(call, params->after);
}

static void folder_files_on_turn(struct turn *turn)
{
    struct folder_files_list *list = AQ_CONTAINER_OF(turn, struct folder_files_list, turn);
    struct folder_call *call = list->call;
    struct aq_error err = { 0 };

    if (api_check_caller(call->api, call->req, &err) < 0) {
        folder_files_fail(call, &err);
        return;
    }
    call->done = folder_files_done;
    call->failed = folder_files_fail;
    folder_call_read(call); /* what was found before the wait may have changed */
}

/* The folder says which host is asked. */
static void folder_files_found(struct folder_call *call)
{
    struct folder_files_list *list = call->result;
    uint64_t hash = 0;
    struct aq_error err = { 0 };

    list->turn_of = call->who.user_id;
    for (const char *at = call->folder.host; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < sizeof(hash); i++)
        list->turn_of.bytes[i] ^= (unsigned char)(hash >> (8 * i));
    list->turn.fn = folder_files_on_turn;
    if (turns_enter(call->api->file_turns, request_get_loop(call->req), &list->turn_of, &list->turn,
                    &err)
        < 0)
        folder_call_fail(call, &err);
}

static void folder_on_files(struct request *req, void *data)
{
    struct folder_call *call = folder_files_new(data, req, FOLDER_READ);
    struct folder_files_list *list;

    if (!call)
        return;
    call->done = folder_files_found;
    call->result = list = arena_alloc(request_get_arena(req), sizeof(*list));
    list->call = call;
    folder_call_read(call);
}

/* ---- up and down ---- */

static const struct field folder_upload_fields[] = {
    PATH_FIELD("path", path),
    { "size", FIELD_INT, FIELD_REQUIRED, AT(size), 0, SIZE_MAX_BYTES },
    { "tree", FIELD_BOOL, FIELD_NULLABLE, AT(tree), .doc = "for all files beneath the path" },
    FIELD_END,
};

static const struct field folder_download_fields[] = {
    PATH_FIELD("path|file", path),
    { "archive", FIELD_BOOL, FIELD_NULLABLE, AT(archive), .doc = "of a folder: as an archive" },
    { "tree", FIELD_BOOL, FIELD_NULLABLE, AT(tree), .doc = "for all files beneath the path" },
    FIELD_END,
};

static void folder_transfer_answered(struct folder_call *call, json_t *answer,
                                     const struct aq_error *err)
{
    json_t *token = json_object_get(answer, "token"), *url = json_object_get(answer, "url");
    struct aq_error known;

    if (answer) {
        call->status = 200;
        folder_reply_json(call, json_pack("{s:O, s:O}", "token", token, "url", url));
        return;
    }
    known = folder_storage_error(err);
    request_fail(call->req, &known);
}

static struct folder_place folder_place_of(const struct folder_call *call)
{
    return (struct folder_place){
        .who = api_principal(call->req),
        .project = core_find_project(call->api->core, &call->folder.project_id),
        .is_guest = !folder_is_owner(&call->folder, &call->who),
    };
}

static bool folder_check_host(struct folder_call *call, const char *permission)
{
    const struct folder_place place = folder_place_of(call);
    struct aq_error err = { 0 };

    if (folder_rules_allow(call->api, &place, call->folder.host, permission))
        return true;
    aq_fail_kind(&err, EPERM, "generic-forbidden", "you lack '%s' on the host '%s'", permission,
                 call->folder.host);
    request_fail(call->req, &err);
    return false;
}

/* What the owner has, to be held against the limit. */
static int folder_upload_run(struct store_tx *tx, struct folder_call *call, struct aq_error *err)
{
    const struct folder_owner owner = { call->folder.user_id, call->folder.project_id };
    struct folder_use *use = arena_alloc(request_get_arena(call->req), sizeof(*use));

    call->result = use;
    return folder_read_use(tx, &owner, use, err);
}

/* How much the folder may hold in all, with what the owner's other folders do; -1 = no limit. */
static int64_t folder_limit_of(struct folder_call *call)
{
    const struct folder_use *use = call->result;
    const struct folder_place place = folder_place_of(call);
    int64_t bytes = folder_rules_limits(call->api, &place).bytes, own = call->folder.bytes_max;
    int64_t others = AQ_MAX(use->bytes - call->folder.bytes, 0);
    int64_t limit = bytes ? AQ_MAX(bytes - others, 0) : -1;

    return !own ? limit : limit < 0 ? own : AQ_MIN(limit, own);
}

/* Refuses a token early, by the size that the storage host reported last; the storage host checks
 * again. A full folder must not get a token, because a limit of 0 means unlimited.
 */
static int folder_check_fits(const struct folder_call *call, int64_t limit, struct aq_error *err)
{
    const struct folder_files_params *params = call->params;
    int64_t room = AQ_MAX(limit - call->folder.bytes, 0);

    if (limit < 0 || (params->size <= room && (limit || (!params->size && !params->tree))))
        return 0;
    return aq_fail_kind(
        err, EDQUOT, "quota-exceeded",
        "the file has %lld bytes, and there is room for %lld; remove files, or have "
        "the limit raised",
        (long long)params->size, (long long)room);
}

static void folder_upload_done(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;
    int64_t limit = folder_limit_of(call);
    struct aq_error err = { 0 };
    json_t *args;

    if (!folder_check_host(call, "upload-file"))
        return;
    if (folder_check_fits(call, limit, &err) < 0) {
        request_fail(call->req, &err);
        return;
    }
    args = json_pack("{s:s, s:I, s:b}", "path", params->path, "size", (json_int_t)params->size,
                     "tree", params->tree);
    if (limit > 0)
        (void)json_object_set_new(args, "quota_bytes", json_integer(limit));
    folder_call_ask(call, "upload", args, folder_transfer_answered);
}

static void folder_on_upload(struct request *req, void *data)
{
    struct folder_call *call = folder_files_new(data, req, FOLDER_WRITE);

    if (!call)
        return;
    call->run = folder_upload_run;
    call->done = folder_upload_done;
    folder_call_read(call);
}

static void folder_download_done(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;

    if (folder_check_host(call, "download-file"))
        folder_call_ask(call, "download",
                        json_pack("{s:s, s:b, s:b}", "path", params->path, "archive",
                                  params->archive, "tree", params->tree),
                        folder_transfer_answered);
}

static void folder_on_download(struct request *req, void *data)
{
    struct folder_call *call = folder_files_new(data, req, FOLDER_READ);

    if (!call)
        return;
    call->done = folder_download_done;
    folder_call_read(call);
}

/* ---- moving and removing ---- */

static void folder_change_answered(struct folder_call *call, json_t *answer,
                                   const struct aq_error *err)
{
    struct aq_error known;

    if (answer) {
        folder_reply_empty_object(call);
        return;
    }
    known = folder_storage_error(err);
    request_fail(call->req, &known);
}

static const struct field folder_move_fields[] = {
    PATH_FIELD("src", source),
    PATH_FIELD("dst", target),
    FIELD_END,
};

static void folder_move_done(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;

    folder_call_ask(call, "move",
                    json_pack("{s:s, s:s}", "src", params->source, "dst", params->target),
                    folder_change_answered);
}

static const struct field folder_rename_file_fields[] = {
    PATH_FIELD("target_path", path),
    { "new_name", FIELD_STR, FIELD_REQUIRED, AT(new_name), 1, NAME_TEXT_MAX(255) },
    { "is_dir", FIELD_IGNORED, 0 },
    FIELD_END,
};

static void folder_rename_file_done(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;

    folder_call_ask(call, "rename",
                    json_pack("{s:s, s:s}", "path", params->path, "new_name", params->new_name),
                    folder_change_answered);
}

static const struct field folder_delete_files_fields[] = {
    { "files", FIELD_STR_LIST, FIELD_REQUIRED, AT(paths), .max = FILES_MAX },
    { "recursive", FIELD_BOOL, FIELD_NULLABLE, AT(recursive) },
    FIELD_END,
};

static void folder_delete_files_done(struct folder_call *call)
{
    const struct folder_files_params *params = call->params;
    json_t *files = json_array();

    for (size_t i = 0; i < params->paths.count; i++)
        (void)json_array_append_new(files, json_string(params->paths.items[i]));
    folder_call_ask(call, "delete",
                    json_pack("{s:o, s:b}", "files", files, "recursive", params->recursive),
                    folder_change_answered);
}

static void folder_files_start(struct api *api, struct request *req, folder_done_fn *done)
{
    struct folder_call *call = folder_files_new(api, req, FOLDER_WRITE);

    if (!call)
        return;
    call->done = done;
    folder_call_read(call);
}

static void folder_on_move(struct request *req, void *data)
{
    folder_files_start(data, req, folder_move_done);
}

static void folder_on_rename_file(struct request *req, void *data)
{
    folder_files_start(data, req, folder_rename_file_done);
}

static void folder_on_delete_files(struct request *req, void *data)
{
    folder_files_start(data, req, folder_delete_files_done);
}

#define CHANGE (API_USER | API_FREEZABLE)

static const struct route folder_files_routes[] = {
    { METHOD_POST, "/folders/{name}/mkdir", CHANGE, folder_on_mkdir, folder_mkdir_fields,
      "Make folders in a folder", .answer = { 200, 207 } },
    { METHOD_GET, "/folders/{name}/files", API_USER, folder_on_files, folder_list_files_fields,
      "Files of a folder" },
    { METHOD_POST, "/folders/{name}/request-upload", CHANGE, folder_on_upload, folder_upload_fields,
      "A token and an address to send a file to, by tus" },
    { METHOD_POST, "/folders/{name}/request-download", API_USER, folder_on_download,
      folder_download_fields, "A token and an address to get a file from" },
    { METHOD_POST, "/folders/{name}/move-file", CHANGE, folder_on_move, folder_move_fields,
      "Move a file" },
    { METHOD_POST, "/folders/{name}/rename-file", CHANGE, folder_on_rename_file,
      folder_rename_file_fields, "Rename a file" },
    { METHOD_DELETE, "/folders/{name}/delete-files", CHANGE, folder_on_delete_files,
      folder_delete_files_fields, "Remove files" },
};
API_ROUTES_END(folder_files);
