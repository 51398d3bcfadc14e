/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a form as a tar archive. */
#include "manager/stream/form_archive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/multipart.h"
#include "http/url.h"
#include "transfer/tar.h"

struct form_archive {
    struct multipart_reader *parts;
    form_archive_fn *on_bytes;
    void *data;
    struct arena arena; /* of the part's name */
    const char *name;   /* NULL = it is no file */
    struct strbuf part;
    struct aq_error *err; /* of the feeding under way */
};

static int form_archive_on_part(void *data, const struct multipart_part *part)
{
    struct form_archive *f = data;

    strbuf_clear(&f->part);
    f->name = NULL;
    if (!part->filename || !part->filename[0])
        return 0;
    if (url_decode(&f->arena, part->filename, strlen(part->filename), false, &f->name, NULL) < 0)
        f->name = arena_strdup(&f->arena, part->filename); /* it is as it is */
    /* in an archive that would be a folder, and the bytes after it the next entries */
    if (!f->name[0] || f->name[strlen(f->name) - 1] == '/')
        return aq_fail_field(f->err, EINVAL, part->name,
                             "'%.200s' is no name of a file: name the file, without '/' at its end",
                             f->name);
    return 0;
}

static int form_archive_on_body(void *data, const char *bytes, size_t len)
{
    struct form_archive *f = data;

    strbuf_add(&f->part, bytes, len);
    return 0;
}

static int form_archive_on_part_end(void *data)
{
    static const char zeros[TAR_BLOCK];
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct form_archive *f = data;
    const struct tar_entry e = {
        .type = TAR_FILE,
        .name = f->name,
        .mode = 0644,
        .size = f->part.len,
        .mtime = clock_realtime_usec() / USEC_PER_SEC,
    };

    if (!f->name) /* a field of the form */
        return 0;
    tar_write_head(&out, &e);
    strbuf_add(&out, f->part.data, f->part.len);
    strbuf_add(&out, zeros, tar_padding(f->part.len));
    return f->on_bytes(f->data, out.data, out.len);
}

int form_archive_new(const char *content_type, form_archive_fn *on_bytes, void *data,
                     struct form_archive **ret, struct aq_error *err)
{
    static const struct multipart_ops ops = {
        .on_part = form_archive_on_part,
        .on_body = form_archive_on_body,
        .on_part_end = form_archive_on_part_end,
    };
    const struct multipart_limits limits = { .parts_max = FORM_FILES_MAX,
                                             .part_max = FORM_FILE_MAX };
    struct form_archive *f = aq_alloc(sizeof(*f));
    int r;

    strbuf_init(&f->part);
    f->on_bytes = on_bytes;
    f->data = data;
    r = multipart_reader_new(content_type, &limits, &ops, f, &f->parts, err);
    if (r < 0)
        form_archive_free(f);
    else
        *ret = f;
    return r;
}

void form_archive_free(struct form_archive *f)
{
    if (!f)
        return;
    multipart_reader_free(f->parts);
    arena_done(&f->arena);
    strbuf_done(&f->part);
    free(f);
}

int form_archive_feed(struct form_archive *f, const char *bytes, size_t len, struct aq_error *err)
{
    f->err = err;
    return multipart_reader_feed(f->parts, bytes, len, err);
}

int form_archive_finish(struct form_archive *f, struct aq_error *err)
{
    static const char end[2 * TAR_BLOCK];
    int r = multipart_reader_finish(f->parts, err);

    return r < 0 ? r : f->on_bytes(f->data, end, sizeof(end));
}
