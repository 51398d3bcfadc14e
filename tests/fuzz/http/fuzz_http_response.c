/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of servers, fed whole and in pieces: the same must be found. */
#include <stdint.h>
#include <string.h>

#include "base/strbuf.h"
#include "http/message.h"
#include "http/websocket_handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void describe_head(const struct message_head *head, struct strbuf *out)
{
    strbuf_addf(out, "[%d %d %d %d %d]", head->status, head->keep_alive, head->is_chunked,
                head->until_close, head->is_upgrade);
    for (size_t i = 0; i < head->header_count; i++)
        strbuf_addf(out, "%s=%s;", head->headers[i].name, head->headers[i].value);
    (void)websocket_check_response(head, "dGhlIHNhbXBsZSBub25jZQ==", NULL);
}

/* What the bytes mean, as text. */
static void read_all(const char *bytes, size_t size, size_t step, struct strbuf *out)
{
    static const struct message_limits limits = { 200, 1000, 10, 500 };
    AQ_CLEANUP(message_parser_freep) struct message_parser *p = NULL;
    struct message_piece piece;
    size_t at = 0;

    if (message_parser_new(false, &limits, &p, NULL) < 0)
        return;
    for (;;) {
        size_t len = AQ_MIN(step, size - at);
        struct aq_error err = { .code = 0 };
        ssize_t used = message_feed(p, bytes + at, len, &piece, &err);

        if (used < 0) {
            strbuf_addf(out, "error %d", err.code);
            return;
        }
        if ((size_t)used > len || piece.len > len)
            __builtin_trap();
        at += (size_t)used;
        if (piece.event == MESSAGE_HEAD)
            describe_head(message_get_head(p), out);
        else if (piece.event == MESSAGE_BODY)
            strbuf_add(out, piece.bytes, piece.len);
        else if (piece.event == MESSAGE_END) {
            strbuf_adds(out, "end");
            message_reset(p);
        } else if (at == size)
            break;
    }
    strbuf_addf(out, "finish %d", message_finish(p, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf whole = STRBUF_INIT, pieces = STRBUF_INIT;

    read_all((const char *)data, size, size ? size : 1, &whole);
    read_all((const char *)data, size, 1 + size % 5, &pieces);
    /* A body too long is noticed after a few bytes more or less of it. */
    if (memmem(whole.data, whole.len, "error", 5) && memmem(pieces.data, pieces.len, "error", 5))
        return 0;
    if (whole.len != pieces.len || memcmp(whole.data, pieces.data, whole.len) != 0)
        __builtin_trap();
    return 0;
}
