/* SPDX-License-Identifier: Apache-2.0 */
/* name.h - names of files, which are bytes, as text, and back
 *
 * A byte that belongs to no UTF-8 becomes a character of U+EF80..U+EFFF, as in OPTU-8, and such a
 * character in a name becomes that of each of its bytes: so every file can be named in JSON.
 */
#ifndef AQ_TRANSFER_NAME_H
#define AQ_TRANSFER_NAME_H

#include <stddef.h>

#include "base/strbuf.h"

#define NAME_TEXT_MAX(bytes) (3 * (bytes)) /* of a name of so many bytes */

void name_write(const char *raw, struct strbuf *out) AQ_UNTRUSTED;

/* False if it does not fit into 'size' bytes, with the NUL. */
bool name_read(const char *text, char *ret, size_t size) AQ_UNTRUSTED;

#endif
