/* SPDX-License-Identifier: Apache-2.0 */
/* websocket_tunnel.h - a WebSocket between a client and another server, whose bytes are passed on
 * as they come, at the pace of the slower side
 *
 * Belongs to one loop and is used only on its thread. The tunnel ends the client's request.
 */
#ifndef AQ_HTTP_WEBSOCKET_TUNNEL_H
#define AQ_HTTP_WEBSOCKET_TUNNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "http/client.h"
#include "http/server.h"

struct websocket_tunnel;

struct websocket_tunnel_ops {
    /* What the client is told when the server is gone without a word. */
    uint16_t gone_code;
    const char *gone_reason;
    /* Bytes came from the client or for it. May be NULL. */
    void (*on_bytes)(void *data, bool from_client, size_t len);
    /* Once, from the loop or from within websocket_tunnel_cut(): both connections are closed, and
     * the tunnel is gone with the return.
     */
    void (*on_end)(void *data);
};

/* In on_head() of 'exchange', which answers 'req' with 101 and is gone afterwards: headers that
 * were added to 'req' are sent, too. NULL if the client has gone: its request must still be ended.
 */
struct websocket_tunnel *websocket_tunnel_begin(struct request *req, struct exchange *exchange,
                                                const struct websocket_tunnel_ops *ops, void *data);

/* Tell the client why it ends, if that can be told, and end it: on_end() follows from the loop, or
 * comes at once. The server's side is closed at once.
 */
void websocket_tunnel_close(struct websocket_tunnel *tunnel, uint16_t code, const char *reason);

/* Close both sides now. */
void websocket_tunnel_cut(struct websocket_tunnel *tunnel);

#endif
