/* SPDX-License-Identifier: Apache-2.0 */
/* log_merge.h - lines of several logs in the order of their times
 *
 * Each line comes with its time before it, as the manager writes it: RFC 3339 in UTC, of one
 * width, so that times compare as text. A line is given when every other log that goes on has a
 * later one. Logs that are followed may be silent for hours, so log_merge_tick() gives a line after
 * one or two ticks. Pure.
 */
#ifndef AQ_CLI_SESSION_LOG_MERGE_H
#define AQ_CLI_SESSION_LOG_MERGE_H

#include <stdbool.h>
#include <stddef.h>

struct log_merge;

struct log_merge_line {
    size_t log; /* as log_merge_add() has numbered it */
    const char *time, *text;
    size_t time_len, text_len; /* without the line's end */
};

/* The line lives until the function returns, which makes no call below. */
typedef void log_merge_fn(void *data, const struct log_merge_line *line);

struct log_merge *log_merge_new(log_merge_fn *fn, void *data);
void log_merge_free(struct log_merge *m); /* NULL is fine */

/* One more log; the first has the number 0. */
size_t log_merge_add(struct log_merge *m);

/* Adds bytes of a log, in pieces of any size. */
void log_merge_feed(struct log_merge *m, size_t log, const char *bytes, size_t len);

/* Marks the end of a log: a last line without a newline is complete, and no other log waits for
 * this one. log_merge_go_on() reopens it.
 */
void log_merge_end(struct log_merge *m, size_t log);
void log_merge_go_on(struct log_merge *m, size_t log);

/* Gives the lines that were there at the last tick, without waiting for other logs. */
void log_merge_tick(struct log_merge *m);

/* Bytes of a log that wait. */
size_t log_merge_held(const struct log_merge *m, size_t log);

#endif
