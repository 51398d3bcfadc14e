/* SPDX-License-Identifier: Apache-2.0 */
/* Files into or out of a kernel's container, over a link stream to its agent. */
#include "base/memory.h"
#include "manager/stream/file_transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "manager/stream/command_stream.h"
#include "manager/stream/stream_feature.h"

#define ERRORS_MAX 4096

struct file_transfer {
    struct command_stream *stream;
    const struct file_transfer_ops *ops;
    void *data;
    struct strbuf errors; /* what the runner says went wrong: a kind, a newline, a text */
};

/* ---- what went wrong ---- */

/* The runner's and the agent's kinds; 'field' is the parameter, or the object. */
static const struct {
    const char *kind, *slug, *field;
    int code;
} file_transfer_kinds[] = {
    { "no-such-file", "object-not-found", "file", ENOENT },
    { "path-leads-out", "invalid-api-params", "path", EINVAL },
    { "bad-archive", "invalid-api-params", "body", EINVAL },
    { "not-a-file", "invalid-api-params", "path", EINVAL },
    { "is-a-folder", "invalid-api-params", "path", EINVAL },
    { "not-a-folder", "invalid-api-params", "path", EINVAL },
    { "transfer-too-large", "request-too-large", "", EFBIG },
    { "transfer-cut", "generic-bad-request", "", ECONNRESET },
    { "disk-full", "disk-full", "", ENOSPC },
    { "file-failed", "generic-bad-request", "", EINVAL },
    { "no-container", "generic-bad-request", "", ENOTSUP },
    { "old-runner", "generic-bad-request", "", ENOTSUP },
    { "session-ended", "session-ended", "", ECONNRESET },
};

static void file_transfer_fail_by(struct file_transfer *t, const char *kind, const char *text)
{
    struct aq_error err = { 0 };

    for (size_t i = 0; i < AQ_COUNT(file_transfer_kinds); i++)
        if (strcmp(file_transfer_kinds[i].kind, kind) == 0) {
            (void)aq_fail_as(&err, file_transfer_kinds[i].code, file_transfer_kinds[i].slug,
                             file_transfer_kinds[i].field, "%s", text);
            break;
        }
    if (!err.code)
        (void)aq_fail_kind(&err, EIO, "service-unavailable", "%s", text);
    t->ops->on_end(t->data, &err);
}

/* It has ended with this exit status, or by a signal. */
static void file_transfer_on_exit(struct file_transfer *t, int code)
{
    char *newline = strchr(t->errors.data, '\n');
    struct aq_error err = { 0 };

    if (code == 0) {
        t->ops->on_end(t->data, NULL);
    } else if (newline) {
        *newline = '\0';
        file_transfer_fail_by(t, t->errors.data, newline + 1);
    } else {
        (void)aq_fail_kind(&err, ECONNRESET, "service-unavailable",
                           code > 128 ? "the transfer was ended in the container by signal %d; its "
                                        "memory may be used up"
                                      : "the transfer failed in the container (%d)",
                           code > 128 ? code - 128 : code);
        t->ops->on_end(t->data, &err);
    }
}

/* ---- from the agent ---- */

static void file_transfer_on_output(void *data, const char *bytes, size_t len)
{
    const struct file_transfer *t = data;

    if (t->ops->on_output)
        t->ops->on_output(t->data, bytes, len);
}

static void file_transfer_on_errors(void *data, const char *bytes, size_t len)
{
    struct file_transfer *t = data;

    strbuf_add(&t->errors, bytes, AQ_MIN(len, ERRORS_MAX - AQ_MIN(t->errors.len, ERRORS_MAX)));
}

static void file_transfer_on_open(void *data)
{
    const struct file_transfer *t = data;

    if (t->ops->on_open)
        t->ops->on_open(t->data);
}

static void file_transfer_on_ended(void *data, int code, int signal)
{
    (void)signal;
    file_transfer_on_exit(data, code);
}

static void file_transfer_on_failed(void *data, const char *kind, const char *text)
{
    file_transfer_fail_by(data, kind, text);
}

static const struct command_stream_ops file_transfer_stream_ops = {
    .on_open = file_transfer_on_open,
    .on_output = file_transfer_on_output,
    .on_errors = file_transfer_on_errors,
    .on_ended = file_transfer_on_ended,
    .on_failed = file_transfer_on_failed,
};

/* ---- to the agent ---- */

static void file_transfer_describe(const struct api *api, const char *verb,
                                   const char *const *paths, size_t count, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    char number[24];

    jsonw_object_begin(&w);
    jsonw_key(&w, "argv");
    jsonw_array_begin(&w);
    jsonw_str(&w, verb);
    (void)snprintf(number, sizeof(number), "%lld",
                   (long long)api->stream->transfer_limits.bytes_max);
    jsonw_str(&w, number);
    (void)snprintf(number, sizeof(number), "%lld",
                   (long long)api->stream->transfer_limits.files_max);
    jsonw_str(&w, number);
    for (size_t i = 0; i < count; i++)
        jsonw_str(&w, paths[i]);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
}

int file_transfer_open(struct api *api, const struct kernel *kernel, const char *verb,
                       const char *const *paths, size_t count, struct pump *pump,
                       const struct file_transfer_ops *ops, void *data, struct file_transfer **ret,
                       struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf command = STRBUF_INIT;
    struct msg_stream_open open = { .kind = "files", .input = true };
    struct file_transfer *t = aq_alloc(sizeof(*t));
    int r;

    file_transfer_describe(api, verb, paths, count, &command);
    strbuf_init(&t->errors);
    t->ops = ops;
    t->data = data;
    open.command = command.data;
    r = command_stream_open(api->core, kernel, &open, pump, &file_transfer_stream_ops, t,
                            &t->stream, err);
    if (r < 0) {
        file_transfer_free(t);
        return r;
    }
    *ret = t;
    return 0;
}

void file_transfer_free(struct file_transfer *t)
{
    if (!t)
        return;
    command_stream_free(t->stream);
    strbuf_done(&t->errors);
    free(t);
}
