/* SPDX-License-Identifier: Apache-2.0 */
/* What a browser sends a web server: a Cookie header, a mark of a browser, and a hidden body, by
 * lines.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "web/cookie.h"
#include "web/payload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const unsigned char secret[COOKIE_SECRET_SIZE] = "a key that everybody may know";

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
    if (payload_open("http://127.0.0.1:8190", text, size, &body, NULL) == 0 && body.len >= size)
        abort();
    for (line = strtok_r(text, "\n", &rest); line && count < AQ_COUNT(lines);
         line = strtok_r(NULL, "\n", &rest))
        lines[count++] = line;
    fuzz_cookies(lines[0]);
    fuzz_device(lines[1], lines[2]);
    return 0;
}
