/* SPDX-License-Identifier: Apache-2.0 */
/* tar.h - reading and writing tar as it comes: ustar with pax records
 *
 * Read are also GNU's long names and sizes, which tar(1) writes. Names are bytes, as Linux has
 * them. A note is the "comment" of a global pax record, which other programs pass over.
 */
#ifndef AQ_TRANSFER_TAR_H
#define AQ_TRANSFER_TAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/strbuf.h"

#define TAR_BLOCK 512

enum tar_type { TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_OTHER };

struct tar_entry {
    enum tar_type type;
    char flag;          /* as the archive has it */
    const char *name;   /* not empty; not to be trusted as a path */
    const char *target; /* of a link */
    mode_t mode;        /* permissions, 07777 at most */
    uint64_t size;      /* of a file */
    int64_t mtime;      /* seconds */
    long mtime_nsec;    /* that follow them */
};

/* ---- writing ---- */

/* What comes before a file's bytes, or all of another entry. */
void tar_write_head(struct strbuf *out, const struct tar_entry *entry);
void tar_write_note(struct strbuf *out, const char *text);
void tar_write_end(struct strbuf *out);
/* Zero bytes that follow so many of a file. */
size_t tar_padding(uint64_t size);

/* ---- reading ---- */

/* A nonzero result of any is that of tar_reader_feed(). */
struct tar_reader_ops {
    int (*on_entry)(void *data, const struct tar_entry *entry, struct aq_error *err);
    int (*on_bytes)(void *data, const char *bytes, size_t len, struct aq_error *err);
    int (*on_entry_end)(void *data, struct aq_error *err);
    int (*on_note)(void *data, const char *text, struct aq_error *err); /* NULL = pass over */
};

struct tar_limits {
    uint64_t entries_max, bytes_max; /* of all files together; 0 = none */
};

struct tar_reader;

int tar_reader_new(const struct tar_limits *limits, const struct tar_reader_ops *ops, void *data,
                   struct tar_reader **ret, struct aq_error *err);
void tar_reader_free(struct tar_reader *reader);
AQ_DEFINE_CLEANUP(struct tar_reader, tar_reader_free)

/* 0, a callback's result, -EINVAL for what is no tar, -EFBIG past a limit, -ENOMEM. */
int tar_reader_feed(struct tar_reader *reader, const char *bytes, size_t len,
                    struct aq_error *err) AQ_UNTRUSTED;

/* No more comes: 0, or -ECONNRESET unless the archive's end was there. */
int tar_reader_finish(const struct tar_reader *reader, struct aq_error *err);

/* One entry more, or 'bytes' more: 0 or -EFBIG (kind "transfer-too-large"). */
struct tar_count {
    uint64_t entries, bytes;
};
int tar_count_entry(struct tar_count *count, const struct tar_limits *limits, uint64_t bytes,
                    struct aq_error *err);

#endif
