/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c - see ops.h */
#include "storage/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/jsonw.h"
#include "storage/folder.h"
#include "storage/upload.h"
#include "storage/volume.h"

#define LIST_DEFAULT 1000

struct op_args {
    struct volume *volume;
    struct uuid id, user; /* nil = not said */
    int root;             /* of the folder; -1 if the op opens none */
    const json_t *json;
    struct op_progress *progress;
};

/* ---- arguments ---- */

static const char *op_text(const json_t *args, const char *name, const char *usual)
{
    const json_t *value = json_object_get(args, name);

    return json_is_string(value) ? json_string_value(value) : usual;
}

static bool op_flag(const json_t *args, const char *name)
{
    return json_is_true(json_object_get(args, name));
}

static int op_number(const json_t *args, const char *name, int64_t most, uint64_t *ret,
                     struct aq_error *err)
{
    const json_t *value = json_object_get(args, name);
    int64_t number = json_integer_value(value);

    if (!value || json_is_null(value))
        return 0;
    if (!json_is_integer(value) || number < 0 || number > most)
        return aq_fail_field(err, EINVAL, name, "must be a number from 0 to %lld", (long long)most);
    *ret = (uint64_t)number;
    return 0;
}

static int op_path(const json_t *args, const char *name, bool may_be_root, char ret[PATH_MAX],
                   struct aq_error *err)
{
    const char *text = op_text(args, name, may_be_root ? "" : NULL);

    return text ? folder_clean(name, text, may_be_root, ret, err)
                : aq_fail_field(err, EINVAL, name, "must be given");
}

/* ---- what there is to do ---- */

static int op_create(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    (void)out;
    return volume_create_folder(&a->volume->dir, &a->id, err);
}

static int op_purge(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    (void)out;
    return volume_drop_folder(&a->volume->dir, &a->id, err);
}

static int op_clone(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    struct tree_usage usage;
    uint64_t quota = 0;
    struct uuid to;
    int r = op_number(a->json, "quota_bytes", INT64_MAX, &quota, err);

    (void)out;
    if (r < 0)
        return r;
    if (uuid_parse(op_text(a->json, "to", ""), &to) < 0)
        return aq_fail_field(err, EINVAL, "to", "must be a folder's id");
    if (!usage_read(a->volume->storage->usage, &a->id, &usage))
        return aq_fail(err, EAGAIN, "the folder has not been counted yet; try again");
    if (quota && usage.bytes > quota)
        return aq_fail(err, EDQUOT, "the folder has %llu bytes, and its copy may have %llu",
                       (unsigned long long)usage.bytes, (unsigned long long)quota);
    a->progress->total = usage.bytes;
    return volume_clone_folder(&a->volume->dir, &a->id, &to, quota, &a->progress->done, err);
}

static int op_mkdir(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    char path[PATH_MAX];
    int r = op_path(a->json, "path", false, path, err);

    (void)out;
    return r < 0 ? r
                 : folder_mkdir(a->root, path, op_flag(a->json, "parents"),
                                op_flag(a->json, "exist_ok"), err);
}

static int op_list(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    uint64_t limit = LIST_DEFAULT;
    char path[PATH_MAX];
    int r = op_path(a->json, "path", true, path, err);

    if (r == 0)
        r = op_number(a->json, "limit", FOLDER_LIST_MAX, &limit, err);
    if (r == 0)
        r = folder_list(a->root, path, op_text(a->json, "after", ""), (size_t)limit, out, err);
    if (r == -ENOENT && op_flag(a->json, "missing_ok")) {
        *err = (struct aq_error){ 0 };
        strbuf_adds(out, "{\"items\":[],\"more\":false,\"is_missing\":true}");
        return 0;
    }
    return r;
}

static int op_read(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(out);
    char path[PATH_MAX];
    int r = op_path(a->json, "path", false, path, err);

    if (r == 0)
        r = folder_read(a->root, path, &text, err);
    if (r < 0)
        return r;
    jsonw_object_begin(&w);
    jsonw_key(&w, "text");
    jsonw_strn(&w, text.len ? text.data : "", text.len);
    jsonw_object_end(&w);
    return 0;
}

static int op_move(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    char src[PATH_MAX], dst[PATH_MAX];
    int r = op_path(a->json, "src", false, src, err);

    (void)out;
    if (r == 0)
        r = op_text(a->json, "dst", NULL) ? op_path(a->json, "dst", true, dst, err)
                                          : aq_fail_field(err, EINVAL, "dst", "must be given");
    return r < 0 ? r : folder_move(a->root, src, dst, err);
}

