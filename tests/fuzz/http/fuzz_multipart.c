/* SPDX-License-Identifier: Apache-2.0 */
/* A form: the first line is the content type, the rest the body. However it is cut into pieces,
 * it says the same.
 */
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"
#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was understood: parts, their bodies, ends. */
static int on_part(void *data, const struct multipart_part *part)
{
    strbuf_addf(data, "[%s|%s|%s:", part->name, part->filename ? part->filename : "-",
                part->content_type);
    return 0;
}

static int on_body(void *data, const char *bytes, size_t len)
{
    strbuf_add(data, bytes, len);
    return 0;
}

static int on_part_end(void *data)
{
    strbuf_adds(data, "]");
    return 0;
}

/* 0 = a whole form. What was heard before an error depends on the pieces. */
static int read_form(const char *type, const char *body, size_t len, size_t step,
                     struct strbuf *heard)
{
    static const struct multipart_ops ops = { on_part, on_body, on_part_end };
    AQ_CLEANUP(multipart_reader_freep) struct multipart_reader *reader = NULL;
    int r = multipart_reader_new(type, NULL, &ops, heard, &reader, NULL);

    for (size_t at = 0; r == 0 && at < len; at += step)
        r = multipart_reader_feed(reader, body + at, AQ_MIN(step, len - at), NULL);
    return r < 0 ? r : multipart_reader_finish(reader, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf whole = STRBUF_INIT, pieces = STRBUF_INIT;
    const uint8_t *line = size ? memchr(data, '\n', size) : NULL;
    size_t len = line ? (size_t)(line - data) : 0, rest = size - len - 1;
    const char *body;
    char type[256];
    int r;

    if (!line || len >= sizeof(type))
        return 0;
    memcpy(type, data, len);
    type[len] = '\0';
    body = (const char *)line + 1;
    r = read_form(type, body, rest, SIZE_MAX / 2, &whole);
    if (r != read_form(type, body, rest, 1 + size % 13, &pieces))
        __builtin_trap();
    if (r == 0 && (whole.len != pieces.len || memcmp(whole.data, pieces.data, whole.len) != 0))
        __builtin_trap();
    return 0;
}
