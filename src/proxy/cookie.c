/* SPDX-License-Identifier: Apache-2.0 */
/* cookie.c - see cookie.h */
#include "proxy/cookie.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "front/cookie_names.h"

/* What is sealed: version, session, expiry, and the two texts with their NULs. */
#define COOKIE_VERSION 1
#define PLAIN_MAX (1 + 16 + 8 + COOKIE_APP_MAX + 1 + COOKIE_KEY_MAX)
#define SEALED_MAX (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + PLAIN_MAX)
#define PLAIN_MIN (1 + 16 + 8 + 2)

_Static_assert(SEALED_MAX * 4 / 3 + 4 < COOKIE_TEXT_MAX, "a cookie fits");
_Static_assert(FRONT_SECRET_SIZE == crypto_secretbox_KEYBYTES, "the key is a secretbox's");

static size_t cookie_write(const struct cookie *cookie, unsigned char plain[PLAIN_MAX])
{
    size_t app = strlen(cookie->app) + 1, key = strlen(cookie->access_key) + 1, at = 0;

    plain[at++] = COOKIE_VERSION;
    memcpy(plain + at, cookie->session_id.bytes, 16);
    at += 16;
    for (int shift = 56; shift >= 0; shift -= 8)
        plain[at++] = (unsigned char)((uint64_t)cookie->expires_usec >> shift);
    memcpy(plain + at, cookie->app, app);
    memcpy(plain + at + app, cookie->access_key, key);
    return at + app + key;
}

char *cookie_seal(const unsigned char secret[FRONT_SECRET_SIZE], const struct cookie *cookie,
                  char buf[COOKIE_TEXT_MAX])
{
    unsigned char plain[PLAIN_MAX], sealed[SEALED_MAX];
    size_t len = cookie_write(cookie, plain);

    randombytes_buf(sealed, crypto_secretbox_NONCEBYTES);
    (void)crypto_secretbox_easy(sealed + crypto_secretbox_NONCEBYTES, plain, len, sealed, secret);
    return sodium_bin2base64(buf, COOKIE_TEXT_MAX, sealed,
                             crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES + len,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* False if it is none of the form that cookie_write() gives. */
static bool cookie_read(const unsigned char *plain, size_t len, struct cookie *ret)
{
    const char *app = (const char *)plain + 25, *end = (const char *)plain + len, *key;
    uint64_t expires = 0;

    if (len < PLAIN_MIN || plain[0] != COOKIE_VERSION || end[-1] != '\0')
        return false;
    memcpy(ret->session_id.bytes, plain + 1, 16);
    for (int i = 0; i < 8; i++)
        expires = expires << 8 | plain[17 + i];
    ret->expires_usec = (int64_t)expires;
    key = app + strlen(app) + 1;
    if (key >= end || strlen(app) > COOKIE_APP_MAX || strlen(key) >= COOKIE_KEY_MAX
        || key + strlen(key) + 1 != end)
        return false;
    memcpy(ret->app, app, strlen(app) + 1);
    memcpy(ret->access_key, key, strlen(key) + 1);
    return true;
}

int cookie_open(const unsigned char secret[FRONT_SECRET_SIZE], const char *text, size_t len,
                int64_t now_usec, struct cookie *ret, struct aq_error *err)
{
    unsigned char sealed[SEALED_MAX], plain[PLAIN_MAX];
    const size_t head = crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES;
    size_t got = 0;

    if (sodium_base642bin(sealed, sizeof(sealed), text, len, NULL, &got, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING)
            != 0
        || got < head
        || crypto_secretbox_open_easy(plain, sealed + crypto_secretbox_NONCEBYTES,
                                      got - crypto_secretbox_NONCEBYTES, sealed, secret)
               != 0
        || !cookie_read(plain, got - head, ret))
        return aq_fail_kind(err, EACCES, "auth-failed", "the cookie is none of this proxy's");
    if (ret->expires_usec <= now_usec)
        return aq_fail_kind(err, EACCES, "auth-failed", "the cookie has expired");
    return 0;
}

/* The cookie that begins here, without blanks before it; *ret_end is behind it. */
static const char *cookie_next(const char *at, const char **ret_end)
{
    at += strspn(at, " \t;");
    *ret_end = at + strcspn(at, ";");
    return at;
}

const char *cookie_name(uint16_t port, bool is_host, char buf[COOKIE_NAME_MAX])
{
    int len = snprintf(buf, COOKIE_NAME_MAX, "%s" COOKIE_NAME, is_host ? COOKIE_HOST_PREFIX : "");

    if (port)
        (void)snprintf(buf + len, COOKIE_NAME_MAX - (size_t)len, "_%u", (unsigned)port);
    return buf;
}

bool cookie_is_ours(const char *text)
{
    static const char *const names[] = { COOKIE_NAME, COOKIE_LOGIN_NAME, COOKIE_DEVICE_NAME };
    size_t len = strlen(COOKIE_NAME);

    text += strspn(text, " \t="); /* browsers leave them out */
    if (strncmp(text, COOKIE_HOST_PREFIX, strlen(COOKIE_HOST_PREFIX)) == 0)
        text += strlen(COOKIE_HOST_PREFIX);
    if (strncmp(text, COOKIE_NAME "_", len + 1) == 0)
        return true;
    len = strcspn(text, " \t=;");
    for (size_t i = 0; i < AQ_COUNT(names); i++)
        if (len == strlen(names[i]) && strncmp(text, names[i], len) == 0)
            return true;
    return false;
}

const char *cookie_find(const char *header, const char *name, size_t *ret_len)
{
    size_t len = strlen(name);
    const char *end, *at = cookie_next(header, &end);

    for (; *at; at = cookie_next(end, &end)) {
        if (strncmp(at, name, len) != 0 || at[len] != '=')
            continue;
        at += len + 1;
        while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
            end--;
        *ret_len = (size_t)(end - at);
        return at;
    }
    return NULL;
}

void cookie_remove(const char *header, struct strbuf *out)
{
    const char *end, *at = cookie_next(header, &end);
    bool is_first = true;

    for (; *at; at = cookie_next(end, &end)) {
        if (cookie_is_ours(at))
            continue;
        if (!is_first)
            strbuf_adds(out, "; ");
        strbuf_add(out, at, (size_t)(end - at));
        is_first = false;
    }
}
