/* SPDX-License-Identifier: Apache-2.0 */
/* log_lines.h - the lines of a log by the times at which they were printed
 *
 * A line's time is that of its first byte. Lines come as they are, in pieces if they
 * are read so; a line that has begun is not waited for.
 */
#ifndef AQ_AGENT_KERNEL_LOG_LINES_H
#define AQ_AGENT_KERNEL_LOG_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "monitor/log_times.h"

struct log_lines {
    int64_t since_usec; /* only lines of this time or later; 0 = all */
    bool timestamps;    /* write the time before each: RFC 3339, UTC, a space */
    bool is_inside;     /* what comes next belongs to a line that has begun */
    bool is_wanted;     /* that line */
    bool has_time;
    bool is_newest;           /* no later record for what was read: records come before bytes */
    int64_t usec;             /* of the newest line */
    char time[CLOCK_ISO_MAX]; /* the same, and a space */
};

/* Append what is wanted of 'bytes', which are at 'offset' of the half that 'times' is of.
 * Without times (not open) lines have the time of the one before; "-" if there is none.
 * Ends after the line, or piece of one, with which 'out' has 'out_max' bytes: a line of one
 * byte becomes thirty. How many bytes were taken.
 */
size_t log_lines_take(struct log_lines *lines, const char *bytes, size_t len, uint64_t offset,
                      struct log_times_reader *times, struct strbuf *out, size_t out_max);

#endif
