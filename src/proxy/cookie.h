/* SPDX-License-Identifier: Apache-2.0 */
/* cookie.h - what lets a browser go on using an app: sealed, and bound to one app of one session
 *
 * Sealed under a key made of the proxy's own private key, so that it outlives a restart and no
 * other proxy takes it. It says for whom it is; whether that user may still use the session, and
 * whether it lives, the manager is asked for each connection.
 */
#ifndef AQ_PROXY_COOKIE_H
#define AQ_PROXY_COOKIE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/uuid.h"
#include "front/secret.h"

#define COOKIE_NAME "aliquot_app" /* of a port: "aliquot_app_PORT", as ports share cookies */
#define COOKIE_NAME_MAX 32
/* Cookies of one name that are tried, in the order of the request; a browser keeps fewer of a site.
 */
#define COOKIE_TRIES_MAX 200
#define COOKIE_APP_MAX 64
#define COOKIE_KEY_MAX 64 /* of an access key, with NUL */
#define COOKIE_TEXT_MAX 320

struct cookie {
    struct uuid session_id;
    char app[COOKIE_APP_MAX + 1];
    char access_key[COOKIE_KEY_MAX];
    int64_t expires_usec; /* wall clock */
};

/* Letters, digits, '-' and '_'. */
char *cookie_seal(const unsigned char secret[FRONT_SECRET_SIZE], const struct cookie *cookie,
                  char buf[COOKIE_TEXT_MAX]);

/* -EACCES: not sealed by us, changed, or expired at 'now_usec'. */
int cookie_open(const unsigned char secret[FRONT_SECRET_SIZE], const char *text, size_t len,
                int64_t now_usec, struct cookie *ret, struct aq_error *err) AQ_UNTRUSTED;

/* Its name by this port; 0 = by the proxy's own. With 'is_host' it has the prefix __Host-: browsers
 * keep such a cookie only from https, for "/" and for one host, so that no page of another host of
 * the domain can set one beside it.
 */
const char *cookie_name(uint16_t port, bool is_host, char buf[COOKIE_NAME_MAX]);
/* Does a cookie begin here that lets somebody in: here, by whatever port, or at a web server of the
 * same host?
 */
bool cookie_is_ours(const char *text) AQ_UNTRUSTED;
/* The value of the first cookie of that name in a Cookie header, or in what follows a value in it,
 * and its length; NULL if it has none.
 */
const char *cookie_find(const char *header, const char *name, size_t *ret_len) AQ_UNTRUSTED;
/* Append the header's value without ours. */
struct strbuf;
void cookie_remove(const char *header, struct strbuf *out) AQ_UNTRUSTED;

#endif
