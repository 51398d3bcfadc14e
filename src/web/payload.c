/* SPDX-License-Identifier: Apache-2.0 */
/* payload.c - see payload.h */
#include "web/payload.h"

#include <errno.h>
#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <sodium.h>
#include <string.h>

#include "base/utf8.h"

#define KEY_SIZE 32

static int payload_fail(struct aq_error *err)
{
    return aq_fail_kind(err, EINVAL, "generic-bad-request", "the encrypted body cannot be read");
}

/* The first 32 characters of base64(endpoint) + IV + IV; 'pad' is what fills up base64: '=', or 'A'
 * in versions before 23.09.
 */
static void payload_make_key(const char *endpoint, const char iv[AES_BLOCK_SIZE], char pad,
                             unsigned char ret[KEY_SIZE])
{
    size_t len = strlen(endpoint),
           size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)strbuf_reserve(&text, size + 2 * AES_BLOCK_SIZE);
    (void)sodium_bin2base64(text.data, size, (const unsigned char *)endpoint, len,
                            sodium_base64_VARIANT_ORIGINAL);
    for (char *at = strchr(text.data, '='); at && *at; at++)
        *at = pad;
    text.len = size - 1;
    strbuf_add(&text, iv, AES_BLOCK_SIZE);
    strbuf_add(&text, iv, AES_BLOCK_SIZE);
    memcpy(ret, text.data, KEY_SIZE);
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

/* Of whole blocks. False if this is not the key: then the text has no padding, or is none. */
static bool payload_decrypt(const unsigned char key[KEY_SIZE], const char *iv_text,
                            const struct strbuf *sealed, struct strbuf *ret)
{
    unsigned char iv[AES_BLOCK_SIZE], *bytes = (unsigned char *)ret->data;
    struct aes256_ctx aes;

    memcpy(iv, iv_text, AES_BLOCK_SIZE);
    aes256_set_decrypt_key(&aes, key);
    cbc_decrypt(&aes, (nettle_cipher_func *)aes256_decrypt, AES_BLOCK_SIZE, iv, sealed->len, bytes,
                (const unsigned char *)sealed->data);
    ret->len = payload_trim(bytes, sealed->len);
    ret->data[ret->len] = '\0';
    return ret->len && utf8_is_valid(ret->data, ret->len);
}

int payload_open(const char *endpoint, const char *text, size_t len, struct strbuf *ret,
                 struct aq_error *err)
{
    static const char pads[] = { '=', 'A' };
    AQ_CLEANUP(strbuf_donep) struct strbuf sealed = STRBUF_INIT;
    unsigned char key[KEY_SIZE];

    strbuf_clear(ret);
    if (len <= AES_BLOCK_SIZE + 1 || len > PAYLOAD_MAX || text[AES_BLOCK_SIZE] != ':')
        return payload_fail(err);
    (void)strbuf_reserve(&sealed, len);
    (void)strbuf_reserve(ret, len);
    if (sodium_base642bin((unsigned char *)sealed.data, len, text + AES_BLOCK_SIZE + 1,
                          len - AES_BLOCK_SIZE - 1, "\r\n ", &sealed.len, NULL,
                          sodium_base64_VARIANT_ORIGINAL)
            < 0
        || sealed.len == 0 || sealed.len % AES_BLOCK_SIZE != 0)
        return payload_fail(err);
    for (size_t i = 0; i < AQ_COUNT(pads); i++) {
        payload_make_key(endpoint, text, pads[i], key);
        if (payload_decrypt(key, text, &sealed, ret))
            return 0;
    }
    strbuf_clear(ret);
    return payload_fail(err);
}
