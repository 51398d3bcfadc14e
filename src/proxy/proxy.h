/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h - the proxy as a whole: its listener, its browsers, and what they share
 *
 * It keeps nothing that a restart loses: its certificate and the tickets of apps are in files,
 * cookies are sealed with what is made of its key, and all else the manager knows.
 */
#ifndef AQ_PROXY_PROXY_H
#define AQ_PROXY_PROXY_H

#include "base/list.h"
#include "base/map.h"
#include "http/listener.h"
#include "proxy/cookie.h"
#include "proxy/manager.h"
#include "proxy/settings.h"

/* What a connection waits for its client to do. */
enum client_step {
    CLIENT_SPEAKS, /* for the first time */
    CLIENT_FINISHES_HEAD,
    CLIENT_READS, /* an answer */
    CLIENT_ASKS_AGAIN,
    CLIENT_ENDS, /* the connection */
    CLIENT_STEPS,
    CLIENT_NOTHING = CLIENT_STEPS,
};

struct proxy {
    uv_loop_t *loop;
    const struct settings *settings;
    char *domain_url; /* public-url with the domain as its host; NULL = it has no domain */
    unsigned char secret[FRONT_SECRET_SIZE];
    struct manager manager;
    struct routes *routes;           /* route.h */
    struct agent_links *agent_links; /* agent_link.h */
    struct serving *serving;         /* serving.h */
    struct listener *listener;
    struct list browsers;              /* struct browser */
    struct list waiting[CLIENT_STEPS]; /* browsers that wait for their client, the longest first */
    struct map shares;                 /* name of an address -> struct client_share */
    struct list ports;                 /* struct port */
    struct defer *port_timer;
    size_t connection_count; /* of browsers, and to ports */
    bool is_draining;        /* takes no more connections */
    struct front *front;
    struct {
        uint64_t connections, requests, upgrades, refused; /* since the start */
        uint64_t bytes_in, bytes_out;                      /* to apps, and from them */
        uint64_t by_socket, by_tls, by_manager;            /* connections to apps, by their way */
    } counts;
};

extern const struct front_type proxy_type;

/* ---- browser.c ---- */

struct port;
/* A connection waits at the listener, of this port or NULL. */
void browser_accept(struct proxy *proxy, struct listener *listener, struct port *port);
/* Those that wait for their next request end now. */
void browsers_drain(struct proxy *proxy);
/* All, or those of this port. */
void browsers_cut(struct proxy *proxy, const struct port *port);

#endif
