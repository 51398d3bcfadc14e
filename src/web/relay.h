/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - one request below /func from the inside: relay.c passes it on and its answer back,
 * tunnel.c carries bytes both ways once it is a WebSocket
 */
#ifndef AQ_WEB_RELAY_H
#define AQ_WEB_RELAY_H

#include "web/tunnel_frame.h"
#include "web/web.h"

struct relay {
    struct list link; /* web.relays */
    struct web *web;
    struct request *req;
    struct login_use use;
    const char *target;               /* the manager's */
    struct exchange *exchange;        /* NULL before and after */
    struct pump pump;                 /* request and exchange; of a tunnel, both streams */
    struct strbuf body;               /* of one that is hidden, while it comes */
    struct stream *browser, *manager; /* of a tunnel; the first is the request's */
    struct tunnel_frame frame;        /* to the browser */
    struct defer *timer;              /* of one whose end has come */
    size_t tries;
    int status;      /* of the answer; 0 = it has not come */
    bool has_body;   /* the request has */
    bool is_hidden;  /* its body */
    bool is_begun;   /* the answer */
    bool ends_login; /* its own, as the answer says */
    bool is_told;    /* the browser, why its tunnel ends */
};

void relay_free(struct relay *relay);

/* ---- tunnel.c ---- */

/* The manager has agreed: 'head' is its answer. */
void tunnel_begin(struct relay *relay, const struct message_head *head);
void tunnel_cut(struct relay *relay);
/* Tell the browser why it ends, if that can be told, and end it. */
void tunnel_close(struct relay *relay, uint16_t code, const char *reason);

#endif
