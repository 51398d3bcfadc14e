/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser sends a web server: a Cookie header, a mark of a browser, and a hidden body, by
 * lines.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nettle/aes.h>
#include <nettle/cbc.h>
#include <sodium.h>

#include "base/utf8.h"
#include "web/cookie.h"
#include "web/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char secret[FRONT_SECRET_SIZE] = "a key that everybody may know";

/* What is found is within the header, and what was written is found, unless another is there. */
static void fuzz_cookies(const char *header)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char cookie[COOKIE_TEXT_MAX], hash[COOKIE_HASH_MAX], again[COOKIE_HASH_MAX];

    for (int kind = COOKIE_LOGIN; kind <= COOKIE_DEVICE; kind++)
        for (int is_https = 0; is_https < 2; is_https++) {
            size_t len = 0;
            const char *value = cookie_find(header, (enum cookie_kind)kind, is_https, &len);

            if (value && (value < header || value + len > header + strlen(header)))
                abort();
            if (value && cookie_hash(value, len, hash) && len != COOKIE_TEXT_MAX - 1)
                abort();
        }
    cookie_make(cookie);
    strbuf_addf(&text, "a=b; AIOHTTP_SESSION=%s; %s", cookie, header);
    if (strbuf_ok(&text)) {
        size_t len = 0;
        const char *value = cookie_find(text.data, COOKIE_LOGIN, false, &len);

        if (!value) {
            if (!strstr(header, "AIOHTTP_SESSION="))
                abort();
        } else if (len != strlen(cookie) || strncmp(value, cookie, len) != 0
                   || !cookie_hash(value, len, hash) || !cookie_hash(cookie, len, again)
                   || strcmp(hash, again) != 0) {
            abort();
        }
    }
}

/* What was not sealed for somebody is never taken. */
static void fuzz_device(const char *text, const char *email)
{
    char device[COOKIE_DEVICE_MAX];

    if (cookie_check_device(secret, email, text, strlen(text)))
        abort();
    cookie_make_device(secret, email, device);
    if (!cookie_check_device(secret, email, device, strlen(device)))
        abort();
}

#define ENDPOINT "http://127.0.0.1:8190"
#define KEY_OF_IT "aHR0cDovLzEyNy4wLjAuMTo4MTkw" /* and four characters of the IV */

/* As the WebUI hides it: what it hid is opened, and what was changed on its way is text or refused. */
static void fuzz_payload(const char *text, size_t len, size_t changed)
{
    static const char iv[] = "zJhGyCTGgkUvzgDA";
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT, out = STRBUF_INIT;
    unsigned char plain[512], iv_bytes[AES_BLOCK_SIZE], key[] = KEY_OF_IT "zJhG";
    char sealed[sodium_base64_ENCODED_LEN(sizeof(plain), sodium_base64_VARIANT_ORIGINAL)];
    size_t pad = AES_BLOCK_SIZE - len % AES_BLOCK_SIZE;
    struct aes256_ctx aes;

    if (!len || len + pad > sizeof(plain) || !utf8_is_valid(text, len))
        return;
    memcpy(plain, text, len);
    memset(plain + len, (int)pad, pad);
    memcpy(iv_bytes, iv, sizeof(iv_bytes));
    aes256_set_encrypt_key(&aes, key);
    cbc_encrypt(&aes, (nettle_cipher_func *)aes256_encrypt, AES_BLOCK_SIZE, iv_bytes, len + pad,
                plain, plain);
    (void)sodium_bin2base64(sealed, sizeof(sealed), plain, len + pad,
                            sodium_base64_VARIANT_ORIGINAL);
    strbuf_addf(&body, "%s:%s", iv, sealed);
    if (payload_open(ENDPOINT, body.data, body.len, &out, NULL) < 0 || out.len != len
        || memcmp(out.data, text, len) != 0)
        abort();
    body.data[changed % body.len] ^= 1;
    if (payload_open(ENDPOINT, body.data, body.len, &out, NULL) == 0
        && !utf8_is_valid(out.data, out.len))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(aq_freep) char *text = malloc(size + 1);
    AQ_CLEANUP(strbuf_donep) struct strbuf body = STRBUF_INIT;
    const char *lines[3] = { "", "", "" };
    char *rest, *line;
    size_t count = 0;

    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    if (payload_open(ENDPOINT, text, size, &body, NULL) == 0 && body.len >= size)
        abort();
    fuzz_payload(text, size, size);
    for (line = strtok_r(text, "\n", &rest); line && count < AQ_COUNT(lines);
         line = strtok_r(NULL, "\n", &rest))
        lines[count++] = line;
    fuzz_cookies(lines[0]);
    fuzz_device(lines[1], lines[2]);
    return 0;
}
