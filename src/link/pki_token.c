/* SPDX-License-Identifier: Apache-2.0 */
/* pki_token.c - join tokens: made, written, read and compared */
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "link/pki.h"

#define PREFIX "aq1."
#define TOKEN_BYTES (PKI_FINGERPRINT_BYTES + PKI_SECRET_BYTES + 4)

/* The parts are multiples of three bytes long, so base64url needs no padding. */
_Static_assert(TOKEN_BYTES % 3 == 0 && PKI_SECRET_BYTES % 3 == 0, "no padding");
_Static_assert(PKI_TOKEN_MAX > sizeof(PREFIX) + TOKEN_BYTES / 3 * 4, "a token fits");

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void token_encode(const uint8_t *bytes, size_t len, char *out)
{
    for (size_t i = 0; i < len; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8
                         | (uint32_t)bytes[i + 2];

        for (int shift = 18; shift >= 0; shift -= 6)
            *out++ = digits[group >> shift & 63];
    }
    *out = '\0';
}

/* 'len' bytes from exactly len / 3 * 4 digits. */
static bool token_decode(const char *text, uint8_t *out, size_t len)
{
    if (strlen(text) != len / 3 * 4)
        return false;
    for (size_t i = 0; i < len; i += 3) {
        uint32_t group = 0;

        for (int k = 0; k < 4; k++) {
            const char *digit = strchr(digits, *text++);

            if (!digit)
                return false;
            group = group << 6 | (uint32_t)(digit - digits);
        }
        out[i] = (uint8_t)(group >> 16);
        out[i + 1] = (uint8_t)(group >> 8);
        out[i + 2] = (uint8_t)group;
    }
    return true;
}

/* The kernel's random source; waits only before it is first seeded at boot. */
static void pki_token_fill_random(uint8_t *bytes, size_t len)
{
    while (getrandom(bytes, len, 0) != (ssize_t)len) {
        /* fewer than 256 bytes are never cut short, only interrupted */
    }
}

struct pki_token pki_token_new(const struct pki_ca *ca, int64_t expires_usec)
{
    struct pki_token token = { .expires_usec = expires_usec / USEC_PER_SEC * USEC_PER_SEC };

    memcpy(token.ca_fingerprint, pki_ca_fingerprint(ca), sizeof(token.ca_fingerprint));
    pki_token_fill_random(token.secret, sizeof(token.secret));
    return token;
}

char *pki_token_format(const struct pki_token *token, char buf[PKI_TOKEN_MAX])
{
    uint32_t expires = (uint32_t)(token->expires_usec / USEC_PER_SEC);
    uint8_t bytes[TOKEN_BYTES], *at = bytes;

    memcpy(at, token->ca_fingerprint, PKI_FINGERPRINT_BYTES);
    at += PKI_FINGERPRINT_BYTES;
    memcpy(at, token->secret, PKI_SECRET_BYTES);
    at += PKI_SECRET_BYTES;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(expires >> shift);
    memcpy(buf, PREFIX, sizeof(PREFIX));
    token_encode(bytes, sizeof(bytes), buf + strlen(PREFIX));
    return buf;
}

int pki_token_parse(const char *text, struct pki_token *ret, struct aq_error *err)
{
    uint8_t bytes[TOKEN_BYTES];
    const uint8_t *at = bytes + PKI_FINGERPRINT_BYTES + PKI_SECRET_BYTES;

    if (strncmp(text, PREFIX, strlen(PREFIX)) != 0)
        return aq_fail_field(err, EINVAL, "token",
                             "not a join token: it starts with \"" PREFIX "\"");
    if (!token_decode(text + strlen(PREFIX), bytes, sizeof(bytes)))
        return aq_fail_field(err, EINVAL, "token", "the join token is damaged: copy all of it");
    memcpy(ret->ca_fingerprint, bytes, PKI_FINGERPRINT_BYTES);
    memcpy(ret->secret, bytes + PKI_FINGERPRINT_BYTES, PKI_SECRET_BYTES);
    ret->expires_usec = ((int64_t)at[0] << 24 | (int64_t)at[1] << 16 | (int64_t)at[2] << 8 | at[3])
                        * USEC_PER_SEC;
    return 0;
}

char *pki_token_secret(const struct pki_token *token, char buf[PKI_SECRET_TEXT_MAX])
{
    token_encode(token->secret, sizeof(token->secret), buf);
    return buf;
}

char *pki_token_hash(const char *secret, char buf[PKI_HASH_TEXT_MAX])
{
    uint8_t digest[EVP_MAX_MD_SIZE] = { 0 };
    unsigned len = 0;

    (void)EVP_Digest(secret, strlen(secret), digest, &len, EVP_sha256(), NULL);
    for (size_t i = 0; i < PKI_HASH_TEXT_MAX / 2; i++)
        (void)snprintf(buf + 2 * i, 3, "%02x", digest[i]);
    return buf;
}
