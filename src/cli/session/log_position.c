/* SPDX-License-Identifier: Apache-2.0 */
/* How far a log was read. */
#include "cli/session/log_position.h"

#include <string.h>

/* The time before a line; it ends with a blank. What is longer than any time is none, and text. */
static void log_position_take_time(struct log_position *p, char c, bool has_times,
                                   struct strbuf *out)
{
    bool is_whole = c == ' ';

    if (!is_whole && p->time_len < sizeof(p->time) - 1) {
        p->time[p->time_len++] = c;
        p->after++;
        return;
    }
    p->time[p->time_len] = '\0';
    if (strcmp(p->since, p->time) != 0) {
        memcpy(p->since, p->time, p->time_len + 1);
        p->after = p->time_len;
    }
    p->after++;
    p->is_inside = true;
    if (has_times || !is_whole) {
        strbuf_add(out, p->time, p->time_len);
        strbuf_addc(out, c);
    }
    p->time_len = 0;
}

static size_t log_position_take_text(struct log_position *p, const char *bytes, size_t len,
                                     struct strbuf *out)
{
    const char *end = memchr(bytes, '\n', len);
    size_t taken = end ? (size_t)(end - bytes) + 1 : len;

    strbuf_add(out, bytes, taken);
    p->after += taken;
    p->is_inside = !end;
    return taken;
}

void log_position_take(struct log_position *p, const char *bytes, size_t len, bool has_times,
                       struct strbuf *out)
{
    size_t at = p->skip < len ? (size_t)p->skip : len;

    p->skip -= at;
    while (at < len) {
        if (p->is_inside)
            at += log_position_take_text(p, bytes + at, len - at, out);
        else
            log_position_take_time(p, bytes[at++], has_times, out);
    }
}

void log_position_reopen(struct log_position *p)
{
    p->skip = p->after;
}
