/* SPDX-License-Identifier: Apache-2.0 */
/* An event stream, fed in pieces; what is read can be written and read again. */
#include <stdint.h>
#include <string.h>

#include "http/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_same(void *data, const struct sse_event *event)
{
    const struct sse_event *want = data;

    if (event->data_len != want->data_len || memcmp(event->data, want->data, want->data_len) != 0)
        __builtin_trap();
    return 0;
}

static int on_event(void *data, const struct sse_event *event)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(sse_reader_freep) struct sse_reader *reader = NULL;
    struct sse_event want = *event;

    (void)data;
    if (memchr(event->data, '\r', event->data_len))
        __builtin_trap();
    sse_format(&text, event->event, NULL, event->data, event->data_len);
    reader = sse_reader_new(1 << 20, on_same, &want);
    (void)sse_reader_feed(reader, text.data, text.len, NULL);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(sse_reader_freep) struct sse_reader *reader = sse_reader_new(4096, on_event, NULL);
    size_t step = 1 + size % 17;

    for (size_t at = 0; at < size; at += step)
        if (sse_reader_feed(reader, (const char *)data + at, AQ_MIN(step, size - at), NULL))
            return 0;
    return 0;
}
