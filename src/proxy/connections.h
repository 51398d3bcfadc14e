/* SPDX-License-Identifier: Apache-2.0 */
/* connections.h - room for connections: shares of client addresses, and which connection leaves
 *
 * As in src/http/places.c: when an address has more than its share of 'max-connections', each of
 * its new connections closes one of its own that waits for the client. At 'max-connections' the
 * connection that has waited for its client the longest is closed, whatever its address. A request
 * that an app is answering, an upgraded connection and a TCP tunnel never leave for another.
 *
 * Addresses count as in http/client_address.h: of IPv6 the network of 64 bits. All clients of a
 * server in front of the proxy are one address; that costs them connections that do nothing, at
 * most, and refuses none. A TCP tunnel has no server in front, so it is refused beyond the share.
 *
 * A user, by access key, has such a share of the connections to apps, wherever they come from: one
 * whose apps hold many WebSockets or answers is refused further ones.
 *
 * Loop's thread only.
 */
#ifndef AQ_PROXY_CONNECTIONS_H
#define AQ_PROXY_CONNECTIONS_H

#include "http/client_share.h"
#include "proxy/browser.h"
#include "proxy/proxy.h"

void connections_init(struct proxy *proxy);
void connections_done(struct proxy *proxy);

/* Count the connection, whether there is room for it or not. *ret_share is whose it is, NULL if
 * its address is not one of IP.
 */
bool connections_enter(struct proxy *proxy, struct stream *stream, bool is_tunnel,
                       struct client_share **ret_share);
/* Count it for the user of this access key, too. *user is for whom it has counted so far, NULL =
 * nobody. -EDQUOT, with *user as it was, if the user has more than a share.
 */
int connections_take_user(struct proxy *proxy, const char *access_key, struct client_share **user,
                          struct aq_error *err);
/* It goes, whose shares these were. */
void connections_leave(struct proxy *proxy, struct client_share *share, struct client_share *user);

/* From now on the browser's connection waits for its client to do this; CLIENT_NOTHING: it does
 * not wait for it.
 */
void connections_wait_for(struct browser *b, enum client_step step);

#endif
