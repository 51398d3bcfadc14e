/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of several logs in the order of their times. */
#include "cli/session/log_merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/strbuf.h"
#include "base/vec.h"

#define LINE_MAX_BYTES (1u << 20) /* a longer line is given in pieces */
#define CONSUMED_MAX (64u << 10)  /* bytes that were given and stay in the buffer */
#define TIME_MAX 40

struct log_merge_log {
    struct strbuf bytes;
    size_t at;       /* bytes that were given */
    size_t scanned;  /* no line that begins at 'at' ends before this offset */
    size_t line_len; /* of the line at 'at' with its end; 0 = it is not complete */
    size_t old;      /* bytes that were there at the last tick */
    bool is_ended;
    bool is_rest; /* the next bytes continue a line whose beginning was given */
    char time[TIME_MAX];
    size_t time_len; /* of the last line that was given */
};

struct log_merge {
    struct log_merge_log *logs;
    size_t count, cap;
    log_merge_fn *fn;
    void *data;
};

struct log_merge *log_merge_new(log_merge_fn *fn, void *data)
{
    struct log_merge *m = aq_alloc(sizeof(*m));

    m->fn = fn;
    m->data = data;
    return m;
}

void log_merge_free(struct log_merge *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++)
        strbuf_done(&m->logs[i].bytes);
    free(m->logs);
    free(m);
}

size_t log_merge_add(struct log_merge *m)
{
    vec_grow(&m->logs, &m->cap, m->count + 1, sizeof(*m->logs));
    m->logs[m->count] = (struct log_merge_log){ .at = 0 };
    strbuf_init(&m->logs[m->count].bytes);
    return m->count++;
}

/* ---- the next line of one ---- */

static void log_merge_find_line(struct log_merge_log *log)
{
    const char *from = log->bytes.data + log->scanned, *end;
    size_t left = log->bytes.len - log->scanned;

    if (log->line_len || log->at == log->bytes.len)
        return;
    end = left ? memchr(from, '\n', left) : NULL;
    log->scanned = end ? (size_t)(end - log->bytes.data) + 1 : log->bytes.len;
    if (end || log->is_ended || log->bytes.len - log->at > LINE_MAX_BYTES)
        log->line_len = log->scanned - log->at;
}

/* The time before the line at 'at'; the rest of a longer line has that of its beginning. */
static const char *log_merge_time(const struct log_merge_log *log, size_t *ret_len)
{
    const char *line = log->bytes.data + log->at;
    const char *space = memchr(line, ' ', AQ_MIN(log->line_len, (size_t)TIME_MAX));

    if (log->is_rest || !space) {
        *ret_len = log->time_len;
        return log->time;
    }
    *ret_len = (size_t)(space - line);
    return line;
}

static bool log_merge_is_earlier(const struct log_merge_log *one, const struct log_merge_log *other)
{
    size_t one_len, other_len;
    const char *one_time = log_merge_time(one, &one_len);
    const char *other_time = log_merge_time(other, &other_len);
    int order = memcmp(one_time, other_time, AQ_MIN(one_len, other_len));

    return order < 0 || (order == 0 && one_len < other_len);
}

/* ---- giving ---- */

static void log_merge_give(struct log_merge *m, struct log_merge_log *log)
{
    const char *text = log->bytes.data + log->at;
    size_t len = log->line_len;
    bool is_whole = text[len - 1] == '\n';
    struct log_merge_line line = { .log = (size_t)(log - m->logs) };

    line.time = log_merge_time(log, &line.time_len);
    if (line.time == text) {
        memcpy(log->time, text, line.time_len);
        log->time_len = line.time_len;
        text += line.time_len + 1;
        len -= line.time_len + 1;
    }
    line.text = text;
    line.text_len = len - is_whole;
    m->fn(m->data, &line);
    log->at += log->line_len;
    log->line_len = 0;
    log->is_rest = !is_whole;
    if (log->at == log->bytes.len || log->at > CONSUMED_MAX) {
        strbuf_consume(&log->bytes, log->at);
        log->scanned -= log->at;
        log->old -= AQ_MIN(log->old, log->at);
        log->at = 0;
    }
}

/* The log whose next line is the earliest; NULL while another may still have an earlier one. With
 * 'is_tick' only lines count that were there at the last tick, and nothing is waited for.
 */
static struct log_merge_log *log_merge_choose(const struct log_merge *m, bool is_tick)
{
    struct log_merge_log *found = NULL;

    for (size_t i = 0; i < m->count; i++) {
        struct log_merge_log *log = &m->logs[i];

        log_merge_find_line(log);
        if (!log->line_len && !log->is_ended && !is_tick)
            return NULL;
        if (log->line_len && (!is_tick || log->at + log->line_len <= log->old)
            && (!found || log_merge_is_earlier(log, found)))
            found = log;
    }
    return found;
}

static void log_merge_run(struct log_merge *m, bool is_tick)
{
    struct log_merge_log *log;

    while ((log = log_merge_choose(m, is_tick)))
        log_merge_give(m, log);
}

void log_merge_feed(struct log_merge *m, size_t log, const char *bytes, size_t len)
{
    strbuf_add(&m->logs[log].bytes, bytes, len);
    log_merge_run(m, false);
}

void log_merge_end(struct log_merge *m, size_t log)
{
    m->logs[log].is_ended = true;
    log_merge_run(m, false);
}

void log_merge_go_on(struct log_merge *m, size_t log)
{
    m->logs[log].is_ended = false;
    m->logs[log].is_rest = false;
}

void log_merge_tick(struct log_merge *m)
{
    log_merge_run(m, true);
    for (size_t i = 0; i < m->count; i++)
        m->logs[i].old = m->logs[i].bytes.len;
}

size_t log_merge_held(const struct log_merge *m, size_t log)
{
    return m->logs[log].bytes.len - m->logs[log].at;
}
