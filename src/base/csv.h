/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - fields of comma-separated values by RFC 4180 */
#ifndef AQ_BASE_CSV_H
#define AQ_BASE_CSV_H

#include <stddef.h>

#include "base/strbuf.h"

/* Append a field for people, whose spreadsheets and terminals must not do what the text says: one
 * that a spreadsheet would compute (it begins with = + - @ or a tab, and is not a number) gets a
 * single quote before it; what a terminal does not show becomes '?' (utf8_write_printable()).
 */
void csv_write_field(const char *text, size_t len, struct strbuf *out);

/* The text of a field that csv_write_field() wrote: behind the single quote that it has added. */
const char *csv_field_text(const char *field) AQ_UNTRUSTED;

/* Append a field as it is, quoted if it holds a comma, quote, line end or edge blank. 'text' is
 * NUL-terminated.
 */
void csv_write_exact(const char *text, size_t len, struct strbuf *out);

#endif
