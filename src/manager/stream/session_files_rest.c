/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a running session: into it, out of it, and which there are, in its work folder.
 *
 * Bytes pass through as they come; a slow reader or disk holds the other side back.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "http/multipart.h"
#include "manager/stream/file_transfer.h"
#include "manager/stream/form_archive.h"
#include "manager/stream/stream_feature.h"
#include "manager/session/session.h"
#include "manager/call/streams.h"

#define LIST_MAX (8 * 1024 * 1024) /* bytes of a folder's list */
#define DOWNLOADS_MAX 5            /* files of one request, as in Backend.AI */
#define FORM_MAX (FORM_FILES_MAX * (FORM_FILE_MAX + 8192))

struct files_params {
    const char *owner_access_key, *kernel, *path, *format;
    struct str_list files;
};

static const struct field file_fields[] = {
    OWNER_FIELD(struct files_params, owner_access_key),
    { "path", FIELD_STR, FIELD_REQUIRED, offsetof(struct files_params, path), 1, 4096,
      .doc = "below /home/work, or beginning with it" },
    { "format", FIELD_STR, FIELD_NULLABLE, offsetof(struct files_params, format), 1, 8,
      .doc = "tar (the default), or raw: the bytes of one file" },
    KERNEL_FIELD(struct files_params, kernel),
    FIELD_END,
};

static const struct field list_fields[] = {
    OWNER_FIELD(struct files_params, owner_access_key),
    { "path", FIELD_STR, FIELD_NULLABLE, offsetof(struct files_params, path), 1, 4096,
      .doc = "a folder; default: /home/work" },
    FIELD_END,
};

static const struct field download_fields[] = {
    OWNER_FIELD(struct files_params, owner_access_key),
    { "files", FIELD_STR_LIST, FIELD_REQUIRED, offsetof(struct files_params, files), 1,
      DOWNLOADS_MAX },
    FIELD_END,
};

static const struct field single_fields[] = {
    OWNER_FIELD(struct files_params, owner_access_key),
    { "file", FIELD_STR, FIELD_REQUIRED, offsetof(struct files_params, path), 1, 4096 },
    FIELD_END,
};

/* One request; what it does is in 'begin_next' and the callbacks. */
struct session_files {
    struct api *api;
    struct request *req;
    struct pump pump;
    struct file_transfer *transfer;
    struct uuid kernel_id;
    const char *verb, *content_type;
    const char *path; /* of the request's arena, as 'files' */
    struct str_list files;
    bool has_begun; /* the answer */
    /* downloads of several: which one, counted from 1; 0 = they are looked for */
    size_t at;
    char boundary[MULTIPART_BOUNDARY_MAX];
    /* lists */
    struct strbuf text;
    bool is_too_large;
    struct form_archive *form; /* uploads as such */
    struct api_stream right;
};

static void session_files_free(struct session_files *f)
{
    api_stream_close(&f->right);
    file_transfer_free(f->transfer);
    pump_done(&f->pump);
    form_archive_free(f->form);
    strbuf_done(&f->text);
    free(f);
}

/* It is over: 'err' NULL = the answer is whole, but for its end. */
static void session_files_finish(struct session_files *f, const struct aq_error *err)
{
    const struct aq_error why = err ? *err : (struct aq_error){ 0 }; /* it may be the transfer's */
    struct request *req = f->req;
    bool has_begun = f->has_begun;

    request_set_gone(req, NULL, NULL);
    session_files_free(f);
    if (err && has_begun)
        request_abort(req);
    else if (err)
        request_fail(req, &why);
    else if (has_begun)
        request_end(req);
    else
        request_reply_empty(req, 204);
}

static void session_files_on_gone(struct request *req, void *data)
{
    static const struct aq_error gone = { .code = EPIPE, .text = "the client has gone" };

    (void)req;
    session_files_finish(data, &gone);
}

static void session_files_on_end(void *data, const struct aq_error *err)
{
    session_files_finish(data, err);
}

