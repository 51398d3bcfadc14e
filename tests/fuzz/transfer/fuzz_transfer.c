/* SPDX-License-Identifier: Apache-2.0 */
/* A tar archive as a session sends it: whole, and a few bytes at a time. */
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "transfer/beneath.h"
#include "transfer/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t left, entries, bytes, names;
    bool is_open;
};

static int fuzz_on_entry(void *data, const struct tar_entry *e, struct aq_error *err)
{
    char clean[PATH_MAX];
    struct seen *s = data;

    if (s->is_open || !e->name[0] || strlen(e->name) >= PATH_MAX || (e->mode & ~07777u))
        __builtin_trap();
    if (beneath_clean(e->name, clean, err) == 0
        && (clean[0] == '/' || strstr(clean, "//") || strncmp(clean, "../", 3) == 0))
        __builtin_trap();
    s->is_open = true;
    s->left = e->size;
    s->entries++;
    s->names = s->names * 31 + strlen(e->name);
    return 0;
}

static int fuzz_on_bytes(void *data, const char *bytes, size_t len, struct aq_error *err)
{
    struct seen *s = data;

    (void)bytes;
    (void)err;
    if (!s->is_open || len > s->left)
        __builtin_trap();
    s->left -= len;
    s->bytes += len;
    return 0;
}

static int fuzz_on_entry_end(void *data, struct aq_error *err)
{
    struct seen *s = data;

    (void)err;
    if (!s->is_open || s->left)
        __builtin_trap();
    s->is_open = false;
    return 0;
}

static int fuzz_on_note(void *data, const char *text, struct aq_error *err)
{
    struct seen *s = data;

    (void)err;
    s->names = s->names * 31 + strlen(text);
    return 0;
}

/* Whether it went well, and what there was. */
static bool fuzz_read(const char *bytes, size_t size, size_t step, struct seen *s)
{
    static const struct tar_reader_ops ops = {
        .on_entry = fuzz_on_entry,
        .on_bytes = fuzz_on_bytes,
        .on_entry_end = fuzz_on_entry_end,
        .on_note = fuzz_on_note,
    };
    const struct tar_limits limits = { .entries_max = 1000, .bytes_max = 1 << 20 };
    AQ_CLEANUP(tar_reader_freep) struct tar_reader *reader = NULL;
    int r = tar_reader_new(&limits, &ops, s, &reader, NULL);

    for (size_t at = 0; r == 0 && at < size; at += step)
        r = tar_reader_feed(reader, bytes + at, AQ_MIN(step, size - at), NULL);
    return r == 0 && tar_reader_finish(reader, NULL) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = { 0 }, pieces = { 0 };

    if (fuzz_read((const char *)data, size, size ? size : 1, &whole)
            != fuzz_read((const char *)data, size, 37, &pieces)
        || whole.entries != pieces.entries || whole.names != pieces.names)
        __builtin_trap();
    return 0;
}
