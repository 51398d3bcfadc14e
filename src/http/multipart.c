/* SPDX-License-Identifier: Apache-2.0 */
/* Reading multipart/form-data, writing multipart/mixed. */
#include "http/multipart.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "base/uuid.h"

#define BOUNDARY_MAX 70 /* RFC 2046 5.1.1 */
#define PADDING_MAX 64

enum state { STATE_PREAMBLE, STATE_BODY, STATE_DELIMITER, STATE_HEAD, STATE_EPILOGUE };

struct multipart_reader {
    struct multipart_limits limits;
    const struct multipart_ops *ops;
    void *data;
    enum state state;
    char delimiter[BOUNDARY_MAX + 5]; /* "\r\n--boundary" */
    size_t delimiter_len;
    struct strbuf pending; /* what is not decided yet: less than a delimiter or a head */
    bool again;            /* the last step got somewhere: another one may too */
    unsigned parts;
    uint64_t part_len;
};

/* The value of a parameter "; name=value" or "; name="value"" in 'text', in a
 * new string; NULL if it is not there.
 */
static char *multipart_find_param(const char *text, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf value = STRBUF_INIT;
    size_t name_len = strlen(name);
    const char *at = text;

    while ((at = strchr(at, ';'))) {
        at += 1 + strspn(at + 1, " \t");
        if (strncasecmp(at, name, name_len) != 0 || at[name_len] != '=') {
            const char *next = strchr(at, ';');
            const char *quote = next ? memchr(at, '"', (size_t)(next - at)) : NULL;

            /* a ';' within another parameter's quotes does not count */
            if (quote) {
                quote++;
                while (*quote && *quote != '"')
                    quote += *quote == '\\' && quote[1] ? 2 : 1;
                at = quote;
            }
            continue;
        }
        at += name_len + 1;
        if (*at != '"') {
            strbuf_add(&value, at, strcspn(at, "; \t"));
            return strbuf_steal(&value);
        }
        for (at++; *at && *at != '"'; at++) {
            if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
                at++;
            strbuf_addc(&value, *at);
        }
        return *at == '"' ? strbuf_steal(&value) : NULL;
    }
    return NULL;
}

static bool multipart_is_boundary(const char *text)
{
    size_t len = strlen(text);

    return len >= 1 && len <= BOUNDARY_MAX && text[len - 1] != ' '
           && strspn(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                           "'()+_,-./:=? ")
                  == len;
}

int multipart_reader_new(const char *content_type, const struct multipart_limits *limits,
                         const struct multipart_ops *ops, void *data, struct multipart_reader **ret,
                         struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *boundary = multipart_find_param(content_type, "boundary");
    struct multipart_reader *reader;

    if (strncasecmp(content_type, "multipart/", strlen("multipart/")) != 0 || !boundary
        || !multipart_is_boundary(boundary))
        return aq_fail_field(err, EINVAL, "Content-Type",
                             "the content type must be multipart/... with a boundary");
    reader = aq_alloc(sizeof(*reader));
    if (limits)
        reader->limits = *limits;
    if (!reader->limits.parts_max)
        reader->limits.parts_max = 20;
    if (!reader->limits.head_max)
        reader->limits.head_max = 4096;
    if (!reader->limits.part_max)
        reader->limits.part_max = 1 << 20;
    reader->ops = ops;
    reader->data = data;
    memcpy(reader->delimiter, "\r\n--", 4);
    memcpy(reader->delimiter + 4, boundary, strlen(boundary));
    reader->delimiter_len = 4 + strlen(boundary);
    strbuf_init(&reader->pending);
    strbuf_adds(&reader->pending, "\r\n"); /* so that the first delimiter is like the others */
    *ret = reader;
    return 0;
}

void multipart_reader_free(struct multipart_reader *reader)
{
    if (!reader)
        return;
    strbuf_done(&reader->pending);
    free(reader);
}

/* 'len' undecided bytes are body. */
static int multipart_give_body(struct multipart_reader *reader, size_t len, struct aq_error *err)
{
    int r = 0;

    if (reader->state == STATE_BODY && len) {
        reader->part_len += len;
        if (reader->part_len > reader->limits.part_max)
            return aq_fail_kind(err, EFBIG, "request-too-large",
                                "part %u of the form is larger than %llu bytes", reader->parts,
                                (unsigned long long)reader->limits.part_max);
        r = reader->ops->on_body(reader->data, reader->pending.data, len);
    }
    strbuf_consume(&reader->pending, len);
    return r;
}

/* Body and preamble: all up to a delimiter. */
static int multipart_step_body(struct multipart_reader *reader, struct aq_error *err)
{
    const char *found = memmem(reader->pending.data, reader->pending.len, reader->delimiter,
                               reader->delimiter_len);
    size_t sure = reader->pending.len;
    int r;

    if (found)
        sure = (size_t)(found - reader->pending.data);
    else
        sure -= AQ_MIN(sure, reader->delimiter_len - 1);
    r = multipart_give_body(reader, sure, err);
    if (r != 0 || !found)
        return r;
    strbuf_consume(&reader->pending, reader->delimiter_len);
    if (reader->state == STATE_BODY)
        r = reader->ops->on_part_end(reader->data);
    reader->state = STATE_DELIMITER;
    reader->again = true;
    return r;
}

