/* SPDX-License-Identifier: Apache-2.0 */
/* route.h - the apps that the proxy reaches without the manager, and what went there
 *
 * A route is a ticket (link/ticket.h) for a user, a session and an app. While the manager is there it
 * watches each: when the right ends it says so, and everything that goes by the route is cut. While
 * the manager is away routes are good until their tickets expire, also after a restart of the proxy:
 * they are in a file that only its user reads. Those that are used get a newer ticket in time.
 *
 * What goes by a route is counted, and told the manager every second, or when it comes back.
 *
 * Loop's thread only.
 */
#ifndef AQ_PROXY_ROUTE_H
#define AQ_PROXY_ROUTE_H

#include "http/app_activity.h"
#include "proxy/proxy.h"

#define ROUTES_MAX 16384
#define ROUTE_HASHES 64 /* of the latest requests, of which pages that poll are known */

struct app_route;

/* A connection by a route; part of who has it. */
struct route_use {
    struct list link; /* route.uses */
    struct app_route *route;
    struct app_activity activity;
    size_t output; /* that has not been counted as work yet */
    void (*cut)(void *data,
                const struct aq_error *err); /* the right has ended; it closes the use */
    void *data;
};

/* Read the file, and look after it from now on. */
struct routes *routes_new(struct proxy *proxy);
void routes_free(struct routes *routes); /* writes the file */

/* A route that is good now; NULL = there is none. Borrowed until the loop goes on. */
struct app_route *routes_find(struct routes *routes, const struct msg_app_connect *want);
/* The manager's answer. */
struct app_route *routes_add(struct routes *routes, const struct msg_app_connect *want,
                             const struct msg_app_route *got);
/* It leads nowhere any more; what goes by it already stays. */
void route_drop(struct app_route *route);

const char *route_agent(const struct app_route *route);
const char *route_address(const struct app_route *route);
const char *route_ticket(const struct app_route *route);

/* ---- what the manager says ---- */

void routes_on_connected(struct routes *routes);
void routes_renew(struct routes *routes, const struct msg_app_route *got);
/* False if it is none of ours. */
bool routes_on_denied(struct routes *routes, const struct uuid *ticket_id, const char *why);

/* ---- ways, for "aliquot doctor" ---- */

enum route_way { ROUTE_SOCKET, ROUTE_TLS, ROUTE_MANAGER };

/* How an agent was reached last, and why not better; 'why' is copied. */
void routes_note_way(struct routes *routes, const char *agent_id, enum route_way way,
                     const char *why);
/* The agent was not reached lately: do not try again yet. */
bool routes_is_unreachable(const struct routes *routes, const char *agent_id);

/* ---- a connection ---- */

void route_open(struct app_route *route, struct route_use *use,
                void (*cut)(void *data, const struct aq_error *err), void *data);
void route_count_in(struct route_use *use, const char *bytes, size_t len);
void route_count_out(struct route_use *use, size_t len);
void route_close(struct route_use *use); /* of one that is not open nothing happens */

#endif
