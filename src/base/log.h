/* SPDX-License-Identifier: Apache-2.0 */
/* log.h - one line per event on standard error
 *
 * "<6>component: text key=value" for the journal, which reads the level from the
 * prefix (sd-daemon(3)); "2026-11-21T01:02:03 component: error: text" elsewhere, on
 * a terminal with colours in place of levels. Control characters are escaped. Only main(),
 * handlers and event callbacks log; libraries return errors instead. May be
 * called from any thread.
 */
#ifndef AQ_BASE_LOG_H
#define AQ_BASE_LOG_H

#include <stdint.h>

#include "base/error.h"

/* syslog(3) levels, but for the first */
enum log_level {
    LOG_LEVEL_NONE = 0, /* as a limit: write nothing */
    LOG_LEVEL_ERR = 3,
    LOG_LEVEL_WARNING = 4,
    LOG_LEVEL_INFO = 6,
    LOG_LEVEL_DEBUG = 7
};

/* 'component' is a static string, e.g. "manager". */
void log_init(const char *component, enum log_level max_level);

/* "error", "warning", "info", "debug" -> level, or -EINVAL. */
int log_parse_level(const char *text);

/* The text of a line that was written to a file; another line as it is. */
const char *log_text_of(const char *line);

/* That of the last line of a file behind 'from'; NULL = there is none, or no file. Caller frees. */
char *log_read_last(const char *path, int64_t from);

void log_write(enum log_level level, const char *fmt, ...) AQ_PRINTF(2, 3);

#define log_error(...) log_write(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
