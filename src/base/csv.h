/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - fields of comma-separated values by RFC 4180 */
#ifndef AQ_BASE_CSV_H
#define AQ_BASE_CSV_H

#include <stddef.h>

#include "base/strbuf.h"

/* Append a field: quoted if it holds a comma, quote, line end or edge blank. */
void csv_write_field(const char *text, size_t len, struct strbuf *out);

#endif
