/* SPDX-License-Identifier: Apache-2.0 */
/* port.h - ports of the proxy that are an app's: for what speaks no HTTP, and pages that have no
 * host of their own
 *
 * A port belongs to a user, a session and an app. The manager is asked for each connection, and
 * every few seconds: when it says no, as the session has ended, the port is closed, what is
 * connected to it is cut, and it rests before it is another's. TCP has no cookie: there the
 * address from which a token came may connect, for as long as a cookie would let it.
 *
 * One user has 'max-ports-per-user' of them, those that rest included, so that no user's apps can
 * take all. An app that gets none is refused: at a path it would share an origin with apps of
 * other users.
 *
 * Loop's thread only.
 */
#ifndef AQ_PROXY_PORT_H
#define AQ_PROXY_PORT_H

#include "proxy/proxy.h"

#define PORT_ADDRESSES_MAX 16 /* of one TCP port; the oldest goes first */
#define PORT_ADDRESS_MAX 64
#define PORT_TOKEN_MAX 65

struct port_address {
    char text[PORT_ADDRESS_MAX];
    char token[PORT_TOKEN_MAX]; /* by which it was let in */
    int64_t until_usec;         /* wall clock */
};

struct port {
    struct list link; /* proxy.ports */
    struct proxy *proxy;
    uint16_t number;
    bool is_tcp;
    struct cookie of;          /* expires_usec: of the last token that led here */
    struct uuid check_id;      /* under which the manager is asked */
    struct listener *listener; /* NULL = it rests */
    int64_t rests_until_usec;  /* monotonic clock */
    size_t connection_count;
    struct list tunnels; /* struct tunnel */
    struct port_address addresses[PORT_ADDRESSES_MAX];
    size_t address_count;
};

/* Look after ports from now on. */
void ports_open(struct proxy *proxy);
/* Take no more connections. */
void ports_drain(struct proxy *proxy);
/* Connections that are left are cut, and all ports are forgotten. */
void ports_close(struct proxy *proxy);

/* The port of this user's app, a new one if it has none; 'wanted' if that can be had (0 = any).
 * -ENOENT if the proxy has no ports, -EAGAIN if all are taken, -EDQUOT if the user has as many as
 * one user may have.
 */
int ports_take(struct proxy *proxy, const struct cookie *of, bool is_tcp, uint16_t wanted,
               struct port **ret, struct aq_error *err);
/* The TCP port to which this token has let this address; NULL = none. */
struct port *ports_find(const struct proxy *proxy, const char *token, const char *address);
/* The manager says no to what was asked under this id. */
void ports_on_denied(struct proxy *proxy, const struct uuid *check_id, const char *why);

/* This address may connect to a TCP port, as long as 'of' says. */
void port_admit(struct port *port, const char *address, const char *token);
bool port_admits(const struct port *port, const char *address);

/* Where it is reached, "http://apps.example.org:10200": the host is public-url's. */
void port_write_url(const struct port *port, struct strbuf *out);

/* ---- tunnel.c ---- */

/* A connection waits at a TCP port. */
void tunnel_accept(struct port *port);
void tunnels_cut(struct port *port);

#endif
