/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - percent coding, query strings, absolute URLs and addresses */
#ifndef AQ_HTTP_URL_H
#define AQ_HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

#define URL_QUERY_MAX 256 /* pairs in one query string */

/* Decode "%xx" (and '+' as a space if 'plus') of text[len] into an arena.
 * -EINVAL for a broken escape, a NUL or what is not UTF-8 afterwards.
 */
int url_decode(struct arena *arena, const char *text, size_t len, bool plus, const char **ret,
               struct aq_error *err) AQ_UNTRUSTED;

/* Append 'text' with everything but RFC 3986 unreserved characters escaped. */
void url_encode(struct strbuf *out, const char *text);

struct url_pair {
    const char *name, *value; /* decoded; value is "" where there is no '=' */
};

struct url_query {
    struct url_pair *pairs; /* in the order of the text, duplicates kept */
    size_t count;
};

/* Split and decode "a=1&b=2" (without the '?') into an arena. Empty pieces are
 * dropped. -EINVAL for broken escapes or text, -E2BIG past URL_QUERY_MAX
 * pairs.
 */
int url_query_parse(struct arena *arena, const char *text, size_t len, struct url_query *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

/* The first value of that name, or NULL. */
const char *url_query_get(const struct url_query *query, const char *name);

#define URL_HOST_MAX 256
#define URL_PATH_MAX 108 /* sun_path */

/* Where to connect or listen. */
struct address {
    bool is_unix;
    uint16_t port;           /* TCP */
    char host[URL_HOST_MAX]; /* TCP: name or literal without brackets */
    char path[URL_PATH_MAX]; /* Unix socket */
};

/* "127.0.0.1:8081", "[::1]:8081", "host" (with 'default_port', which 0
 * forbids) or "unix:/path". Returns 0 or -EINVAL.
 */
int address_parse(const char *text, uint16_t default_port, struct address *ret,
                  struct aq_error *err) AQ_UNTRUSTED;

/* A loopback literal, "localhost" or a Unix socket. */
bool address_is_local(const struct address *address);

struct url {
    bool tls;                          /* https or wss */
    struct address address;            /* port is filled in from the scheme */
    char authority[URL_HOST_MAX + 16]; /* as written: what a Host header says */
    const char *target;                /* points into the text: "/path?query", "/" if it has none */
};

/* "http://", "https://", "ws://" or "wss://" host[:port] [/path] [?query].
 * Credentials and fragments are refused. Returns 0 or -EINVAL.
 */
int url_parse(const char *text, struct url *ret, struct aq_error *err) AQ_UNTRUSTED;

#endif
