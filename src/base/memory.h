/* SPDX-License-Identifier: Apache-2.0 */
/* memory.h - allocations that do not fail
 *
 * A program that can be started again ends when the system has no memory: aq_alloc() and its
 * siblings, and through them arenas, string buffers, growing arrays, maps and jansson, write one
 * line and end the process with MEMORY_EXIT_STATUS. Callers neither check nor clean up. kill -9 at
 * any moment loses nothing, and this end is the same.
 *
 * A program that must go on (the monitor, the runner) calls memory_recover() first. The containers
 * of base then report a failed allocation as their headers say, and code that such a program shares
 * with others checks for it. aq_alloc() and its siblings end the process there, too: such code
 * calls malloc().
 *
 * Sizes that a client chooses are limited where they are read.
 */
#ifndef AQ_BASE_MEMORY_H
#define AQ_BASE_MEMORY_H

#include <stddef.h>

#define MEMORY_EXIT_STATUS 71 /* EX_OSERR of sysexits(3) */

/* Zeroed; free() it. */
void *aq_alloc(size_t size) __attribute__((malloc, returns_nonnull));

/* 'count' zeroed objects; ends the process also if the product overflows. */
void *aq_alloc_array(size_t count, size_t size) __attribute__((malloc, returns_nonnull));

/* As realloc(); what is added is not zeroed. 'size' is not 0. */
void *aq_realloc(void *p, size_t size) __attribute__((returns_nonnull));

/* Copies that the caller frees. NULL gives NULL. */
char *aq_strdup(const char *text);
char *aq_strndup(const char *text, size_t len);

/* Call this at the start of a program that goes on without memory. */
void memory_recover(void);

/* An allocation has failed: ends the process unless memory_recover() was called. */
void memory_is_short(void);

#endif
