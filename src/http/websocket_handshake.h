/* SPDX-License-Identifier: Apache-2.0 */
/* websocket_handshake.h - the HTTP part of RFC 6455: inner part of websocket.c */
#ifndef AQ_HTTP_WEBSOCKET_HANDSHAKE_H
#define AQ_HTTP_WEBSOCKET_HANDSHAKE_H

#include "base/error.h"
#include "http/message.h"

#define WEBSOCKET_KEY_MAX 25    /* 24 characters of base64 */
#define WEBSOCKET_ACCEPT_MAX 29 /* 28 */

/* A fresh random Sec-WebSocket-Key. -errno without random bytes. */
int websocket_make_key(char ret[WEBSOCKET_KEY_MAX], struct aq_error *err);

/* Sec-WebSocket-Accept for a key. -ENOMEM. */
int websocket_answer_key(const char *key, char ret[WEBSOCKET_ACCEPT_MAX], struct aq_error *err);

/* Is it a good upgrade request? -EINVAL says what is wrong. */
int websocket_check_request(const struct message_head *head, struct aq_error *err);

/* Did the server agree? -EPROTO says what it answered. */
int websocket_check_response(const struct message_head *head, const char *key,
                             struct aq_error *err);

#endif
