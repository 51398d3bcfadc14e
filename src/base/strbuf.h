/* SPDX-License-Identifier: Apache-2.0 */
/* strbuf.h - a growing string, always NUL-terminated
 *
 * The contents are borrowed until the next append; strbuf_steal() hands them over.
 *
 * After memory_recover() a failed allocation is remembered: later calls do nothing and
 * strbuf_ok() is false, so a chain of appends needs one check at its end. Other programs
 * have ended by then (base/memory.h).
 */
#ifndef AQ_BASE_STRBUF_H
#define AQ_BASE_STRBUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct strbuf {
    char *data; /* never NULL after init: "" at first */
    size_t len;
    size_t cap;
    bool failed;
};

extern char strbuf_empty[1];
#define STRBUF_INIT          \
    {                        \
        .data = strbuf_empty \
    }

void strbuf_init(struct strbuf *sb);
void strbuf_done(struct strbuf *sb); /* release; usable again as empty */

/* Forget the contents, keep the memory. */
void strbuf_clear(struct strbuf *sb);

/* Make room for 'more' further bytes; false if memory is short. */
bool strbuf_reserve(struct strbuf *sb, size_t more);

void strbuf_add(struct strbuf *sb, const void *bytes, size_t len);
void strbuf_addc(struct strbuf *sb, char c);
void strbuf_adds(struct strbuf *sb, const char *text);
void strbuf_addi(struct strbuf *sb, int64_t value);      /* decimal */
void strbuf_add_size(struct strbuf *sb, uint64_t bytes); /* "64 MiB"; "260 KiB" if not whole */
void strbuf_addf(struct strbuf *sb, const char *fmt, ...) AQ_PRINTF(2, 3);
void strbuf_vaddf(struct strbuf *sb, const char *fmt, va_list args) AQ_PRINTF(2, 0);

/* Cut to 'len' bytes, which must not be more than there are. */
void strbuf_truncate(struct strbuf *sb, size_t len);

/* Drop the first 'len' bytes. */
void strbuf_consume(struct strbuf *sb, size_t len);

static inline bool strbuf_ok(const struct strbuf *sb)
{
    return !sb->failed;
}

/* The string, owned by the caller (free()); the buffer is empty afterwards.
 * NULL if any append failed.
 */
char *strbuf_steal(struct strbuf *sb);

/* A new formatted string (free()), or NULL. */
char *aq_format(const char *fmt, ...) AQ_PRINTF(1, 2);

static inline void strbuf_donep(struct strbuf *sb)
{
    strbuf_done(sb);
}

#endif
