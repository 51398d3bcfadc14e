/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - see payload.h */
#include "web/payload.h"

#include <errno.h>
#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <sodium.h>
#include <string.h>

#define KEY_SIZE 32

static int payload_fail(struct aq_error *err)
{
    return aq_fail_kind(err, EINVAL, "generic-bad-request", "the encrypted body cannot be read");
}

/* The first 32 characters of base64(endpoint) + IV + IV. -ENOMEM. */
static int payload_make_key(const char *endpoint, const char iv[AES_BLOCK_SIZE],
                            unsigned char ret[KEY_SIZE])
{
    size_t len = strlen(endpoint),
           size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (!strbuf_reserve(&text, size + 2 * AES_BLOCK_SIZE))
        return -ENOMEM;
    (void)sodium_bin2base64(text.data, size, (const unsigned char *)endpoint, len,
                            sodium_base64_VARIANT_ORIGINAL);
    text.len = size - 1;
    strbuf_add(&text, iv, AES_BLOCK_SIZE);
    strbuf_add(&text, iv, AES_BLOCK_SIZE);
    memcpy(ret, text.data, KEY_SIZE);
    return 0;
}

/* How long the text is without its padding (PKCS#7); 0 = it has none. */
static size_t payload_trim(const unsigned char *bytes, size_t len)
{
    unsigned char pad = bytes[len - 1];

    if (pad == 0 || pad > AES_BLOCK_SIZE)
        return 0;
    for (size_t i = 0; i < pad; i++)
        if (bytes[len - 1 - i] != pad)
            return 0;
    return len - pad;
}

int payload_open(const char *endpoint, const char *text, size_t len, struct strbuf *ret,
                 struct aq_error *err)
{
    unsigned char key[KEY_SIZE], iv[AES_BLOCK_SIZE], *bytes;
    struct aes256_ctx aes;
    size_t count, trimmed;

    strbuf_clear(ret);
    if (len <= AES_BLOCK_SIZE + 1 || len > PAYLOAD_MAX || text[AES_BLOCK_SIZE] != ':')
        return payload_fail(err);
    if (!strbuf_reserve(ret, len) || payload_make_key(endpoint, text, key) < 0)
        return aq_fail_oom(err);
    bytes = (unsigned char *)ret->data;
    if (sodium_base642bin(bytes, len, text + AES_BLOCK_SIZE + 1, len - AES_BLOCK_SIZE - 1, "\r\n ",
                          &count, NULL, sodium_base64_VARIANT_ORIGINAL)
            < 0
        || count == 0 || count % AES_BLOCK_SIZE != 0)
        return payload_fail(err);
    memcpy(iv, text, AES_BLOCK_SIZE);
    aes256_set_decrypt_key(&aes, key);
    cbc_decrypt(&aes, (nettle_cipher_func *)aes256_decrypt, AES_BLOCK_SIZE, iv, count, bytes,
                bytes);
    trimmed = payload_trim(bytes, count);
    if (trimmed == 0)
        return payload_fail(err);
    ret->len = trimmed;
    ret->data[trimmed] = '\0';
    return 0;
}
