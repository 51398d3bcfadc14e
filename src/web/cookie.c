/* SPDX-License-Identifier: Apache-2.0 */
/* cookie.c - see cookie.h */
#include "web/cookie.h"

#include <sodium.h>
#include <string.h>

#include "front/cookie_names.h"

#define NUMBER_SIZE 16
#define SEAL_SIZE 32
#define COOKIE_BYTES 32

_Static_assert(2 * (NUMBER_SIZE + SEAL_SIZE) + 1 == COOKIE_DEVICE_MAX, "both fit");

static const char *const cookie_names[] = {
    [COOKIE_LOGIN] = COOKIE_LOGIN_NAME,
    [COOKIE_DEVICE] = COOKIE_DEVICE_NAME,
};

/* ---- of a login ---- */

void cookie_make(char ret[COOKIE_TEXT_MAX])
{
    unsigned char bytes[COOKIE_BYTES];

    randombytes_buf(bytes, sizeof(bytes));
    (void)sodium_bin2base64(ret, COOKIE_TEXT_MAX, bytes, sizeof(bytes),
                            sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    sodium_memzero(bytes, sizeof(bytes));
}

bool cookie_hash(const char *text, size_t len, char ret[COOKIE_HASH_MAX])
{
    unsigned char bytes[COOKIE_BYTES], hash[crypto_hash_sha256_BYTES];
    size_t count;

    if (sodium_base642bin(bytes, sizeof(bytes), text, len, NULL, &count, NULL,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING)
            < 0
        || count != sizeof(bytes))
        return false;
    (void)crypto_hash_sha256(hash, (const unsigned char *)text, len);
    (void)sodium_bin2hex(ret, COOKIE_HASH_MAX, hash, sizeof(hash));
    return true;
}

/* ---- of a browser ---- */

static void cookie_seal(const unsigned char secret[FRONT_SECRET_SIZE], const char *email,
                        const unsigned char number[NUMBER_SIZE], unsigned char ret[SEAL_SIZE])
{
    crypto_generichash_state state;

    (void)crypto_generichash_init(&state, secret, FRONT_SECRET_SIZE, SEAL_SIZE);
    (void)crypto_generichash_update(&state, number, NUMBER_SIZE);
    (void)crypto_generichash_update(&state, (const unsigned char *)email, strlen(email));
    (void)crypto_generichash_final(&state, ret, SEAL_SIZE);
}

void cookie_make_device(const unsigned char secret[FRONT_SECRET_SIZE], const char *email,
                        char ret[COOKIE_DEVICE_MAX])
{
    unsigned char bytes[NUMBER_SIZE + SEAL_SIZE];

    randombytes_buf(bytes, NUMBER_SIZE);
    cookie_seal(secret, email, bytes, bytes + NUMBER_SIZE);
    (void)sodium_bin2hex(ret, COOKIE_DEVICE_MAX, bytes, sizeof(bytes));
}

bool cookie_check_device(const unsigned char secret[FRONT_SECRET_SIZE], const char *email,
                         const char *text, size_t len)
{
    unsigned char bytes[NUMBER_SIZE + SEAL_SIZE], seal[SEAL_SIZE];
    size_t count;

    if (len != COOKIE_DEVICE_MAX - 1
        || sodium_hex2bin(bytes, sizeof(bytes), text, len, NULL, &count, NULL) < 0
        || count != sizeof(bytes))
        return false;
    cookie_seal(secret, email, bytes, seal);
    return sodium_memcmp(seal, bytes + NUMBER_SIZE, SEAL_SIZE) == 0;
}

/* ---- headers ---- */

static const char *cookie_trim(const char *value, size_t len, size_t *ret_len)
{
    while (len && (value[len - 1] == ' ' || value[len - 1] == '\t'))
        len--;
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') { /* as aiohttp may write it */
        value++;
        len -= 2;
    }
    *ret_len = len;
    return value;
}

const char *cookie_find(const char *header, enum cookie_kind kind, bool is_https, size_t *ret_len)
{
    const char *prefix = is_https ? COOKIE_HOST_PREFIX : "", *name = cookie_names[kind];
    const char *found = NULL;
    size_t prefix_len = strlen(prefix), len = strlen(name);

    while (header && *header) {
        size_t part;

        header += strspn(header, " \t;");
        part = strcspn(header, ";");
        if (strncmp(header, prefix, prefix_len) == 0 && strncmp(header + prefix_len, name, len) == 0
            && header[prefix_len + len] == '=') {
            const char *value = header + prefix_len + len + 1;

            if (found)
                return NULL;
            found = cookie_trim(value, part - prefix_len - len - 1, ret_len);
        }
        header += part;
    }
    return found;
}

void cookie_write(enum cookie_kind kind, bool is_https, const char *value, long long age_sec,
                  struct strbuf *out)
{
    strbuf_addf(out, "%s%s=%s; Path=/; Max-Age=%lld; HttpOnly; SameSite=Strict%s",
                is_https ? COOKIE_HOST_PREFIX : "", cookie_names[kind], value, *value ? age_sec : 0,
                is_https ? "; Secure" : "");
}
