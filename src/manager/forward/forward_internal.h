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
    char leader[HOST_PORT_MAX]; /* address of the last known leader */
    bool has_leader;            /* it still leads */
    bool is_released;           /* this manager leads */
    bool is_reached;            /* since it leads, no connection to it has failed */
    unsigned turn;              /* counts leaders; a leader that returns counts again */
    unsigned place;             /* counts changes of the address */
    struct list waiting, sent;  /* forwarded.link */
    size_t waiting_count;
    struct map shares; /* of 'waiting': network -> struct client_share */
    size_t kept_bytes;
    struct log_budget log;
    struct defer *tick; /* while some wait */
    struct defer *old;  /* until answers of the former leader are cut */
};

/* A request that is passed on, or waits for a leader. */
struct forwarded {
    struct list link;
    struct forward *forward;
    struct request *req;
    struct client_share *share;      /* while it waits */
    struct exchange *exchange;       /* with the leader; NULL while it waits, and of a WebSocket */
    struct websocket_tunnel *tunnel; /* of a WebSocket; it ends the request */
    const struct message_head *head; /* of an answer, held back for the body's first bytes */
    struct pump pump;                /* joins request and exchange */
    struct strbuf kept;              /* if is_kept: the body as far as it was read */
    uint64_t deadline;               /* uv_now() at which waiting ends; 0 = it has not waited */
    unsigned turn, place;            /* of the leader that it was sent to last */
    unsigned tries;                  /* that ended without an answer of that leader */
    bool was_sent;                   /* to any leader */
    bool has_body;
    bool is_once;    /* the manager keeps its answer: it may be sent again */
    bool is_kept;    /* 'kept' has the body from its beginning */
    bool is_reading; /* the body is read from the client ... */
    bool is_giving;  /* ... and given to the exchange */
    bool has_read;   /* a part of the body was read ... */
    bool has_ended;  /* ... and its end */
    bool is_begun;   /* the client has received the head of the answer */
    bool is_events;  /* the answer is an event stream */
};

/* ---- forward.c ---- */

/* Name the network that the request comes from, by which limits are counted. */
void forward_name_client(const struct forward *forward, const struct request *req,
                         char ret[CLIENT_ADDRESS_MAX]);
/* Let the request wait for a leader; it is sent, or refused at its deadline. */
void forward_hold(struct forwarded *fw);
/* A connection to the leader failed. Unless a request was sent on it, all unsent requests wait. */
void forward_note_failure(struct forward *forward, bool is_sent);
/* Stop waiting. */
void forward_leave(struct forwarded *fw);

/* ---- forwarded.c ---- */

/* route_handler_fn of all requests that are passed on. */
void forwarded_start(struct request *req, void *data);
/* True if there is a leader, and it may get the request. */
bool forwarded_may_be_sent(const struct forwarded *fw);
void forwarded_send(struct forwarded *fw);
/* Its leader was replaced: repeat or fail the request, or end an event stream or WebSocket. */
void forwarded_leave_leader(struct forwarded *fw);
/* Answer 503: no leader was found in time, or too many requests wait. */
void forwarded_refuse(struct forwarded *fw);
/* Let the server's present app answer it. */
void forwarded_reroute(struct forwarded *fw);
/* Abort the client's connection, and free 'fw'. */
void forwarded_cut(struct forwarded *fw);

/* ---- forwarded_head.c ---- */

/* Write the header lines of the request to the leader. */
void forwarded_write_headers(const struct forwarded *fw, bool expects_continue, struct strbuf *out);
/* Copy the headers of the leader's answer 101 to the client's. */
void forwarded_add_upgrade_headers(struct request *req, const struct message_head *head);
bool forwarded_is_websocket(const struct request *req);

#endif
