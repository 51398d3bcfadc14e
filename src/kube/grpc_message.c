/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_message.c - see grpc_message.h */
#include "kube/grpc_message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

void grpc_message_done(struct grpc_message *message)
{
    free(message->body);
    *message = (struct grpc_message){ .head_len = 0 };
}

static int grpc_message_read_head(struct grpc_message *message, struct aq_error *err)
{
    const uint8_t *head = message->head;

    message->len = (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    if (head[0] != 0)
        return aq_fail(err, EOPNOTSUPP, "a compressed message");
    if (message->len > GRPC_MESSAGE_MAX)
        return aq_fail(err, EMSGSIZE, "a message of %zu bytes; at most %u are taken", message->len,
                       GRPC_MESSAGE_MAX);
    return 0;
}

int grpc_message_feed(struct grpc_message *message, const void *bytes, size_t len,
                      struct aq_error *err)
{
    const char *from = bytes;

    while (len > 0 && message->head_len < GRPC_HEAD_LEN) {
        message->head[message->head_len++] = (uint8_t)*from++;
        len--;
        if (message->head_len == GRPC_HEAD_LEN && grpc_message_read_head(message, err) < 0)
            return -err->code;
    }
    if (len == 0)
        return 0;
    if (len > message->len - message->body_len)
        return aq_fail(err, EPROTO, "bytes after the message");
    vec_grow(&message->body, &message->body_cap, message->body_len + len, 1);
    memcpy(message->body + message->body_len, from, len);
    message->body_len += len;
    return 0;
}

/* ---- decoding ---- */

/* protobuf-c allocates what the sender chooses, and gives up after NULL. */
static void *message_alloc(void *arena, size_t size)
{
    return size && !arena_has_room(arena, 1, size) ? NULL : arena_alloc(arena, size);
}

static void message_free(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

const ProtobufCMessage *grpc_message_decode(const struct grpc_message *message,
                                            const ProtobufCMessageDescriptor *kind,
                                            struct arena *arena, struct aq_error *err)
{
    ProtobufCAllocator allocator = { message_alloc, message_free, arena };
    const ProtobufCMessage *decoded;

    if (message->head_len < GRPC_HEAD_LEN || message->body_len < message->len) {
        (void)aq_fail(err, EPROTO, "the message ends early");
        return NULL;
    }
    arena->limit = GRPC_DECODED_MAX;
    decoded = protobuf_c_message_unpack(kind, &allocator, message->body_len,
                                        (const uint8_t *)message->body);
    if (!decoded && arena->used > GRPC_DECODED_MAX / 2)
        (void)aq_fail(err, EMSGSIZE, "a %s that is too large", kind->short_name);
    else if (!decoded)
        (void)aq_fail(err, EPROTO, "what is no %s", kind->short_name);
    return decoded;
}

/* ---- encoding ---- */

void grpc_message_write(const ProtobufCMessage *message, struct strbuf *out)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    const uint8_t head[GRPC_HEAD_LEN] = { 0, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
                                          (uint8_t)(len >> 8), (uint8_t)len };

    strbuf_add(out, head, sizeof(head));
    strbuf_reserve(out, len);
    (void)protobuf_c_message_pack(message, (uint8_t *)out->data + out->len);
    out->len += len;
    out->data[out->len] = '\0';
}