static int op_rename(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    const char *name = op_text(a->json, "new_name", "");
    char path[PATH_MAX];
    int r = op_path(a->json, "path", false, path, err);

    (void)out;
    return r < 0 ? r : folder_rename(a->root, path, name, err);
}

/* All are looked at before the first one goes. */
static int op_delete(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    const json_t *files = json_object_get(a->json, "files");
    uint64_t freed = 0;
    char path[PATH_MAX];
    int r = json_array_size(files) ? 0 : aq_fail_field(err, EINVAL, "files", "must be given");

    (void)out;
    for (size_t i = 0; r == 0 && i < json_array_size(files); i++) {
        const char *text = json_string_value(json_array_get(files, i));

        r = folder_clean("files", text ? text : "", false, path, err);
    }
    for (size_t i = 0; r == 0 && i < json_array_size(files); i++) {
        r = folder_clean("files", json_string_value(json_array_get(files, i)), false, path, err);
        if (r == 0)
            r = folder_delete(a->root, path, op_flag(a->json, "recursive"), &freed, err);
    }
    usage_give(a->volume->storage->usage, &a->id, freed);
    return r;
}

static int op_usage(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    struct jsonw w = jsonw_make(out);
    struct tree_usage usage;

    if (!usage_read(a->volume->storage->usage, &a->id, &usage))
        return aq_fail(err, EAGAIN, "the folder has not been counted yet; try again");
    jsonw_object_begin(&w);
    jsonw_member_int(&w, "files", (int64_t)usage.files);
    jsonw_member_int(&w, "bytes", (int64_t)usage.bytes);
    jsonw_object_end(&w);
    return 0;
}

/* The caller touches the folder: see op_touches(). */
static int op_recount(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    (void)a;
    (void)out;
    (void)err;
    return 0;
}

static int op_write_token(const struct op_args *a, struct token *token, struct strbuf *out,
                          struct aq_error *err)
{
    const struct storage *storage = a->volume->storage;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, url = STRBUF_INIT;
    struct jsonw w = jsonw_make(out);

    if (uuid_is_nil(&a->user))
        return aq_fail_field(err, EINVAL, "user", "must be the id of the user who asks");
    (void)snprintf(token->access_key, sizeof(token->access_key), "%s", op_text(a->json, "key", ""));
    token->folder_id = a->id;
    token->user_id = a->user;
    token->issued_usec = clock_realtime_usec();
    token->expires_usec = token->issued_usec + storage->settings->token_usec;
    (void)snprintf(token->volume, sizeof(token->volume), "%s", a->volume->name);
    token_write(storage->key, token, &text);
    strbuf_addf(&url, "%s/%s", storage->settings->common.public_url,
                token->direction == TOKEN_UPLOAD ? "upload" : "download");
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "token", text.data);
    jsonw_member_str(&w, "url", url.data);
    jsonw_object_end(&w);
    return 0;
}

/* Of all beneath a directory, which need not be there. */
static int op_upload_tree(const struct op_args *a, struct token *token, struct strbuf *out,
                          struct aq_error *err)
{
    int r = op_path(a->json, "path", true, token->path, err);

    if (r == 0)
        r = usage_check(a->volume->storage->usage, &a->id, token->quota_bytes, token->size, err);
    token->is_tree = true;
    return r < 0 ? r : op_write_token(a, token, out, err);
}

/* A file without bytes is there at once: clients send nothing for it. */
static int op_upload(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    struct token token = { .direction = TOKEN_UPLOAD, .upload_id = uuid_random() };
    struct upload upload = { .fd = -1 };
    int r = json_is_integer(json_object_get(a->json, "size"))
                ? op_number(a->json, "size", UPLOAD_SIZE_MAX, &token.size, err)
                : aq_fail_field(err, EINVAL, "size", "must be given");

    if (r == 0)
        r = op_number(a->json, "quota_bytes", INT64_MAX, &token.quota_bytes, err);
    if (r == 0 && op_flag(a->json, "tree"))
        return op_upload_tree(a, &token, out, err);
    if (r == 0)
        r = op_path(a->json, "path", false, token.path, err);
    if (r == 0)
        r = upload_check(a->root, &token, err);
    if (r == 0)
        r = usage_check(a->volume->storage->usage, &a->id, token.quota_bytes, token.size, err);
    if (r == 0 && token.size == 0) {
        r = upload_open(a->root, &token, UPLOAD_WHOLE, 0, true, &upload, err);
        if (r == 0)
            r = upload_sync(a->root, &token, UPLOAD_WHOLE, &upload, err);
        aq_closep(&upload.fd);
    }
    return r < 0 ? r : op_write_token(a, &token, out, err);
}

