/* SPDX-License-Identifier: Apache-2.0 */
/* cookie.h - the two cookies of a browser: of a login, and of a browser in which somebody has
 * logged in before
 *
 * The first is 32 random bytes, of which the manager keeps the SHA-256. The second says nothing of
 * a login: it is a number that this web server has sealed for an e-mail address, and one that shows
 * it is not kept from logging in by what strangers try.
 */
#ifndef AQ_WEB_COOKIE_H
#define AQ_WEB_COOKIE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "front/secret.h"

#define COOKIE_TEXT_MAX 44   /* of a login */
#define COOKIE_HASH_MAX 65   /* hex digits */
#define COOKIE_DEVICE_MAX 97 /* hex digits: number and seal */

void cookie_make(char ret[COOKIE_TEXT_MAX]);
/* False if it is none that cookie_make() gives. */
bool cookie_hash(const char *text, size_t len, char ret[COOKIE_HASH_MAX]) AQ_UNTRUSTED;

void cookie_make_device(const unsigned char secret[FRONT_SECRET_SIZE], const char *email,
                        char ret[COOKIE_DEVICE_MAX]);
/* Was it sealed for this e-mail address? */
bool cookie_check_device(const unsigned char secret[FRONT_SECRET_SIZE], const char *email,
                         const char *text, size_t len) AQ_UNTRUSTED;

/* "__Host-" goes before where 'is_https'. */
enum cookie_kind { COOKIE_LOGIN, COOKIE_DEVICE };

/* The value in a Cookie header, and its length; NULL if it has none, or several: then somebody else
 * has set one for the same host, and browsers do not say which.
 */
const char *cookie_find(const char *header, enum cookie_kind kind, bool is_https,
                        size_t *ret_len) AQ_UNTRUSTED;
/* The value of a Set-Cookie header; 'value' "" takes it away. */
void cookie_write(enum cookie_kind kind, bool is_https, const char *value, long long age_sec,
                  struct strbuf *out);

#endif
