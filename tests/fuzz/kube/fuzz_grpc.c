/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer sends as a gRPC message, in pieces, and as a status. */
#include <stdlib.h>
#include <string.h>

#include "kube/deviceplugin.pb-c.h"
#include "kube/grpc_message.h"
#include "kube/grpc_status.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ProtobufCMessageDescriptor *const kinds[] = {
    &v1beta1__empty__descriptor,
    &v1beta1__allocate_request__descriptor,
    &v1beta1__preferred_allocation_request__descriptor,
    &v1beta1__register_request__descriptor,
    &v1beta1__list_and_watch_response__descriptor,
    &v1beta1__allocate_response__descriptor,
};

/* What was decoded and is encoded again is the same once more. */
static void check_again(const ProtobufCMessage *decoded)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf once = STRBUF_INIT, twice = STRBUF_INIT;
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct grpc_message message = { .head_len = 0 };
    const ProtobufCMessage *again;

    grpc_message_write(decoded, &once);
    if (!strbuf_ok(&once) || grpc_message_feed(&message, once.data, once.len, NULL) < 0)
        __builtin_trap();
    again = grpc_message_decode(&message, decoded->descriptor, &arena, NULL);
    if (!again)
        __builtin_trap();
    grpc_message_write(again, &twice);
    if (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0)
        __builtin_trap();
    grpc_message_done(&message);
}

static void check_text(const char *text, size_t len)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf read = STRBUF_INIT, written = STRBUF_INIT,
                                           again = STRBUF_INIT;

    if (grpc_status_read(text, len) < 0 || grpc_status_read(text, len) > 999)
        __builtin_trap();
    grpc_text_read(text, len, &read);
    if (read.len > len || read.len > GRPC_TEXT_MAX || strlen(read.data) != read.len)
        __builtin_trap();
    grpc_text_write(read.data, &written);
    if (written.len > GRPC_TEXT_MAX)
        return;
    grpc_text_read(written.data, written.len, &again);
    if (strcmp(again.data, read.data) != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct grpc_message message = { .head_len = 0 };
    const ProtobufCMessage *decoded;
    struct aq_error err = { 0 };
    size_t at = 0, piece;
    int r = 0;

    if (size < 2)
        return 0;
    check_text((const char *)data, size);
    piece = (size_t)data[0] + 1;
    for (at = 2; r == 0 && at < size; at += piece)
        r = grpc_message_feed(&message, data + at, AQ_MIN(piece, size - at), &err);
    decoded = r < 0 ? NULL
                    : grpc_message_decode(&message, kinds[data[1] % AQ_COUNT(kinds)], &arena, &err);
    if (decoded)
        check_again(decoded);
    else if (!err.text[0])
        __builtin_trap();
    grpc_message_done(&message);
    return 0;
}
