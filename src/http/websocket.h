/* SPDX-License-Identifier: Apache-2.0 */
/* websocket.h - WebSocket connections (RFC 6455), server and client
 *
 * Whole messages only. Pings are answered by themselves. Text is valid
 * UTF-8. Callbacks never come from within a call below; after on_close() the
 * websocket is gone.
 */
#ifndef AQ_HTTP_WEBSOCKET_H
#define AQ_HTTP_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pump.h"
#include "http/client.h"
#include "http/server.h"

struct websocket;

enum {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_PROTOCOL_ERROR = 1002,
    WEBSOCKET_NO_STATUS = 1005,
    WEBSOCKET_ABNORMAL = 1006,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_BIG = 1009,
    WEBSOCKET_INTERNAL = 1011,
    WEBSOCKET_RESTART = 1012,
    WEBSOCKET_TRY_LATER = 1013,
};

struct websocket_options {
    size_t message_max;   /* bytes of a message received; 0 = 1 MiB */
    size_t queue_max;     /* bytes waiting to be sent; 0 = 8 MiB */
    unsigned ping_msec;   /* silence before a ping, and then before the end; 0 = 30 s */
    const char *protocol; /* subprotocol to answer with or to ask for; NULL = none */
};

struct websocket_ops {
    void (*on_open)(struct websocket *ws, void *data); /* client only; may be NULL */
    void (*on_message)(struct websocket *ws, bool is_text, const char *bytes, size_t len,
                       void *data);
    void (*on_drain)(struct websocket *ws, void *data); /* may be NULL */
    /* 'code' is what the peer said, or WEBSOCKET_ABNORMAL; err has a code if
     * the connection failed, else its text is what the peer said in words, or "".
     */
    void (*on_close)(struct websocket *ws, uint16_t code, const struct aq_error *err, void *data);
};

/* Server: answer an upgrade request. On failure (no or a bad handshake: -EINVAL;
 * -EPIPE) the request is not answered yet: request_fail(). After
 * success the websocket owns the request.
 */
int websocket_accept(struct request *req, const struct websocket_options *options,
                     const struct websocket_ops *ops, void *data, struct websocket **ret,
                     struct aq_error *err);

/* Client: connect by a GET to request->url (ws:// or wss://). A refusal comes
 * as on_close() with the status in the error's text; of 404 the code is ENOENT, of 502 to 504
 * EAGAIN.
 */
int websocket_connect(struct client *client, const struct client_request *request,
                      const struct websocket_options *options, const struct websocket_ops *ops,
                      void *data, struct websocket **ret, struct aq_error *err);

/* Over a stream whose handshake is done; the stream becomes the websocket's. */
struct websocket *websocket_new(uv_loop_t *loop, struct stream *stream, bool is_server,
                                const struct websocket_options *options,
                                const struct websocket_ops *ops, void *data) AQ_UNTRUSTED;

/* 0, -EPIPE after a close, -ENOBUFS beyond queue_max. */
int websocket_send(struct websocket *ws, bool is_text, const void *bytes, size_t len);
size_t websocket_get_queued(const struct websocket *ws);

/* Stop and continue reading. */
void websocket_pause(struct websocket *ws);
void websocket_resume(struct websocket *ws);

/* Ends of a pump that are a struct websocket: what they are put is a message each. */
extern const struct pump_ops websocket_pump_binary, websocket_pump_text;

/* Begin the closing handshake; on_close() follows. 'reason' may be NULL. */
void websocket_close(struct websocket *ws, uint16_t code, const char *reason);

/* Drop the connection now; on_close() is not called. NULL is fine. */
void websocket_abort(struct websocket *ws);

#endif
