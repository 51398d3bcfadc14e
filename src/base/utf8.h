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

/* The character at text[at], at < len: its bytes (1 if they are not UTF-8), and whether a terminal
 * shows it as it is. Control characters (C0, DEL, C1), marks that change the direction of text, and
 * characters without width are not shown; joiners (U+200C, U+200D) are between characters beyond
 * ASCII, and one selector (U+FE0E, U+FE0F) behind such a character, as in Persian words and emoji.
 * Both read the neighbours in text[0 .. len).
 */
size_t utf8_next(const char *text, size_t len, size_t at, uint32_t *ret_code,
                 bool *ret_is_shown) AQ_UNTRUSTED;

/* Is every character shown, as the name of an object must be? *ret_code gets the first that is not
 * (a byte that is not UTF-8 as it is), and is undefined else.
 */
bool utf8_is_shown(const char *text, size_t len, uint32_t *ret_code) AQ_UNTRUSTED;

/* Append text from elsewhere so that it cannot steer a terminal: what is not shown becomes '?'.
 * Line ends and tabs stay.
 */
void utf8_write_printable(const char *text, size_t len, struct strbuf *out);

/* The same in place, and line ends and tabs become '?', too. */
void utf8_make_printable(char *text) AQ_UNTRUSTED;

/* Append bytes as a text that C strings and JSON can hold: NUL, and each byte that is not UTF-8,
 * becomes U+FFFD.
 */
void utf8_write_text(const char *bytes, size_t len, struct strbuf *out) AQ_UNTRUSTED;

/* Append a JSON text in which strings have escapes (\u009b) for what is not shown: the value is the
 * same.
 */
void utf8_write_json(const char *json, size_t len, struct strbuf *out);

#endif
