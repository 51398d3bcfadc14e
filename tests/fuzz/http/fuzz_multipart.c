/* SPDX-License-Identifier: Apache-2.0 */
/* A form: the first line is the content type, the rest the body, fed in pieces. */
#include <stdint.h>
#include <string.h>

#include "http/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_part(void *data, const struct multipart_part *part)
{
    (void)data;
    return part->name == NULL;
}

static int on_body(void *data, const char *bytes, size_t len)
{
    size_t *total = data;

    (void)bytes;
    *total += len;
    return 0;
}

static int on_part_end(void *data)
{
    (void)data;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct multipart_ops ops = { on_part, on_body, on_part_end };
    AQ_CLEANUP(multipart_reader_freep) struct multipart_reader *reader = NULL;
    const uint8_t *line = memchr(data, '\n', size);
    char type[256];
    size_t len = line ? (size_t)(line - data) : 0, total = 0, step;

    if (!line || len >= sizeof(type))
        return 0;
    memcpy(type, data, len);
    type[len] = '\0';
    if (multipart_reader_new(type, NULL, &ops, &total, &reader, NULL) < 0)
        return 0;
    step = 1 + size % 13;
    for (size_t at = len + 1; at < size; at += step)
        if (multipart_reader_feed(reader, (const char *)data + at, AQ_MIN(step, size - at), NULL))
            return 0;
    (void)multipart_reader_finish(reader, NULL);
    if (total > size)
        __builtin_trap();
    return 0;
}
