/* SPDX-License-Identifier: Apache-2.0 */
/* log_filter.h - lines of a log by pattern and by the times that they begin with
 *
 * Bytes of a log are fed as they come; the lines that are wanted go to standard
 * output. A line that begins with a date ("2026-11-23 02:19:03,123 INFO ...",
 * "[2026-11-23T02:19:03Z] ...") has that time, others the time of the line before.
 */
#ifndef AQ_CLI_SESSION_LOG_FILTER_H
#define AQ_CLI_SESSION_LOG_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct log_filter;

struct log_filter_options {
    const char *pattern; /* extended regular expression; NULL = every line */
    const char *since;   /* a date or how long ago; NULL = from the beginning */
    bool timestamps;     /* write each line's time before it */
};

/* An error of kind usage for a bad pattern or time. */
int log_filter_new(const struct log_filter_options *options, struct log_filter **ret,
                   struct aq_error *err);
void log_filter_free(struct log_filter *f);

/* 0, or -errno if it cannot be written. */
int log_filter_feed(struct log_filter *f, const char *bytes, size_t len);

/* No more bytes come: a last line without a line break counts, too. */
int log_filter_end(struct log_filter *f);

/* Had any line a time? */
bool log_filter_has_times(const struct log_filter *f);

#endif
