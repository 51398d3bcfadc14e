/* SPDX-License-Identifier: Apache-2.0 */
/* multipart.h - reading multipart/form-data, writing multipart/mixed */
#ifndef AQ_HTTP_MULTIPART_H
#define AQ_HTTP_MULTIPART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

struct multipart_limits {
    unsigned parts_max; /* 0 = 20 */
    size_t head_max;    /* bytes of one part's headers; 0 = 4 KiB */
    uint64_t part_max;  /* bytes of one part; 0 = 1 MiB */
};

struct multipart_part {
    const char *name;         /* "" where it has none */
    const char *filename;     /* NULL where it has none; not to be trusted as a path */
    const char *content_type; /* "application/octet-stream" where it has none */
};

struct multipart_ops {
    /* A nonzero result of any stops the feeding. */
    int (*on_part)(void *data, const struct multipart_part *part);
    int (*on_body)(void *data, const char *bytes, size_t len);
    int (*on_part_end)(void *data);
};

struct multipart_reader;

/* 'content_type' is the whole header with its boundary. -EINVAL unless it is
 * multipart/ with a good boundary.
 */
int multipart_reader_new(const char *content_type, const struct multipart_limits *limits,
                         const struct multipart_ops *ops, void *data, struct multipart_reader **ret,
                         struct aq_error *err) AQ_UNTRUSTED;
void multipart_reader_free(struct multipart_reader *reader);
AQ_DEFINE_CLEANUP(struct multipart_reader, multipart_reader_free)

/* 0, the callback's result, -EINVAL for what is malformed, -EFBIG past a
 * limit (kind "request-too-large").
 */
int multipart_reader_feed(struct multipart_reader *reader, const char *bytes, size_t len,
                          struct aq_error *err) AQ_UNTRUSTED;

/* All is there: 0, or -EINVAL if the closing boundary is missing. */
int multipart_reader_finish(struct multipart_reader *reader, struct aq_error *err);

#define MULTIPART_BOUNDARY_MAX 40

/* A fresh random boundary. */
char *multipart_make_boundary(char buf[MULTIPART_BOUNDARY_MAX]);

/* Append the head of a part; 'headers' are whole lines ("Name: value\r\n"). */
void multipart_write_head(struct strbuf *out, const char *boundary, const char *headers);
/* After the bytes of a part, and after the last one. */
void multipart_write_part_end(struct strbuf *out);
void multipart_write_end(struct strbuf *out, const char *boundary);

#endif
