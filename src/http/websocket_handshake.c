/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP part of RFC 6455: inner part of websocket.c. */
#include "http/websocket_handshake.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include <nettle/base64.h>
#include <nettle/sha1.h>

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

static void websocket_handshake_encode(const uint8_t *bytes, size_t len, char *ret)
{
    base64_encode_raw(ret, len, bytes);
    ret[BASE64_ENCODE_RAW_LENGTH(len)] = '\0';
}

int websocket_make_key(char ret[WEBSOCKET_KEY_MAX], struct aq_error *err)
{
    unsigned char bytes[16];

    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
        return aq_fail_errno(err, "cannot get random bytes");
    websocket_handshake_encode(bytes, sizeof(bytes), ret);
    return 0;
}

int websocket_answer_key(const char *key, char ret[WEBSOCKET_ACCEPT_MAX], struct aq_error *err)
{
    char text[WEBSOCKET_KEY_MAX + sizeof(GUID)];
    struct sha1_ctx ctx;
    uint8_t digest[SHA1_DIGEST_SIZE];
    int len = snprintf(text, sizeof(text), "%s" GUID, key);

    if (len >= (int)sizeof(text))
        return aq_fail(err, EINVAL, "the key of a WebSocket handshake is too long");
    sha1_init(&ctx);
    sha1_update(&ctx, (size_t)len, (const uint8_t *)text);
    sha1_digest(&ctx, sizeof(digest), digest);
    websocket_handshake_encode(digest, sizeof(digest), ret);
    return 0;
}

/* base64 of 16 bytes */
static bool websocket_handshake_is_key(const char *key)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    return strspn(key, digits) == 22 && !strcmp(key + 22, "==");
}

int websocket_check_request(const struct message_head *head, struct aq_error *err)
{
    const char *version = message_get_header(head, "Sec-WebSocket-Version");
    const char *key = message_get_header(head, "Sec-WebSocket-Key");
    const char *what = NULL;

    if (head->method != METHOD_GET || head->is_http10 || head->is_chunked || head->content_length)
        what = "it must be an HTTP/1.1 GET without a body";
    else if (!head->is_upgrade || !message_has_token(head, "Upgrade", "websocket"))
        what = "it must say 'Connection: Upgrade' and 'Upgrade: websocket'";
    else if (!version || strcmp(version, "13"))
        what = "Sec-WebSocket-Version must be 13";
    else if (!key || !websocket_handshake_is_key(key))
        what = "Sec-WebSocket-Key must be 16 bytes in base64";
    if (what)
        return aq_fail_kind(err, EINVAL, "generic-bad-request", "not a WebSocket request: %s",
                            what);
    return 0;
}

int websocket_check_response(const struct message_head *head, const char *key, struct aq_error *err)
{
    const char *answer = message_get_header(head, "Sec-WebSocket-Accept");
    char want[WEBSOCKET_ACCEPT_MAX];
    int r;

    if (head->status != 101)
        return aq_fail(err,
                       head->status == 404                          ? ENOENT
                       : head->status >= 502 && head->status <= 504 ? EAGAIN
                                                                    : EPROTO,
                       "the server refused the WebSocket: %d %s", head->status,
                       status_text(head->status));
    r = websocket_answer_key(key, want, err);
    if (r < 0)
        return r;
    if (!head->is_upgrade || !message_has_token(head, "Upgrade", "websocket") || !answer
        || strcmp(answer, want))
        return aq_fail(err, EPROTO, "the server's WebSocket handshake is wrong");
    return 0;
}
