/* SPDX-License-Identifier: Apache-2.0 */
/* log_lines.c - the lines of a log by the times at which they were printed */
#include "agent/kernel/log_lines.h"

#include <string.h>

/* Many lines have the same. */
static void log_lines_set_time(struct log_lines *lines, int64_t usec)
{
    if (lines->has_time && lines->usec == usec)
        return;
    lines->usec = usec;
    lines->has_time = true;
    (void)strcat(clock_format_utc(usec, lines->time), " ");
}

static void log_lines_begin(struct log_lines *lines, uint64_t offset,
                            struct log_times_reader *times, struct strbuf *out)
{
    if (times->fd >= 0 && !lines->is_newest) {
        log_lines_set_time(lines, log_times_reader_at(times, offset));
        lines->is_newest = !times->has_next;
    }
    lines->is_wanted = !lines->since_usec || (lines->has_time && lines->usec >= lines->since_usec);
    if (lines->is_wanted && lines->timestamps)
        strbuf_adds(out, lines->has_time ? lines->time : "- ");
}

size_t log_lines_take(struct log_lines *lines, const char *bytes, size_t len, uint64_t offset,
                      struct log_times_reader *times, struct strbuf *out, size_t out_max)
{
    size_t at = 0;

    lines->is_newest = false;
    while (at < len && out->len < out_max) {
        const char *end = memchr(bytes + at, '\n', len - at);
        size_t size = end ? (size_t)(end - bytes) + 1 - at : len - at;

        if (!lines->is_inside)
            log_lines_begin(lines, offset + at, times, out);
        if (lines->is_wanted)
            strbuf_add(out, bytes + at, size);
        lines->is_inside = !end;
        at += size;
    }
    return at;
}