static int op_download(const struct op_args *a, struct strbuf *out, struct aq_error *err)
{
    bool is_archive = op_flag(a->json, "archive"), is_tree = op_flag(a->json, "tree");
    struct token token = { .direction = is_archive ? TOKEN_ARCHIVE : TOKEN_DOWNLOAD,
                           .is_tree = is_tree && !is_archive };
    int r = op_path(a->json, "path", is_archive || is_tree, token.path, err);

    if (r == 0)
        r = folder_stat(a->root, token.path, is_archive || is_tree, err);
    return r < 0 ? r : op_write_token(a, &token, out, err);
}

static const struct op_type {
    const char *name;
    enum work_lane_kind lane;
    bool opens; /* the folder, which must be there */
    int (*run)(const struct op_args *args, struct strbuf *out, struct aq_error *err);
} op_types[] = {
    { "create", WORK_SHORT, false, op_create },   { "purge", WORK_SHORT, false, op_purge },
    { "clone", WORK_COPY, true, op_clone },       { "mkdir", WORK_SHORT, true, op_mkdir },
    { "list", WORK_SHORT, true, op_list },        { "read", WORK_SHORT, true, op_read },
    { "move", WORK_SHORT, true, op_move },        { "rename", WORK_SHORT, true, op_rename },
    { "delete", WORK_SHORT, true, op_delete },    { "usage", WORK_SHORT, true, op_usage },
    { "upload", WORK_SHORT, true, op_upload },    { "download", WORK_SHORT, true, op_download },
    { "recount", WORK_SHORT, false, op_recount },
};

static const struct op_type *op_find(const char *name)
{
    for (size_t i = 0; i < AQ_COUNT(op_types); i++)
        if (strcmp(op_types[i].name, name) == 0)
            return &op_types[i];
    return NULL;
}

enum work_lane_kind op_lane(const char *op, const json_t *args)
{
    const struct op_type *type = op_find(op);

    if (strcmp(op, "delete") == 0 && op_flag(args, "recursive"))
        return WORK_TREE;
    return type ? type->lane : WORK_SHORT;
}

bool op_touches(const char *op, const json_t *args, struct uuid *ret)
{
    static const char *const touching[] = { "clone", "delete", "upload", "recount" };

    for (size_t i = 0; i < AQ_COUNT(touching); i++)
        if (strcmp(op, touching[i]) == 0)
            return uuid_parse(op_text(args, strcmp(op, "clone") == 0 ? "to" : "id", ""), ret) == 0;
    return false;
}

int64_t op_count_age(const char *op, const json_t *args)
{
    if (strcmp(op, "usage") == 0)
        return USAGE_NOW;
    if (strcmp(op, "clone") == 0)
        return USAGE_FRESH_USEC;
    return strcmp(op, "upload") == 0 && json_integer_value(json_object_get(args, "quota_bytes"))
               ? USAGE_ANY
               : -1;
}

int op_run(struct volume *volume, const char *op, const json_t *args, struct op_progress *progress,
           struct strbuf *out, struct aq_error *err)
{
    const struct op_type *type = op_find(op);
    struct op_args a = { .volume = volume, .root = -1, .json = args, .progress = progress };
    int r;

    if (!type)
        return aq_fail(err, EOPNOTSUPP, "this storage host does not know the operation '%.40s'",
                       op);
    if (uuid_parse(op_text(args, "id", ""), &a.id) < 0)
        return aq_fail_field(err, EINVAL, "id", "must be a folder's id");
    if (uuid_parse(op_text(args, "user", ""), &a.user) < 0)
        a.user = (struct uuid){ 0 };
    if (type->opens && (a.root = volume_open_folder(&volume->dir, &a.id, err)) < 0)
        return a.root;
    r = type->run(&a, out, err);
    aq_closep(&a.root);
    if (r == 0 && !out->len)
        strbuf_adds(out, "{}");
    return r;
}
