/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - one request below /func from the inside: relay.c passes it on and its answer back
 */
#ifndef AQ_WEB_RELAY_H
#define AQ_WEB_RELAY_H

#include "http/websocket_tunnel.h"
#include "web/web.h"

struct relay {
    struct list link; /* web.relays */
    struct web *web;
    struct request *req;
    struct login_use use;
    const char *target;              /* the manager's */
    const char *api;                 /* the manager that it was sent to last */
    struct exchange *exchange;       /* NULL before and after */
    struct pump pump;                /* request and exchange */
    struct strbuf body;              /* of one that is sent as a whole */
    struct websocket_tunnel *tunnel; /* of a WebSocket; it ends the request */
    struct defer *timer;             /* of one whose end has come */
    size_t tries;
    int status;      /* of the answer; 0 = it has not come */
    bool has_body;   /* the request has */
    bool is_hidden;  /* its body, until it has come */
    bool is_whole;   /* the body is sent as a whole, and can be sent again */
    bool is_begun;   /* the answer */
    bool ends_login; /* its own, as the answer says */
};

#endif
