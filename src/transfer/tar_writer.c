/* SPDX-License-Identifier: Apache-2.0 */
/* tar_writer.c - writing tar: ustar with pax records */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "transfer/tar.h"
#include "transfer/tar_header.h"

static const char tar_zeros[2 * TAR_BLOCK];

size_t tar_padding(uint64_t size)
{
    return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK);
}

void tar_write_end(struct strbuf *out)
{
    strbuf_add(out, tar_zeros, sizeof(tar_zeros));
}

static void tar_write_octal(char *field, size_t width, uint64_t value)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%0*" PRIo64, (int)width - 1, value);
    memcpy(field, text, width);
}

/* A field that it does not fit into is in a pax record, too. */
static void tar_write_header(struct strbuf *out, char flag, const struct tar_entry *e)
{
    struct tar_header h = { .flag = flag, .magic = "ustar", .version = { '0', '0' } };
    bool has_mtime = e->mtime >= 0 && e->mtime <= TAR_OCTAL_MAX;
    unsigned sum = 0;

    memcpy(h.name, e->name, strnlen(e->name, sizeof(h.name)));
    if (e->target)
        memcpy(h.target, e->target, strnlen(e->target, sizeof(h.target)));
    tar_write_octal(h.mode, sizeof(h.mode), e->mode & 07777);
    tar_write_octal(h.uid, sizeof(h.uid), 0);
    tar_write_octal(h.gid, sizeof(h.gid), 0);
    tar_write_octal(h.size, sizeof(h.size), e->size > TAR_OCTAL_MAX ? 0 : e->size);
    tar_write_octal(h.mtime, sizeof(h.mtime), has_mtime ? (uint64_t)e->mtime : 0);
    memset(h.sum, ' ', sizeof(h.sum));
    for (size_t i = 0; i < sizeof(h); i++)
        sum += ((const unsigned char *)&h)[i];
    tar_write_octal(h.sum, sizeof(h.sum) - 1, sum);
    strbuf_add(out, &h, sizeof(h));
}

/* "LENGTH KEY=VALUE\n", the length of all of it. */
static void tar_write_record(struct strbuf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
    char text[24];

    while ((size_t)snprintf(text, sizeof(text), "%zu", len) + rest > len)
        len++;
    strbuf_addf(out, "%zu %s=", len, key);
    strbuf_adds(out, value);
    strbuf_addc(out, '\n');
}

static void tar_write_records(struct strbuf *out, char flag, const struct strbuf *records)
{
    const struct tar_entry e = { .name = flag == TAR_FLAG_GLOBAL ? "aliquot-note" : "aliquot-pax",
                                 .mode = 0644,
                                 .size = records->len };

    if (!strbuf_ok(records))
        out->failed = true;
    tar_write_header(out, flag, &e);
    strbuf_add(out, records->data, records->len);
    strbuf_add(out, tar_zeros, tar_padding(records->len));
}

/* A time's fraction follows, if there is one. */
static void tar_write_number_record(struct strbuf *out, const char *key, int64_t value,
                                    long fraction)
{
    char text[40];

    (void)snprintf(text, sizeof(text), fraction ? "%" PRId64 ".%09ld" : "%" PRId64, value,
                   fraction);
    tar_write_record(out, key, text);
}

void tar_write_head(struct strbuf *out, const struct tar_entry *e)
{
    static const char flags[] = { TAR_FLAG_FILE, TAR_FLAG_FOLDER, TAR_FLAG_LINK };
    AQ_CLEANUP(strbuf_donep) struct strbuf records = STRBUF_INIT;

    if (strlen(e->name) > TAR_NAME_MAX)
        tar_write_record(&records, "path", e->name);
    if (e->target && strlen(e->target) > TAR_NAME_MAX)
        tar_write_record(&records, "linkpath", e->target);
    if (e->size > TAR_OCTAL_MAX)
        tar_write_number_record(&records, "size", (int64_t)e->size, 0);
    if (e->mtime < 0 || e->mtime > TAR_OCTAL_MAX || (e->mtime >= 0 && e->mtime_nsec))
        tar_write_number_record(&records, "mtime", e->mtime, e->mtime < 0 ? 0 : e->mtime_nsec);
    if (records.len || !strbuf_ok(&records))
        tar_write_records(out, TAR_FLAG_PAX, &records);
    tar_write_header(out, flags[e->type], e);
}

void tar_write_note(struct strbuf *out, const char *text)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf records = STRBUF_INIT;

    tar_write_record(&records, "comment", text);
    tar_write_records(out, TAR_FLAG_GLOBAL, &records);
}
