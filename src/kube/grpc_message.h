/* SPDX-License-Identifier: Apache-2.0 */
/* grpc_message.h - one protobuf message as gRPC sends it: a byte for compression, four for the
 * length, the message
 *
 * Requests and answers have one message each, which comes in pieces and is decoded once it is
 * whole. A message of a peer costs at most GRPC_MESSAGE_MAX as bytes and GRPC_DECODED_MAX decoded.
 */
#ifndef AQ_KUBE_GRPC_MESSAGE_H
#define AQ_KUBE_GRPC_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"

#define GRPC_MESSAGE_MAX (4u << 20) /* what other implementations take, too */
#define GRPC_DECODED_MAX (32u << 20)
#define GRPC_HEAD_LEN 5

/* A message on its way in. Zero-initialise. */
struct grpc_message {
    uint8_t head[GRPC_HEAD_LEN];
    size_t head_len;
    size_t len; /* of the whole, once the head is there */
    char *body; /* as much as has come */
    size_t body_len, body_cap;
};

void grpc_message_done(struct grpc_message *message);

/* The next bytes. -EOPNOTSUPP for a compressed message, -EMSGSIZE for a large one, -EPROTO for
 * bytes after it.
 */
int grpc_message_feed(struct grpc_message *message, const void *bytes, size_t len,
                      struct aq_error *err) AQ_UNTRUSTED;

/* The decoded message, in the arena. NULL with -EPROTO in 'err' if it is not whole or no message
 * of that kind, -EMSGSIZE if it is too large decoded.
 */
const ProtobufCMessage *grpc_message_decode(const struct grpc_message *message,
                                            const ProtobufCMessageDescriptor *kind,
                                            struct arena *arena, struct aq_error *err) AQ_UNTRUSTED;

/* Append a message with its head. A failed allocation is in 'out'. */
void grpc_message_write(const ProtobufCMessage *message, struct strbuf *out);

#endif