/* After a delimiter: "--" ends, padding and a line break begin a part. */
static int multipart_step_delimiter(struct multipart_reader *reader, struct aq_error *err)
{
    const char *text = reader->pending.data;
    size_t len = reader->pending.len, pad = strspn(text, " \t");

    if (len >= 2 && text[0] == '-' && text[1] == '-') {
        reader->state = STATE_EPILOGUE;
        reader->again = true;
        return 0;
    }
    if (len < pad + 2 && pad <= PADDING_MAX)
        return (len > pad && text[pad] != '\r' && text[0] != '-')
                   ? aq_fail(err, EINVAL, "a boundary of the form is followed by other text")
                   : 0;
    if (pad > PADDING_MAX || text[pad] != '\r' || text[pad + 1] != '\n')
        return aq_fail(err, EINVAL, "a boundary of the form is followed by other text");
    if (++reader->parts > reader->limits.parts_max)
        return aq_fail_kind(err, EFBIG, "request-too-large", "the form has more than %u parts",
                            reader->limits.parts_max);
    strbuf_consume(&reader->pending, pad); /* the line break stays: it ends an empty head too */
    reader->part_len = 0;
    reader->state = STATE_HEAD;
    reader->again = true;
    return 0;
}

/* The value of a header in "\r\nName: value\r\n..." lines, in a new string. */
static char *multipart_find_header(const char *head, const char *name)
{
    size_t name_len = strlen(name);

    for (const char *line = head; (line = strstr(line, "\r\n"));) {
        line += 2;
        if (strncasecmp(line, name, name_len) == 0 && line[name_len] == ':') {
            line += name_len + 1;
            line += strspn(line, " \t");
            return aq_strndup(line, strcspn(line, "\r"));
        }
    }
    return NULL;
}

static int multipart_begin_part(struct multipart_reader *reader, const char *head)
{
    AQ_CLEANUP(aq_freep) char *disposition = multipart_find_header(head, "Content-Disposition");
    AQ_CLEANUP(aq_freep) char *type = multipart_find_header(head, "Content-Type");
    AQ_CLEANUP(aq_freep) char *name = disposition ? multipart_find_param(disposition, "name")
                                                  : NULL;
    AQ_CLEANUP(aq_freep) char *filename = disposition
                                              ? multipart_find_param(disposition, "filename")
                                              : NULL;
    const struct multipart_part part = {
        .name = name ? name : "",
        .filename = filename,
        .content_type = type ? type : "application/octet-stream",
    };

    return reader->ops->on_part(reader->data, &part);
}

static int multipart_step_head(struct multipart_reader *reader, struct aq_error *err)
{
    char *text = reader->pending.data;
    const char *end = memmem(text, reader->pending.len, "\r\n\r\n", 4);
    size_t len = end ? (size_t)(end - text) + 2 : 0;
    int r;

    if ((end ? len : reader->pending.len) > reader->limits.head_max)
        return aq_fail_kind(err, EFBIG, "request-too-large",
                            "the headers of part %u of the form are larger than %zu bytes",
                            reader->parts, reader->limits.head_max);
    if (!end)
        return 0;
    if (memchr(text, '\0', len) || !utf8_is_valid(text, len))
        return aq_fail(err, EINVAL, "the headers of part %u of the form are not UTF-8 text",
                       reader->parts);
    text[len] = '\0';
    r = multipart_begin_part(reader, text);
    strbuf_consume(&reader->pending, len + 2);
    reader->state = STATE_BODY;
    reader->again = true;
    return r;
}

static int multipart_step(struct multipart_reader *reader, struct aq_error *err)
{
    switch (reader->state) {
    case STATE_PREAMBLE:
    case STATE_BODY:
        return multipart_step_body(reader, err);
    case STATE_DELIMITER:
        return multipart_step_delimiter(reader, err);
    case STATE_HEAD:
        return multipart_step_head(reader, err);
    case STATE_EPILOGUE:
        break;
    }
    strbuf_clear(&reader->pending);
    return 0;
}

int multipart_reader_feed(struct multipart_reader *reader, const char *bytes, size_t len,
                          struct aq_error *err)
{
    while (len) {
        /* in pieces, so that 'pending' stays small whatever comes */
        size_t part = AQ_MIN(len, (size_t)16384);
        int r;

        strbuf_add(&reader->pending, bytes, part);
        do {
            reader->again = false;
            r = multipart_step(reader, err);
            if (r != 0)
                return r;
        } while (reader->again);
        bytes += part;
        len -= part;
    }
    return 0;
}

int multipart_reader_finish(struct multipart_reader *reader, struct aq_error *err)
{
    if (reader->state != STATE_EPILOGUE)
        return aq_fail(err, EINVAL, "the form ends without its closing boundary");
    return 0;
}

char *multipart_make_boundary(char buf[MULTIPART_BOUNDARY_MAX])
{
    const struct uuid id = uuid_random();

    uuid_format(&id, buf);
    return buf;
}

void multipart_write_head(struct strbuf *out, const char *boundary, const char *headers)
{
    strbuf_addf(out, "--%s\r\n%s\r\n", boundary, headers);
}

void multipart_write_part_end(struct strbuf *out)
{
    strbuf_adds(out, "\r\n");
}

void multipart_write_end(struct strbuf *out, const char *boundary)
{
    strbuf_addf(out, "--%s--\r\n", boundary);
}
