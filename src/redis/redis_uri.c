/* SPDX-License-Identifier: Apache-2.0 */
/* redis_uri.c - see redis_uri.h */
#include "redis/redis_uri.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define SERVICE_MAX 64

static const struct redis_scheme {
    const char *prefix;
    bool is_tls, has_sentinels;
} redis_schemes[] = {
    { "redis://", false, false },
    { "rediss://", true, false },
    { "redis+sentinel://", false, true },
    { "rediss+sentinel://", true, true },
};

/* "USER:PASSWORD", ":PASSWORD" or "USER", percent-encoded. */
static int redis_uri_read_login(const char *text, size_t len, struct arena *arena,
                                struct redis_place *place, struct aq_error *err)
{
    const char *colon = memchr(text, ':', len);
    size_t user = colon ? (size_t)(colon - text) : len;
    int r;

    if (user && (r = url_decode(arena, text, user, false, &place->user, err)) < 0)
        return aq_fail(err, EINVAL, "its user is not percent-encoded text");
    if (colon
        && (r = url_decode(arena, colon + 1, len - user - 1, false, &place->password, err)) < 0)
        return aq_fail(err, EINVAL, "its password is not percent-encoded text");
    if (place->user && !place->password)
        return aq_fail(err, EINVAL,
                       "it has a user without a password; expected redis://USER:PASSWORD@HOST");
    return 0;
}

static int redis_uri_read_hosts(const char *text, size_t len, struct arena *arena,
                                struct redis_place *place, struct aq_error *err)
{
    uint16_t port = place->has_sentinels ? REDIS_SENTINEL_PORT : REDIS_PORT;
    const char *end = text + len;

    for (const char *at = text, *next; at <= end; at = next + 1) {
        const char *host;

        next = memchr(at, ',', (size_t)(end - at));
        next = next ? next : end;
        host = arena_strndup(arena, at, (size_t)(next - at));
        if (place->count == (place->has_sentinels ? REDIS_SENTINELS_MAX : 1))
            return aq_fail(
                err, EINVAL,
                place->has_sentinels
                    ? "it names more than %d Sentinels"
                    : "it names more than %d server; Sentinels require redis+sentinel://",
                place->has_sentinels ? REDIS_SENTINELS_MAX : 1);
        if (address_parse(host, port, &place->addresses[place->count], NULL) < 0
            || place->addresses[place->count].is_unix || !place->addresses[place->count].port)
            return aq_fail(err, EINVAL, "'%.100s' is not HOST:PORT", host);
        place->count++;
    }
    return 0;
}

static int redis_uri_read_db(const char *text, struct redis_place *place, struct aq_error *err)
{
    unsigned long db = strtoul(text, NULL, 10);

    if (!*text || text[strspn(text, "0123456789")] || strlen(text) > 5 || db > REDIS_DB_MAX)
        return aq_fail(err, EINVAL, "its database '%.40s' is not a number from 0 to %d", text,
                       REDIS_DB_MAX);
    place->db = (unsigned)db;
    return 0;
}

/* The part after the hosts: "/DB", or "/SERVICE?db=DB". */
static int redis_uri_read_path(const char *text, struct arena *arena, struct redis_place *place,
                               struct aq_error *err)
{
    size_t len = strcspn(text, "?");

    if (!place->has_sentinels)
        return *text && text[1] ? redis_uri_read_db(text + 1, place, err) : 0;
    if (len < 2 || len - 1 > SERVICE_MAX)
        return aq_fail(err, EINVAL,
                       "its path is not the name of a service; expected "
                       "redis+sentinel://HOST:26379/SERVICE");
    place->service = arena_strndup(arena, text + 1, len - 1);
    if (!text[len])
        return 0;
    if (strncmp(text + len, "?db=", 4) != 0)
        return aq_fail(err, EINVAL, "expected ?db=NUMBER, not '%.40s'", text + len);
    return redis_uri_read_db(text + len + 4, place, err);
}

int redis_uri_parse(const char *uri, struct arena *arena, struct redis_place *ret,
                    struct aq_error *err)
{
    struct redis_place place = { .is_tls = false };
    const char *at = NULL, *login_end, *path;
    int r;

    for (size_t i = 0; !at && i < AQ_COUNT(redis_schemes); i++) {
        size_t len = strlen(redis_schemes[i].prefix);

        if (strncmp(uri, redis_schemes[i].prefix, len) != 0)
            continue;
        place.is_tls = redis_schemes[i].is_tls;
        place.has_sentinels = redis_schemes[i].has_sentinels;
        at = uri + len;
    }
    if (!at)
        return aq_fail(err, EINVAL,
                       "it does not begin with redis://, rediss://, redis+sentinel:// or "
                       "rediss+sentinel://");
    path = at + strcspn(at, "/?");
    if (strchr(path, '@')) /* an error about a host would quote a part of the password */
        return aq_fail(err, EINVAL,
                       "it has '/' or '?' before '@'; in the user and password, write '/' as %%2F "
                       "and '?' as %%3F");
    login_end = memrchr(at, '@', (size_t)(path - at));
    if (login_end
        && (r = redis_uri_read_login(at, (size_t)(login_end - at), arena, &place, err)) < 0)
        return r;
    at = login_end ? login_end + 1 : at;
    if ((r = redis_uri_read_hosts(at, (size_t)(path - at), arena, &place, err)) < 0
        || (r = redis_uri_read_path(path, arena, &place, err)) < 0)
        return r;
    *ret = place;
    return 0;
}
