/* SPDX-License-Identifier: Apache-2.0 */
/* redis_uri.h - the URI of a Redis server, or of the Sentinels that name it
 *
 *   redis://[USER][:PASSWORD]@HOST[:PORT][/DB]
 *   redis+sentinel://[[USER][:PASSWORD]@]HOST[:PORT],HOST[:PORT].../SERVICE[?db=DB]
 *
 * rediss:// and rediss+sentinel:// are the same over TLS. USER and PASSWORD are those of the
 * server, percent-encoded; Sentinels have a password of their own. An IPv6 address stands in
 * brackets.
 */
#ifndef AQ_REDIS_REDIS_URI_H
#define AQ_REDIS_REDIS_URI_H

#include "base/arena.h"
#include "base/error.h"
#include "http/url.h"

#define REDIS_PORT 6379
#define REDIS_SENTINEL_PORT 26379
#define REDIS_SENTINELS_MAX 16
#define REDIS_DB_MAX 10000

struct redis_place {
    bool is_tls, has_sentinels;
    struct address addresses[REDIS_SENTINELS_MAX]; /* of the Sentinels, or one */
    size_t count;
    const char *service;         /* that the Sentinels watch; NULL without Sentinels */
    const char *user, *password; /* NULL = none */
    unsigned db;
};

/* Strings of 'ret' are in the arena. -EINVAL names the invalid part, never with the password. */
int redis_uri_parse(const char *uri, struct arena *arena, struct redis_place *ret,
                    struct aq_error *err) AQ_UNTRUSTED;

#endif
