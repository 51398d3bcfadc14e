/* SPDX-License-Identifier: Apache-2.0 */
/* log_filter.h - lines of a log by pattern
 *
 * Bytes of a log are fed as they come; the lines that match go to standard output.
 */
#ifndef AQ_CLI_SESSION_LOG_FILTER_H
#define AQ_CLI_SESSION_LOG_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct log_filter;

/* 'pattern' is an extended regular expression; with timestamps it need not match the
 * first word of a line. An error of kind usage for a bad one.
 */
int log_filter_new(const char *pattern, bool has_timestamps, struct log_filter **ret,
                   struct aq_error *err);
void log_filter_free(struct log_filter *f);

/* Does a line match? Its end, with what terminals have there, does not belong to the text. */
bool log_filter_matches(const struct log_filter *f, const char *text, size_t len);

/* 0, or -errno if it cannot be written. */
int log_filter_feed(struct log_filter *f, const char *bytes, size_t len);

/* No more bytes come: a last line without a line break counts, too. */
int log_filter_end(struct log_filter *f);

#endif
