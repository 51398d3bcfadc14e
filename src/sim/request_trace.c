/* SPDX-License-Identifier: Apache-2.0 */
/* request_trace.c - requests to replay */
#include "sim/request_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fs.h"
#include "base/json_load.h"
#include "base/strbuf.h"
#include "sim/csv.h"
#include "sim/trace.h"

#define REQUESTS_BYTES_MAX ((size_t)512 << 20)
#define REQUESTS_SECONDS_MAX 1e11
#define REQUESTS_TOKENS_MAX 100000000
#define REQUESTS_LINE_MAX 65536
#define REQUESTS_SPAN_MAX (INT64_C(366) * 86400 * USEC_PER_SEC)

/* Seconds, or a date. */
static int request_trace_parse_time(const char *text, int64_t *ret_usec)
{
    char *end;
    double seconds = strtod(text, &end);

    if (end == text || *end)
        return clock_parse_date(text, ret_usec);
    if (!(fabs(seconds) <= REQUESTS_SECONDS_MAX))
        return -EINVAL;
    *ret_usec = llround(seconds * USEC_PER_SEC);
    return 0;
}

static int request_trace_compare_numbers(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int request_trace_compare(const void *a, const void *b)
{
    const struct traced_request *x = a, *y = b;
    int r = request_trace_compare_numbers(x->usec, y->usec);

    if (r == 0)
        r = request_trace_compare_numbers(x->prompt_tokens, y->prompt_tokens);
    return r ? r : request_trace_compare_numbers(x->output_tokens, y->output_tokens);
}

/* ---- CSV ---- */

static int request_trace_find_column(const struct csv *csv, const char *name, const char *other)
{
    int column = csv_find(csv, name);

    return column < 0 ? csv_find(csv, other) : column;
}

static int request_trace_read_csv(const char *text, size_t len, struct request_trace *ret,
                                  struct aq_error *err)
{
    int time, prompt, output, r;
    struct csv csv;

    if ((r = csv_begin(&csv, text, len, err)) < 0)
        return r;
    time = request_trace_find_column(&csv, "time", "TIMESTAMP");
    prompt = request_trace_find_column(&csv, "prompt_tokens", "ContextTokens");
    output = request_trace_find_column(&csv, "output_tokens", "GeneratedTokens");
    if (time < 0)
        return aq_fail_field(err, EINVAL, "time", "there is no column 'time' in the first line");
    while ((r = csv_next(&csv, err)) > 0) {
        struct traced_request *a = &ret->items[ret->count++];
        AQ_CLEANUP(aq_freep) char *value = strndup(csv.values[time].text, csv.values[time].len);

        if (request_trace_parse_time(value, &a->usec) < 0)
            return csv_fail(&csv, time, err, "expected seconds or a date");
        if ((prompt >= 0
             && csv_number(&csv, prompt, 0, REQUESTS_TOKENS_MAX, 0, &a->prompt_tokens, err) < 0)
            || (output >= 0
                && csv_number(&csv, output, 0, REQUESTS_TOKENS_MAX, 0, &a->output_tokens, err) < 0))
            return -EINVAL;
    }
    return r;
}

/* ---- lines of JSON ---- */

static const json_t *request_trace_get(const json_t *object, const char *name, const char *other)
{
    const json_t *value = json_object_get(object, name);

    return value ? value : json_object_get(object, other);
}

/* False if it is there and no number of tokens. */
static bool request_trace_read_tokens(const json_t *value, int64_t *ret)
{
    if (value
        && (!json_is_integer(value) || json_integer_value(value) < 0
            || json_integer_value(value) > REQUESTS_TOKENS_MAX))
        return false;
    *ret = json_integer_value(value);
    return true;
}

static int request_trace_read_object(const json_t *object, size_t line, struct traced_request *ret,
                                     struct aq_error *err)
{
    const json_t *time = request_trace_get(object, "time", "TIMESTAMP");
    double seconds = json_number_value(time);

    if (json_is_number(time) && fabs(seconds) <= REQUESTS_SECONDS_MAX)
        ret->usec = llround(seconds * USEC_PER_SEC);
    else if (!json_is_string(time)
             || request_trace_parse_time(json_string_value(time), &ret->usec) < 0)
        return aq_fail_field(err, EINVAL, "time", "line %zu: 'time' must be seconds or a date",
                             line);
    if (!request_trace_read_tokens(request_trace_get(object, "prompt_tokens", "ContextTokens"),
                                   &ret->prompt_tokens)
        || !request_trace_read_tokens(request_trace_get(object, "output_tokens", "GeneratedTokens"),
                                      &ret->output_tokens))
        return aq_fail(err, EINVAL, "line %zu: expected numbers of tokens from 0 to %d", line,
                       REQUESTS_TOKENS_MAX);
    return 0;
}

static int request_trace_read_json(const char *text, size_t len, struct request_trace *ret,
                                   struct aq_error *err)
{
    const char *at = text, *end = text + len;

    for (size_t line = 1; at < end; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t bytes = (size_t)((next ? next : end) - at);
        json_error_t why;
        json_auto_t *object = NULL;
        int r;

        if (bytes > REQUESTS_LINE_MAX)
            return aq_fail(err, EINVAL, "line %zu has more than %d bytes", line, REQUESTS_LINE_MAX);
        if (strspn(at, " \t\r") < bytes) {
            if (!(object = json_load_text(at, bytes, 0, &why)) || !json_is_object(object))
                return aq_fail(err, EINVAL, "line %zu: expected a JSON object", line);
            if ((r = request_trace_read_object(object, line, &ret->items[ret->count++], err)) < 0)
                return r;
        }
        at += bytes + 1;
    }
    return 0;
}

/* ---- the whole ---- */

int request_trace_read(const char *text, size_t len, struct arena *arena, struct request_trace *ret,
                       struct aq_error *err)
{
    size_t lines = csv_count_lines(text, len);
    struct request_trace all = { 0 };
    int r;

    if (lines > TRACE_LINES_MAX)
        return aq_fail(err, EINVAL, "more than %d lines", TRACE_LINES_MAX);
    all.items = arena_array(arena, lines + 1, sizeof(*all.items));
    r = len > 0 && text[strspn(text, " \t\r\n")] == '{'
            ? request_trace_read_json(text, len, &all, err)
            : request_trace_read_csv(text, len, &all, err);
    if (r < 0)
        return r;
    if (all.count == 0)
        return aq_fail(err, EINVAL, "there are no requests");
    qsort(all.items, all.count, sizeof(*all.items), request_trace_compare);
    for (size_t i = all.count; i-- > 0;)
        all.items[i].usec -= all.items[0].usec;
    if (all.items[all.count - 1].usec > REQUESTS_SPAN_MAX)
        return aq_fail(err, EINVAL, "the requests span more than a year");
    *ret = all;
    return 0;
}

int request_trace_load(const char *path, struct arena *arena, struct request_trace *ret,
                       struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = fs_read(AT_FDCWD, path, REQUESTS_BYTES_MAX, &text, err);

    if (r < 0)
        return r;
    r = request_trace_read(text.data, text.len, arena, ret, err);
    return r < 0 ? aq_error_wrap(err, "%s", path) : 0;
}
