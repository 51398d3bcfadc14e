/* SPDX-License-Identifier: Apache-2.0 */
/* jsonw.h - append-only JSON writer
 *
 * Writes straight into a strbuf, no tree. The writer puts commas; the caller
 * balances objects and arrays and gives a key before each member. Text that
 * is not UTF-8 has its bad bytes replaced by U+FFFD, so the output is always
 * valid JSON. No whitespace.
 */
#ifndef AQ_BASE_JSONW_H
#define AQ_BASE_JSONW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

struct jsonw {
    struct strbuf *out;
    bool need_comma;
};

static inline struct jsonw jsonw_make(struct strbuf *out)
{
    return (struct jsonw){ .out = out };
}

void jsonw_object_begin(struct jsonw *w);
void jsonw_object_end(struct jsonw *w);
void jsonw_array_begin(struct jsonw *w);
void jsonw_array_end(struct jsonw *w);

void jsonw_key(struct jsonw *w, const char *key);
void jsonw_keyn(struct jsonw *w, const char *key, size_t len);

void jsonw_null(struct jsonw *w);
void jsonw_bool(struct jsonw *w, bool value);
void jsonw_int(struct jsonw *w, int64_t value);
/* Shortest form that reads back as the same double; null for NaN and infinity. */
void jsonw_double(struct jsonw *w, double value);
/* NULL gives null. */
void jsonw_str(struct jsonw *w, const char *text);
void jsonw_strn(struct jsonw *w, const char *text, size_t len);
/* Text that already is one JSON value. */
void jsonw_raw(struct jsonw *w, const char *json, size_t len);

/* key and value in one call */
void jsonw_member_str(struct jsonw *w, const char *key, const char *text);
void jsonw_member_int(struct jsonw *w, const char *key, int64_t value);
void jsonw_member_bool(struct jsonw *w, const char *key, bool value);
void jsonw_member_null(struct jsonw *w, const char *key);

#endif
