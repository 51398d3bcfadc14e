/* SPDX-License-Identifier: Apache-2.0 */
/* forward_internal.h - what forward.c, forwarded.c and forwarded_head.c share */
#ifndef AQ_MANAGER_FORWARD_INTERNAL_H
#define AQ_MANAGER_FORWARD_INTERNAL_H

#include "base/host_port.h"
#include "base/list.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "http/client.h"
#include "http/defer.h"
#include "http/websocket_tunnel.h"
#include "manager/forward/forward.h"

#define FORWARD_KEPT_MAX ((size_t)512 << 10)    /* of one body */
#define FORWARD_KEPT_ALL_MAX ((size_t)64 << 20) /* of all bodies */

struct forward {
    struct forward_options options;
    struct router *own_router; /* if the options have none */
    struct server_app app;
    struct client *client;
    char leader[HOST_PORT_MAX]; /* the last one that was known */
    bool has_leader;            /* it leads still */
    bool is_released;           /* this manager leads */
    bool is_reached;            /* since it leads no connection to it has failed */
    unsigned turn;              /* counts leaders, also one that was none for a while */
    unsigned place;             /* counts changes of the address */
    struct list waiting, sent;  /* forwarded.link */
    size_t waiting_count;
    struct map shares; /* of 'waiting': network -> struct client_share */
    size_t kept_bytes;
    struct log_budget log;
    struct defer *tick; /* while some wait */
    struct defer *old;  /* for answers of the leader before */
};

/* A request that is passed on. */
struct forwarded {
    struct list link;
    struct forward *forward;
    struct request *req;
    struct client_share *share;      /* while it waits */
    struct exchange *exchange;       /* NULL while it waits, and of a WebSocket */
    struct websocket_tunnel *tunnel; /* of a WebSocket; it ends the request */
    const struct message_head *head; /* of an answer that begins with the first bytes of its body */
    struct pump pump;                /* request and exchange */
    struct strbuf kept;              /* of its body all that was read, if is_kept */
    uint64_t deadline;               /* uv_now(): it waits no longer; 0 = it has not waited */
    unsigned turn, place;            /* of the leader it was sent to last */
    unsigned tries;                  /* so often that leader got it, and did not answer */
    bool was_sent;                   /* to any leader */
    bool has_body;
    bool is_once;    /* who gets it again answers as before */
    bool is_kept;    /* nothing of the body is lost */
    bool is_reading; /* the body */
    bool is_giving;  /* it, to the exchange */
    bool has_read;   /* some of it */
    bool has_ended;  /* all of it */
    bool is_begun;   /* the answer is, to the client */
    bool is_events;  /* it is an event stream */
};

/* ---- forward.c ---- */

/* The network that the request comes from, for limits. */
void forward_name_client(const struct forward *forward, const struct request *req,
                         char ret[CLIENT_ADDRESS_MAX]);
/* It is sent by the next turn of forward.c that has a leader for it; or refused. */
void forward_hold(struct forwarded *fw);
/* A connection to the leader has failed: before a request was sent on it, then what has yet to be
 * sent waits.
 */
void forward_note_failure(struct forward *forward, bool is_sent);
/* It waits no more. */
void forward_leave(struct forwarded *fw);

/* ---- forwarded.c ---- */

/* route_handler_fn of all requests that are passed on. */
void forwarded_start(struct request *req, void *data);
/* May the present leader get it, if there is one? */
bool forwarded_may_be_sent(const struct forwarded *fw);
void forwarded_send(struct forwarded *fw);
/* Its leader leads no more: send it again or refuse it, or end an answer that never ends. */
void forwarded_leave_leader(struct forwarded *fw);
/* None leads in time, or too many wait. */
void forwarded_refuse(struct forwarded *fw);
/* Let the server's present app answer it. */
void forwarded_reroute(struct forwarded *fw);
/* Break its answer off; it is gone. */
void forwarded_cut(struct forwarded *fw);

/* ---- forwarded_head.c ---- */

/* Header lines for the leader. */
void forwarded_write_headers(const struct forwarded *fw, bool expects_continue, struct strbuf *out);
/* Those of an answer 101 are the client's, too. */
void forwarded_add_upgrade_headers(struct request *req, const struct message_head *head);
bool forwarded_is_websocket(const struct request *req);

#endif