/* ---- out of the session ---- */

static void session_files_on_reply_drain(struct request *req, void *data)
{
    struct session_files *f = data;

    (void)req;
    pump_drained(&f->pump, PUMP_CLIENT);
}

/* False after the end of all. */
static bool session_files_put(struct session_files *f, const char *bytes, size_t len)
{
    static const struct aq_error slow = { .code = EPIPE, .text = "the reader has gone" };

    if (!f->has_begun) {
        request_begin(f->req, 200, f->content_type, session_files_on_reply_drain, f);
        (void)pump_open(&f->pump, PUMP_CLIENT); /* nothing waits */
    }
    f->has_begun = true;
    if (pump_give(&f->pump, PUMP_KERNEL, bytes, len) == 0)
        return true;
    session_files_finish(f, &slow);
    return false;
}

static void session_files_on_output(void *data, const char *bytes, size_t len)
{
    (void)session_files_put(data, bytes, len);
}

static void session_files_on_download_end(void *data, const struct aq_error *err)
{
    if (err || session_files_put(data, NULL, 0)) /* an empty file has an answer, too */
        session_files_finish(data, err);
}

static const struct file_transfer_ops download_ops = {
    .on_output = session_files_on_output,
    .on_end = session_files_on_download_end,
};

/* ---- lists ---- */

static void session_files_on_list(void *data, const char *bytes, size_t len)
{
    struct session_files *f = data;

    if (f->text.len + len <= LIST_MAX)
        strbuf_add(&f->text, bytes, len);
    else
        f->is_too_large = true;
}

static void session_files_on_list_end(void *data, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    struct session_files *f = data;
    struct request *req;
    struct aq_error large = { 0 };

    if (!err && f->is_too_large) {
        (void)aq_fail_kind(&large, EFBIG, "request-too-large",
                           "the folder has more names than one list can have");
        err = &large;
    }
    if (err) {
        session_files_finish(f, err);
        return;
    }
    jsonw_object_begin(&w);
    jsonw_key(&w, "files");
    jsonw_strn(&w, f->text.data, f->text.len);
    jsonw_member_str(&w, "errors", "");
    jsonw_member_str(&w, "abspath", f->path);
    jsonw_object_end(&w);
    req = f->req;
    request_set_gone(req, NULL, NULL);
    session_files_free(f);
    request_reply_json(req, 200, &out);
}

static const struct file_transfer_ops list_ops = {
    .on_output = session_files_on_list,
    .on_end = session_files_on_list_end,
};

/* ---- several, each as an archive of its own ---- */

static bool session_files_next(struct session_files *f);

static void session_files_on_part_end(void *data, const struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct session_files *f = data;

    if (err) {
        session_files_finish(f, err);
        return;
    }
    file_transfer_free(AQ_TAKE(f->transfer));
    if (f->at)
        multipart_write_part_end(&out);
    if (f->at++ == f->files.count)
        multipart_write_end(&out, f->boundary);
    else
        multipart_write_head(&out, f->boundary,
                             "Content-Type: application/x-tar\r\n"
                             "Content-Encoding: identity\r\n");
    if (session_files_put(f, out.data, out.len) && session_files_next(f))
        session_files_finish(f, NULL);
}

static const struct file_transfer_ops part_ops = {
    .on_output = session_files_on_output,
    .on_end = session_files_on_part_end,
};

/* True if there is none any more. */
static bool session_files_next(struct session_files *f)
{
    const struct kernel *kernel = core_find_kernel(f->api->core, &f->kernel_id);
    struct aq_error err = { 0 };

    if (f->at > f->files.count)
        return true;
    if (!kernel)
        (void)aq_fail_kind(&err, ENOENT, "session-ended", "the session has ended meanwhile");
    if (err.code
        || file_transfer_open(f->api, kernel, f->at ? "get" : "check",
                              f->files.items + (f->at ? f->at - 1 : 0), f->at ? 1 : f->files.count,
                              &f->pump, &part_ops, f, &f->transfer, &err)
               < 0)
        session_files_finish(f, &err);
    return false;
}

