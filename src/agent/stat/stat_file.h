/* SPDX-License-Identifier: Apache-2.0 */
/* stat_file.h - files of /proc, /sys and cgroups that are read again and again
 *
 * A file stays open and is read from its beginning each time, into a buffer
 * of the caller's.
 */
#ifndef AQ_AGENT_STAT_STAT_FILE_H
#define AQ_AGENT_STAT_STAT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAT_TEXT_MAX (64u << 10)

/* A descriptor, or -1. */
int stat_file_open(const char *path);

/* The text, NUL-terminated, cut to size - 1; false if there is none. */
bool stat_file_read(int fd, char *buf, size_t size);

/* The number after "KEY " or "KEY:" at the beginning of a line. */
bool stat_file_find(const char *text, const char *key, uint64_t *ret);

/* A text that is one number. "max" and other words are none. */
bool stat_file_number(const char *text, uint64_t *ret);

/* The beginning of the next line; NULL after the last. */
const char *stat_file_next_line(const char *line);

#endif
