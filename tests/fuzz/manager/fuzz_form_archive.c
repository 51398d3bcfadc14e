/* SPDX-License-Identifier: Apache-2.0 */
/* A form of files: the first line is the content type, the rest the body. Whatever archive it
 * becomes can be read.
 */
#include <stdint.h>
#include <string.h>

#include "manager/stream/form_archive.h"
#include "transfer/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int fuzz_on_entry(void *data, const struct tar_entry *e, struct aq_error *err)
{
    (void)data;
    (void)err;
    if (e->type == TAR_OTHER || e->size > FORM_FILE_MAX)
        __builtin_trap();
    return 0;
}

static int fuzz_on_bytes(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    (void)data;
    (void)bytes;
    (void)len;
    (void)err;
    return 0;
}

static int fuzz_on_entry_end(void *data, struct aq_error *err)
{
    (void)data;
    (void)err;
    return 0;
}

/* A name that is longer than a path can be is refused by who reads it. */
static int fuzz_on_archive(void *data, const char *bytes, size_t len)
{
    struct aq_error err = { 0 };
    int r = tar_reader_feed(data, bytes, len, &err);

    if (r < 0 && !strstr(err.text, "a name in it") && !strstr(err.text, "too long"))
        __builtin_trap();
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct tar_reader_ops ops = { .on_entry = fuzz_on_entry,
                                               .on_bytes = fuzz_on_bytes,
                                               .on_entry_end = fuzz_on_entry_end };
    static const struct tar_limits limits = { .entries_max = 0 };
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    AQ_CLEANUP(tar_reader_freep) struct tar_reader *reader = NULL;
    struct form_archive *form = NULL;
    size_t len = line ? (size_t)(line - data) : 0;
    char type[256];

    if (!line || len >= sizeof(type) || tar_reader_new(&limits, &ops, NULL, &reader, NULL) < 0)
        return 0;
    memcpy(type, data, len);
    type[len] = '\0';
    if (form_archive_new(type, fuzz_on_archive, reader, &form, NULL) < 0)
        return 0;
    if (form_archive_feed(form, (const char *)line + 1, size - len - 1, NULL) == 0
        && form_archive_finish(form, NULL) == 0 && tar_reader_finish(reader, NULL) < 0)
        __builtin_trap();
    form_archive_free(form);
    return 0;
}