/* ---- into the session ---- */

static void session_files_on_body_end(struct session_files *f)
{
    struct aq_error err = { 0 };

    if (f->form && form_archive_finish(f->form, &err) < 0) {
        session_files_finish(f, &err);
        return;
    }
    pump_finish(&f->pump, PUMP_CLIENT);
}

static void session_files_on_body(struct request *req, const char *bytes, size_t len, int status,
                                  void *data)
{
    struct session_files *f = data;
    struct aq_error err = { 0 };
    int r;

    (void)req;
    if (status < 0) {
        (void)aq_fail(&err, -status, "the body broke off");
        session_files_finish(f, &err);
        return;
    }
    if (!len) {
        session_files_on_body_end(f);
        return;
    }
    r = f->form ? form_archive_feed(f->form, bytes, len, &err)
                : pump_give(&f->pump, PUMP_CLIENT, bytes, len);
    if (r < 0) {
        if (!err.code)
            (void)aq_fail(&err, -r, "the agent's connection is lost");
        session_files_finish(f, &err);
    }
}

static void session_files_on_open(void *data)
{
    struct session_files *f = data;

    request_read_body(f->req, session_files_on_body, f);
}

static const struct file_transfer_ops upload_ops = {
    .on_open = session_files_on_open,
    .on_end = session_files_on_end,
};

static int session_files_on_form_bytes(void *data, const char *bytes, size_t len)
{
    struct session_files *f = data;

    return pump_give(&f->pump, PUMP_CLIENT, bytes, len);
}

/* ---- requests ---- */

static int session_files_read_params(struct request *req, struct files_params *params,
                                     bool *ret_raw, struct aq_error *err)
{
    int r = api_decode(req, params, NULL, err);

    if (r < 0)
        return r;
    *ret_raw = params->format && strcmp(params->format, "raw") == 0;
    return params->format && !*ret_raw && strcmp(params->format, "tar") != 0
               ? api_fail_param(err, "format", "must be tar or raw")
               : 0;
}

/* The request as an object, with the kernel that it is about; NULL after an answer. */
static struct session_files *session_files_new(struct request *req, struct api *api, bool *ret_raw,
                                               const struct kernel **ret_kernel)
{
    struct files_params params = { .kernel = NULL };
    const struct session *session;
    struct session_files *f;
    struct aq_error err = { 0 };

    if (session_files_read_params(req, &params, ret_raw, &err) < 0) {
        request_fail(req, &err);
        return NULL;
    }
    session = session_find_live(api, req, params.owner_access_key);
    if (!session)
        return NULL;
    *ret_kernel = session_find_kernel(session, params.kernel, &err);
    if (!*ret_kernel) {
        request_fail(req, &err);
        return NULL;
    }
    f = aq_alloc(sizeof(*f));
    f->api = api;
    f->req = req;
    f->kernel_id = (*ret_kernel)->id;
    f->path = params.path ? params.path : "/home/work";
    f->files = params.files;
    f->content_type = "application/x-tar";
    strbuf_init(&f->text);
    pump_init(&f->pump);
    pump_join(&f->pump, PUMP_CLIENT, &request_pump, req);
    api_stream_open(api, api_principal(req)->access_key, &f->right, session_files_on_end, f);
    request_set_gone(req, session_files_on_gone, f);
    return f;
}

static void session_files_open(struct session_files *f, const struct kernel *kernel,
                               const char *verb, const struct file_transfer_ops *ops)
{
    struct aq_error err = { 0 };

    if (file_transfer_open(f->api, kernel, verb, &f->path, 1, &f->pump, ops, f, &f->transfer, &err)
        < 0)
        session_files_finish(f, &err);
}

