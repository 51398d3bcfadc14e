/* SPDX-License-Identifier: Apache-2.0 */
/* client_internal.h - what client.c and client_wire.c share
 *
 * A wire is a connection to one place; a pool holds the wires and the waiting
 * exchanges of that place. An exchange that is sent has a wire, and the other
 * way round.
 */
#ifndef AQ_HTTP_CLIENT_INTERNAL_H
#define AQ_HTTP_CLIENT_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "http/client.h"
#include "http/defer.h"

struct client {
    uv_loop_t *loop;
    struct client_options options;
    struct tls_context *tls; /* made when needed, or the options' */
    struct map pools;
    struct list exchanges;
    struct message_parser *spare; /* of the last exchange, for the next */
};

struct client_pool {
    struct client *client;
    struct address address;
    char server_name[URL_HOST_MAX];
    bool tls;
    unsigned count;      /* wires */
    unsigned connecting; /* of these, not open yet */
    struct list wires;
    struct list queues; /* struct client_queue: whose turn is next comes first */
    struct map owners;  /* name -> struct client_queue */
};

/* Exchanges of one owner that wait. It is there as long as there is one. */
struct client_queue {
    struct list link;
    struct list exchanges; /* exchange.wait_link */
    char *owner;
};

struct wire {
    struct client_pool *pool;
    struct list link; /* in pool->wires; idle ones first */
    struct stream *stream;
    struct message_parser *parser; /* while it has an exchange */
    struct exchange *exchange;     /* NULL = idle */
    struct defer *idle;
    bool is_open, reused;
    bool running, dead;   /* wire_run() is on the stack; free when it returns */
    struct stream *taken; /* by exchange_upgrade() */
};

struct exchange {
    struct client *client;
    struct client_pool *pool;
    struct list link;           /* in client->exchanges */
    struct list wait_link;      /* in: */
    struct client_queue *queue; /* NULL = it does not wait */
    struct wire *wire;          /* NULL while it waits */
    const struct exchange_ops *ops;
    void *data;
    void (*release)(void *data); /* frees data with the exchange; or NULL */
    enum method method;
    struct strbuf out; /* the request, kept for a second try */
    uint64_t body_max;
    unsigned answer_msec;
    struct defer *timer; /* for the answer's head */
    struct defer *drain; /* calls on_drain() after the exchange took an idle wire; or NULL */
    bool stream_body;    /* the body comes by exchange_write() */
    bool is_sized;       /* and is not chunked */
    bool is_sent_once;
    bool sent;        /* its head, on an open connection */
    bool finished;    /* the whole request was given */
    bool answered;    /* at least one byte came */
    bool is_broken;   /* client_break() is to end it */
    bool has_outcome; /* client_options.on_outcome was called */
    bool retried;
};

/* ---- client_wire.c ---- */

/* A new wire for the exchange, which must have none. */
int wire_open(struct client_pool *pool, struct exchange *ex, struct aq_error *err);
/* Use an idle wire. */
void wire_take(struct wire *wire, struct exchange *ex);
/* Close; its exchange, if any, is left without. */
void wire_close(struct wire *wire);

/* ---- client.c ---- */

/* Room was made in a pool. */
void pool_serve(struct client_pool *pool);
/* Tell the client's owner of the answer's status, 0 for none, unless they were told. */
void exchange_note_outcome(struct exchange *ex, int status);
/* Over: tell the owner and free. The exchange has no wire any more. */
void exchange_end(struct exchange *ex, const struct aq_error *err);
/* The wire failed under it: try again, or end. */
void exchange_fail(struct exchange *ex, bool reused, const struct aq_error *err);
void exchange_free(struct exchange *ex);

#endif
