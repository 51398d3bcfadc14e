/* SPDX-License-Identifier: Apache-2.0 */
/* What comes on a connection to the web terminal: in pieces, it is what it is in one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runner/web_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    struct strbuf typed;
    size_t opened, resized;
};

static void fuzz_web_wire_note(const struct web_wire *wire, const struct web_message *message,
                               struct seen *seen)
{
    if (message->kind != WEB_NOTHING && !wire->is_open)
        abort(); /* nothing counts before the first message */
    seen->opened += message->kind == WEB_OPEN;
    seen->resized += message->kind == WEB_RESIZE;
    if (message->kind == WEB_INPUT)
        strbuf_add(&seen->typed, message->bytes, message->len);
}

static void fuzz_web_wire_read(const char *bytes, size_t size, size_t piece, struct seen *seen)
{
    struct web_wire wire;
    struct aq_error err;
    size_t at = 0;

    if (web_wire_init(&wire, &err) < 0)
        abort();
    while (at < size) {
        struct web_message message;
        size_t len = AQ_MIN(piece, size - at);
        size_t used = web_wire_read(&wire, bytes + at, len, &message);

        if (used > len)
            abort();
        fuzz_web_wire_note(&wire, &message, seen);
        if (message.kind == WEB_OPEN) {
            web_wire_add(&wire, '0', "x", 1);
            web_wire_close(&wire, "over");
        }
        at += used;
    }
    web_wire_done(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = { .typed = STRBUF_INIT }, pieces = { .typed = STRBUF_INIT };

    fuzz_web_wire_read((const char *)data, size, SIZE_MAX, &whole);
    fuzz_web_wire_read((const char *)data, size, 3, &pieces);
    if (whole.opened > 1 || whole.opened != pieces.opened || whole.resized != pieces.resized
        || whole.typed.len != pieces.typed.len
        || memcmp(whole.typed.data, pieces.typed.data, whole.typed.len) != 0)
        abort();
    strbuf_done(&whole.typed);
    strbuf_done(&pieces.typed);
    return 0;
}
