/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - see base64.h */
#include "k8s/webhook/base64.h"

#include <nettle/base64.h>
#include <string.h>

#include "base/memory.h"

char *base64_write(const char *bytes, size_t len)
{
    char *text = aq_alloc(BASE64_ENCODE_RAW_LENGTH(len) + 1);

    base64_encode_raw(text, len, (const uint8_t *)bytes);
    text[BASE64_ENCODE_RAW_LENGTH(len)] = '\0';
    return text;
}

char *base64_read(const char *text)
{
    size_t len = strlen(text), got = BASE64_DECODE_LENGTH(len);
    char *bytes = aq_alloc(got + 1);
    struct base64_decode_ctx ctx;

    base64_decode_init(&ctx);
    if (!base64_decode_update(&ctx, &got, (uint8_t *)bytes, len, text) || !base64_decode_final(&ctx)
        || memchr(bytes, '\0', got)) {
        free(bytes);
        return NULL;
    }
    bytes[got] = '\0';
    return bytes;
}
