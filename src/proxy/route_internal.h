/* SPDX-License-Identifier: Apache-2.0 */
/* route_internal.h - the routes from the inside, for route.c and route_file.c */
#ifndef AQ_PROXY_ROUTE_INTERNAL_H
#define AQ_PROXY_ROUTE_INTERNAL_H

#include "base/log_budget.h"
#include "base/map.h"
#include "link/ticket.h"
#include "proxy/route.h"

#define ROUTE_AGE_MAX_USEC (INT64_C(7) * 86400 * USEC_PER_SEC)

struct routes {
    struct proxy *proxy;
    struct map known;    /* "SESSION APP ACCESS_KEY" -> struct app_route */
    struct list dropped; /* struct app_route: replaced or revoked, and in use or to be told of */
    struct map agents;   /* id -> struct route_agent */
    struct defer *timer;
    size_t ticks; /* since the file was written */
    bool is_unsaved;
    struct log_budget log;
};

struct app_route {
    struct routes *of;
    struct list dropped_link;
    struct uuid ticket_id, session_id;
    struct uuid service_id; /* nil: not of a model service; such tickets are renewed unused, too */
    char app[COOKIE_APP_MAX + 1];
    char access_key[COOKIE_KEY_MAX];
    char *ticket, *agent_id, *address;
    int64_t expires_usec, renew_usec; /* wall clock */
    bool is_dropped, was_used;        /* since the ticket came */
    struct list uses;                 /* struct route_use */
    size_t connections;
    /* what the manager has not been told */
    bool is_dirty, is_work;
    int64_t requests, bytes_in, bytes_out, traffic;
    uint64_t hashes[ROUTE_HASHES];
    size_t next_hash;
};

struct route_agent {
    enum route_way way;
    int64_t retry_usec; /* monotonic: of one that was not reached */
    char why[200];
};

/* In place of one that is known. */
struct app_route *routes_put(struct routes *routes, const struct msg_app_connect *want,
                             const struct msg_app_route *got);

#endif
