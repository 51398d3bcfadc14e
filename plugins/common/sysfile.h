/* SPDX-License-Identifier: Apache-2.0 */
/* sysfile.h - small files of the machine, below the host's root */
#ifndef AQ_PLUGINS_COMMON_SYSFILE_H
#define AQ_PLUGINS_COMMON_SYSFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first line of root/path without its end; false if there is none. */
bool sysfile_line(const char *root, const char *path, char *buf, size_t size);

/* The number that the file begins with (decimal, or hexadecimal with 0x);
 * 'otherwise' if there is none.
 */
int64_t sysfile_number(const char *root, const char *path, int64_t otherwise);

/* The number behind a word at the start of a line ("simd_count 240"). */
int64_t sysfile_property(const char *root, const char *path, const char *word, int64_t otherwise);

bool sysfile_exists(const char *root, const char *path);

#endif
