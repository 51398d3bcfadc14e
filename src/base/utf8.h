/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h - well-formed UTF-8 (RFC 3629), nothing else, and how wide a terminal shows it */
#ifndef AQ_BASE_UTF8_H
#define AQ_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/strbuf.h"

/* No overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_is_valid(const char *bytes, size_t len) AQ_UNTRUSTED;

/* Length of the well-formed sequence at the front (1..4), 0 if there is none;
 * *ret_code gets its code point.
 */
size_t utf8_decode(const char *bytes, size_t len, uint32_t *ret_code) AQ_UNTRUSTED;

/* How many bytes at the front, 3 at most, continue a character that began before: a text that
 * was cut begins behind them.
 */
size_t utf8_rest(const char *bytes, size_t len) AQ_UNTRUSTED;

/* Take characters that a cut left incomplete out of the text. */
void utf8_drop_partial(char *text) AQ_UNTRUSTED;

/* Encode a code point (not a surrogate, <= U+10FFFF); returns 1..4. (jansson has a utf8_encode.) */
size_t utf8_write(uint32_t code, char out[4]);

/* Columns of a terminal that the text takes, by the locale; a byte that is no UTF-8 takes one. */
size_t utf8_width(const char *text, size_t len);

/* Bytes of the longest front of the text that takes at most 'width' columns. */
size_t utf8_fit(const char *text, size_t len, size_t width);

/* Append text from elsewhere so that it cannot steer a terminal: control characters (also
 * U+0080 to U+009F) and bytes that are no UTF-8 become '?'. Line ends and tabs stay.
 */
void utf8_write_printable(const char *text, size_t len, struct strbuf *out);

#endif
