/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of server-sent events (HTML Living Standard 9.2). */
#include "base/memory.h"
#include "http/sse.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

static void sse_text_add_field(struct strbuf *out, const char *name, const char *text, size_t len)
{
    strbuf_adds(out, name);
    strbuf_add(out, text, len);
    strbuf_addc(out, '\n');
}

void sse_format(struct strbuf *out, const char *event, const char *id, const char *data, size_t len)
{
    if (event)
        sse_text_add_field(out, "event: ", event, strcspn(event, "\r\n"));
    if (id)
        sse_text_add_field(out, "id: ", id, strcspn(id, "\r\n"));
    for (;;) {
        size_t line = 0;

        while (line < len && data[line] != '\n' && data[line] != '\r')
            line++;
        sse_text_add_field(out, "data: ", data, line);
        if (line == len)
            break;
        line += data[line] == '\r' && line + 1 < len && data[line + 1] == '\n' ? 2 : 1;
        data += line;
        len -= line;
    }
    strbuf_addc(out, '\n');
}

struct sse_reader {
    size_t event_max;
    sse_event_fn *on_event;
    void *on_event_data;
    struct strbuf line, event, data, id;
    long retry_msec;
    bool has_data, after_cr, past_mark;
};

struct sse_reader *sse_reader_new(size_t event_max, sse_event_fn *on_event, void *data)
{
    struct sse_reader *reader = aq_alloc(sizeof(*reader));

    reader->event_max = event_max;
    reader->on_event = on_event;
    reader->on_event_data = data;
    reader->retry_msec = -1;
    strbuf_init(&reader->line);
    strbuf_init(&reader->event);
    strbuf_init(&reader->data);
    strbuf_init(&reader->id);
    return reader;
}

void sse_reader_free(struct sse_reader *reader)
{
    if (!reader)
        return;
    strbuf_done(&reader->line);
    strbuf_done(&reader->event);
    strbuf_done(&reader->data);
    strbuf_done(&reader->id);
    free(reader);
}

/* An empty line: the event is whole. Without data there is none. */
static int sse_text_dispatch(struct sse_reader *reader)
{
    struct sse_event event = {
        .event = reader->event.len ? reader->event.data : "message",
        .data = reader->data.data,
        .data_len = reader->data.len,
        .id = reader->id.data,
        .retry_msec = reader->retry_msec,
    };
    int r = reader->has_data ? reader->on_event(reader->on_event_data, &event) : 0;

    strbuf_clear(&reader->event);
    strbuf_clear(&reader->data);
    reader->has_data = false;
    return r;
}

static void sse_text_set_retry(struct sse_reader *reader, const char *digits)
{
    size_t len = strlen(digits);

    if (len >= 1 && len <= 9 && strspn(digits, "0123456789") == len)
        reader->retry_msec = strtol(digits, NULL, 10);
}

static void sse_text_take_field(struct sse_reader *reader, const char *name, const char *value,
                                size_t len)
{
    if (strcmp(name, "data") == 0) {
        if (reader->has_data)
            strbuf_addc(&reader->data, '\n');
        strbuf_add(&reader->data, value, len);
        reader->has_data = true;
    } else if (strcmp(name, "event") == 0) {
        strbuf_clear(&reader->event);
        strbuf_add(&reader->event, value, len);
    } else if (strcmp(name, "id") == 0 && !memchr(value, '\0', len)) {
        strbuf_clear(&reader->id);
        strbuf_add(&reader->id, value, len);
    } else if (strcmp(name, "retry") == 0) {
        sse_text_set_retry(reader, value);
    }
}

static int sse_text_take_line(struct sse_reader *reader)
{
    char *line = reader->line.data, *colon;
    size_t len = reader->line.len;

    if (!reader->past_mark && len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
        line += 3;
        len -= 3;
    }
    reader->past_mark = true;
    if (len == 0)
        return sse_text_dispatch(reader);
    colon = memchr(line, ':', len);
    if (!colon) {
        sse_text_take_field(reader, line, "", 0);
    } else if (colon != line) { /* a line that begins with a colon is a comment */
        char *value = colon + 1 + (colon + 1 < line + len && colon[1] == ' ');

        *colon = '\0';
        sse_text_take_field(reader, line, value, (size_t)(line + len - value));
    }
    return 0;
}

int sse_reader_feed(struct sse_reader *reader, const char *bytes, size_t len, struct aq_error *err)
{
    for (size_t i = 0; i < len; i++) {
        bool is_lf_of_crlf = bytes[i] == '\n' && reader->after_cr;
        int r;

        reader->after_cr = bytes[i] == '\r';
        if (is_lf_of_crlf)
            continue;
        if (bytes[i] != '\r' && bytes[i] != '\n') {
            strbuf_addc(&reader->line, bytes[i]);
            if (reader->line.len + reader->data.len > reader->event_max)
                return aq_fail(err, EMSGSIZE, "an event is larger than %zu bytes",
                               reader->event_max);
            continue;
        }
        r = sse_text_take_line(reader);
        strbuf_clear(&reader->line);
        if (r != 0)
            return r;
    }
    return 0;
}
