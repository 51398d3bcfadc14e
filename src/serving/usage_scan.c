/* SPDX-License-Identifier: Apache-2.0 */
/* usage_scan.c - see usage_scan.h */
#include "serving/usage_scan.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/json_scan.h"

#define KEY "\"usage\""
#define TOKENS_MAX INT64_C(1000000000)

void usage_scan_begin(struct usage_scan *scan, const char *content_type)
{
    static const struct {
        const char *type;
        enum usage_form form;
    } forms[] = { { "application/json", USAGE_JSON }, { "text/event-stream", USAGE_EVENTS } };

    *scan = (struct usage_scan){ .form = USAGE_NONE, .held = STRBUF_INIT };
    for (size_t i = 0; content_type && i < AQ_COUNT(forms); i++)
        if (strncasecmp(content_type, forms[i].type, strlen(forms[i].type)) == 0)
            scan->form = forms[i].form;
}

/* Digits alone; -1 for all else. */
static int64_t usage_number(struct json_span value)
{
    int64_t number = 0;

    for (size_t i = 0; i < value.len; i++) {
        if (value.text[i] < '0' || value.text[i] > '9')
            return -1;
        number = AQ_MIN(number * 10 + (value.text[i] - '0'), TOKENS_MAX);
    }
    return value.len ? number : -1;
}

/* OpenAI: {"cached_tokens": 12, ...} */
static int64_t usage_read_cached(struct json_span details)
{
    struct json_scan json = json_scan_make(details.text, details.len);
    struct json_span key;
    int64_t cached = 0;

    if (!details.len || *details.text != '{')
        return 0;
    while (json_scan_member(&json, &key)) {
        int64_t number = usage_number(json_scan_value(&json));

        if (json_span_is(key, "cached_tokens"))
            cached = AQ_MAX(number, 0);
    }
    return cached;
}

/* What follows the key: a colon and an object, of which the end is returned. */
static const char *usage_read_object(struct usage_scan *scan, const char *text, const char *end)
{
    struct json_scan json;
    struct json_span key;
    int64_t prompt = 0, completion = 0, cached = 0;

    while (text < end && (*text == ' ' || *text == ':'))
        text++;
    if (text == end || *text != '{')
        return text; /* null in most events */
    json = json_scan_make(text, (size_t)(end - text));
    while (json_scan_member(&json, &key)) {
        struct json_span value = json_scan_value(&json);
        int64_t number = usage_number(value);

        if (json_span_is(key, "prompt_tokens") || json_span_is(key, "input_tokens"))
            prompt = number;
        else if (json_span_is(key, "completion_tokens") || json_span_is(key, "output_tokens"))
            completion = number;
        else if (json_span_is(key, "prompt_tokens_details")
                 || json_span_is(key, "input_tokens_details"))
            cached = usage_read_cached(value);
    }
    scan->prompt_tokens = AQ_MAX(prompt, scan->prompt_tokens);
    scan->completion_tokens = AQ_MAX(completion, scan->completion_tokens);
    scan->cached_tokens = AQ_MIN(AQ_MAX(cached, scan->cached_tokens), scan->prompt_tokens);
    return json.at; /* 'end' if it is not whole: so it is not read again from within */
}

/* All keys of the name in the text. Inside of a JSON string its quotes would be escaped. */
static void usage_read_text(struct usage_scan *scan, const char *text, size_t len)
{
    const char *end = text + len, *at = text;

    while ((at = memmem(at, (size_t)(end - at), KEY, strlen(KEY))))
        at = usage_read_object(scan, at + strlen(KEY), end);
}

static void usage_take_tail(struct usage_scan *scan, const char *bytes, size_t len)
{
    if (len > USAGE_TAIL_MAX) {
        bytes += len - USAGE_TAIL_MAX;
        len = USAGE_TAIL_MAX;
    }
    strbuf_add(&scan->held, bytes, len);
    if (scan->held.len > (size_t)2 * USAGE_TAIL_MAX)
        strbuf_consume(&scan->held, scan->held.len - USAGE_TAIL_MAX);
}

/* Lines that are whole are read where they are. */
static void usage_take_events(struct usage_scan *scan, const char *bytes, size_t len)
{
    while (len) {
        const char *end = memchr(bytes, '\n', len);
        size_t part = end ? (size_t)(end - bytes) + 1 : len;

        if (scan->held.len + part > USAGE_EVENT_MAX)
            scan->is_skipping = true;
        if (!scan->is_skipping && (scan->held.len || !end))
            strbuf_add(&scan->held, bytes, part);
        if (end && !scan->is_skipping)
            usage_read_text(scan, scan->held.len ? scan->held.data : bytes,
                            scan->held.len ? scan->held.len : part);
        if (end || scan->is_skipping)
            strbuf_clear(&scan->held);
        scan->is_skipping &= !end;
        bytes += part;
        len -= part;
    }
}

void usage_scan_take(struct usage_scan *scan, const char *bytes, size_t len)
{
    if (scan->form == USAGE_JSON)
        usage_take_tail(scan, bytes, len);
    else if (scan->form == USAGE_EVENTS)
        usage_take_events(scan, bytes, len);
}

void usage_scan_finish(struct usage_scan *scan)
{
    size_t len = scan->held.len;

    if (scan->form == USAGE_JSON) /* more is held if the answer came in small pieces */
        len = AQ_MIN(len, (size_t)USAGE_TAIL_MAX);
    usage_read_text(scan, scan->held.data + (scan->held.len - len), len);
}

void usage_scan_done(struct usage_scan *scan)
{
    strbuf_done(&scan->held);
}
