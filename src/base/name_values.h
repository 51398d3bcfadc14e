/* SPDX-License-Identifier: Apache-2.0 */
/* name_values.h - a file of values by name, as programs write it for $ALIQUOT_OUTPUT
 *
 *   accuracy=0.97
 *   notes<<END
 *   two
 *   lines
 *   END
 *
 * A value is a text of one line behind '=', or the lines between NAME<<MARKER and a line that is
 * the marker. Empty lines between values are skipped, nothing else is trimmed. Of two values of one
 * name the last counts, so a program may append a better one. UTF-8; of control characters only
 * tabs and line ends, so a value can be passed on as an argument or a variable.
 */
#ifndef AQ_BASE_NAME_VALUES_H
#define AQ_BASE_NAME_VALUES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"

#define NAME_VALUES_BYTES_MAX (64 << 10) /* of the file */
#define NAME_VALUES_MAX 64               /* values */
#define NAME_VALUES_NAME_MAX 64          /* bytes of a name */
/* Bytes of the values as JSON: line ends, tabs, quotes and backslashes take two. */
#define NAME_VALUES_JSON_MAX (2 * NAME_VALUES_BYTES_MAX + 8 * NAME_VALUES_MAX)

/* A letter or '_', then letters, digits, '_' and '-'. */
bool name_values_is_name(const char *name, size_t len);

/* Append the values as a JSON object of texts, by the first occurrence of each name. -EINVAL, such
 * as "line 3: expected NAME=VALUE or NAME<<MARKER, not 'accuracy 0.97'"; then nothing is appended.
 */
int name_values_read(const char *text, size_t len, struct strbuf *out,
                     struct aq_error *err) AQ_UNTRUSTED;

#endif