static void session_files_on_get(struct request *req, void *data)
{
    const struct kernel *kernel;
    bool is_raw;
    struct session_files *f = session_files_new(req, data, &is_raw, &kernel);

    if (!f)
        return;
    if (is_raw)
        f->content_type = "application/octet-stream";
    session_files_open(f, kernel, is_raw ? "cat" : "get", &download_ops);
}

static void session_files_on_put(struct request *req, void *data)
{
    const struct kernel *kernel;
    bool is_raw;
    struct session_files *f = session_files_new(req, data, &is_raw, &kernel);

    if (f)
        session_files_open(f, kernel, is_raw ? "write" : "put", &upload_ops);
}

static void session_files_on_list_request(struct request *req, void *data)
{
    const struct kernel *kernel;
    bool is_raw;
    struct session_files *f = session_files_new(req, data, &is_raw, &kernel);

    if (f)
        session_files_open(f, kernel, "list", &list_ops);
}

static void session_files_on_download(struct request *req, void *data)
{
    AQ_CLEANUP(aq_freep) char *type = NULL;
    const struct kernel *kernel;
    bool is_raw;
    struct session_files *f = session_files_new(req, data, &is_raw, &kernel);

    if (!f)
        return;
    (void)multipart_make_boundary(f->boundary);
    type = aq_format("multipart/mixed; boundary=%s", f->boundary);
    f->content_type = arena_strdup(request_get_arena(req), type);
    (void)session_files_next(f);
}

static void session_files_on_upload(struct request *req, void *data)
{
    const char *type = request_get_header(req, "Content-Type");
    const struct kernel *kernel;
    struct aq_error err = { 0 };
    bool is_raw;
    struct session_files *f = session_files_new(req, data, &is_raw, &kernel);

    if (!f)
        return;
    if (form_archive_new(type ? type : "", session_files_on_form_bytes, f, &f->form, &err) < 0)
        session_files_finish(f, &err);
    else
        session_files_open(f, kernel, "put", &upload_ops);
}

#define UPLOAD_DOC "Put files into a running session: a form of at most 20 files of 1 MiB"
#define DOWNLOAD_DOC "Get at most 5 files or folders of a running session, a tar archive each"
#define SINGLE_DOC "Get a file or folder of a running session as a tar archive"

static const struct route session_files_routes[] = {
    { METHOD_GET, "/aliquot/v1/sessions/{name}/files", API_USER, session_files_on_get, file_fields,
      "Get a file or folder of a running session, as a tar archive or its bytes",
      .answer = { .types = "application/x-tar|application/octet-stream" } },
    { METHOD_PUT, "/aliquot/v1/sessions/{name}/files", API_USER, session_files_on_put, file_fields,
      "Put a tar archive or a file into a running session", ROUTE_STREAM_BODY, UINT64_MAX,
      .answer = { 204 }, .body_types = "application/x-tar|application/octet-stream" },
    { METHOD_GET, "/session/{name}/files", API_USER, session_files_on_list_request, list_fields,
      "List a folder of a running session" },
    { METHOD_POST, "/session/{name}/upload", API_USER, session_files_on_upload, owner_fields,
      UPLOAD_DOC, ROUTE_STREAM_BODY, FORM_MAX, .answer = { 204 },
      .body_types = "multipart/form-data" },
    { METHOD_GET, "/session/{name}/download", API_USER, session_files_on_download, download_fields,
      DOWNLOAD_DOC, .answer = { .types = "multipart/mixed" } },
    { METHOD_POST, "/session/{name}/download", API_USER, session_files_on_download, download_fields,
      DOWNLOAD_DOC, .answer = { .types = "multipart/mixed" } },
    { METHOD_GET, "/session/{name}/download_single", API_USER, session_files_on_get, single_fields,
      SINGLE_DOC, .answer = { .types = "application/x-tar" } },
    { METHOD_POST, "/session/{name}/download_single", API_USER, session_files_on_get, single_fields,
      SINGLE_DOC, .answer = { .types = "application/x-tar" } },
};
API_ROUTES_END(session_files);
