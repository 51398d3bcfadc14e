/* SPDX-License-Identifier: Apache-2.0 */
/* server_internal.h - what server.c, drain.c, connection*.c, places.c, ready.c, request.c and
 * reply.c share
 *
 * A connection has one request at a time, embedded. While a handler has it,
 * the connection lives on even if the client has gone (stream == NULL).
 */
#ifndef AQ_HTTP_SERVER_INTERNAL_H
#define AQ_HTTP_SERVER_INTERNAL_H

#include "base/list.h"
#include "http/defer.h"
#include "http/quota.h"
#include "http/server.h"

/* What a connection waits for; each kind has one list in order of deadline. */
enum timer_kind {
    TIMER_FRESH, /* the first byte ever */
    TIMER_HEAD,  /* the rest of a head */
    TIMER_BODY,
    TIMER_IDLE,       /* the next request */
    TIMER_WRITE,      /* the client to read */
    TIMER_KEEPALIVE,  /* time for a sign of life on a stream */
    TIMER_BODY_PAUSE, /* the client to send no more of a body after our last word */
    TIMER_LINGER,     /* the client to close after our last word */
    TIMER_COUNT,
    TIMER_NONE = TIMER_COUNT,
};

enum connection_state {
    CONNECTION_HEAD,     /* between requests or in a head */
    CONNECTION_AGAIN,    /* the head is there, and the request is to be routed once more */
    CONNECTION_BODY,     /* collecting the body */
    CONNECTION_READY,    /* the request is complete and waits for the handler */
    CONNECTION_HANDLER,  /* the handler has the request */
    CONNECTION_DISCARD,  /* answered early: 'held' waits for the rest of the body, which is
                           dropped */
    CONNECTION_FLUSH,    /* answered; the client has yet to take it */
    CONNECTION_LINGER,   /* our last word is said */
    CONNECTION_UPGRADED, /* the stream serves another protocol */
};

struct request {
    struct connection *conn;
    const struct server_app *app; /* under which it began */
    struct drain *drain;          /* which waits for its end, or NULL */
    enum method method;
    struct arena arena;
    const char *path; /* NULL until asked for */
    struct url_query query;
    struct route_match match;
    struct quota_client *client; /* NULL = the guard named none */
    struct strbuf body;
    size_t body_bytes;     /* of it, as the quota counts them */
    size_t unsent_bytes;   /* of the answer, the same */
    struct strbuf headers; /* added to the answer */
    void *data;
    void (*on_gone)(struct request *req, void *data);
    void *gone_data;
    void (*on_drain)(struct request *req, void *data);
    void *drain_data;
    request_body_fn *on_body;
    void *body_data;
    const char *keepalive; /* sent in the silence of a stream; NULL = nothing */
    bool body_complete;
    bool body_paused;
    bool keep_alive; /* the connection may serve another request */
    bool begun;      /* the head of the answer is out */
    bool chunked;
    bool sized;
    bool is_bodiless; /* begun with a status that has no body */
    bool gone;
    uint64_t left; /* of a sized answer: still to be written */
};

struct connection {
    struct server *server;
    struct stream *stream;     /* NULL once gone */
    char address[64];          /* of the client: once gone, or of the request if is_adopted */
    struct client_share *peer; /* NULL = it is not counted */
    struct message_parser *parser;
    struct list all; /* in server->connections */
    struct list timer_link;
    struct list ready_link;             /* while it waits for a turn */
    uint64_t deadline;                  /* uv_now() */
    uint64_t mark;                      /* TIMER_WRITE: stream_sent(); TIMER_BODY: bytes since */
    uint64_t linger_end;                /* uv_now() */
    uint64_t linger_mark;               /* bytes that had come when the timer was set */
    struct strbuf input;                /* read, but not its turn yet */
    struct strbuf again;                /* of the body, read before the request was rerouted */
    struct strbuf held;                 /* the answer that is sent once the body is through */
    struct quota_client *unsent_client; /* of the answer that is being sent; NULL = of no client */
    size_t unsent_bytes;                /* of it, as the quota counts them */
    enum timer_kind timer;
    enum connection_state state;
    bool running;      /* connection_run() is on the stack */
    bool is_due;       /* the parser may have a step to do, also without further bytes */
    bool dead;         /* free when it returns */
    bool has_request;  /* req is in use */
    bool close_after;  /* CONNECTION_FLUSH: then shut */
    bool refused;      /* beyond the limit */
    bool is_adopted;   /* see server_adopt(); 'peer' is that of its request */
    bool body_follows; /* of the request: not all of it has come */
    bool is_whole;     /* with 'again' the body ends */
    bool has_ended;    /* the client has, see 'ends_well' */
    bool ends_well;    /* it has ended its sending, and may still read */
    struct request req;
};

/* What waits for a turn of the loop. */
struct ready {
    struct list unread;         /* connection.ready_link: bytes or the end came */
    struct list clients;        /* ready_client.link: have a request that waits */
    struct ready_client nobody; /* of requests without a client */
    int64_t turn_began;         /* monotonic, ns; 0 = nothing was done in this turn */
    int64_t processor_began;    /* the same in the thread's processor time */
    bool is_unlimited;          /* all is done at once: for loopback.h */
    uv_idle_t *idle;            /* active while something waits */
    uv_check_t *check;          /* between two turns */
};

struct server {
    uv_loop_t *loop;
    struct server_app first_app;  /* of server_options */
    const struct server_app *app; /* of requests that begin now */
    struct list drains;
    struct map peers; /* name -> struct client_share */
    struct server_limits limits;
    struct listener *listeners[16];
    size_t listener_count;
    struct list connections;
    size_t connection_count; /* with a stream */
    size_t refusing;         /* of these, being told 503 */
    struct quota quota;
    struct ready ready;
    struct list timers[TIMER_COUNT];
    unsigned timer_msec[TIMER_COUNT];
    uv_timer_t *sweep;
    struct server_stats stats;
    bool stopping;
    struct defer *grace, *stopped;
    void (*on_stopped)(void *data);
    void *stopped_data;
    struct arena spare;    /* memory of the last request, for the next */
    struct strbuf scratch; /* where answers are put together */
    int64_t common_second; /* of the Date header in 'common' */
    char common[160];
    size_t common_len;
};

/* ---- connection.c ---- */

/* What is left of a body may be this long: it is read before an early answer is
 * sent, and the connection lives on.
 */
#define CONNECTION_UNREAD_MAX 65536

/* A connection whose stream the caller makes and stores. */
struct connection *connection_new(struct server *server);
void connection_free(struct connection *conn);
extern const struct stream_ops connection_ops;

/* Close the stream; the client counts as gone. Frees the connection unless a
 * handler has its request.
 */
void connection_drop(struct connection *conn);

/* The answer is complete: what follows is begun by a later turn of the loop, or by the
 * connection_run() that is on the stack. Calls nothing of a handler. Frees the connection if
 * its stream is gone.
 */
void connection_next(struct connection *conn);

/* A client that waits for "100 Continue" may send its body, unless it was told so before. */
void connection_invite_body(struct connection *conn);

/* Read on where the body was paused or awaited, in a later turn of the loop. */
void connection_resume(struct connection *conn);

/* The request and its body are there. */
void connection_call_handler(struct connection *conn);

/* What has come for it, or its end, has waited for this turn. */
void connection_take_unread(struct connection *conn);

/* The time of conn->timer is up. */
void connection_expire(struct connection *conn);

/* Say 503 to a connection above the limit. */
void connection_refuse(struct connection *conn);

/* ---- server.c ---- */

/* The connection has its stream. */
void server_start_connection(struct connection *conn);
void server_set_timer(struct connection *conn, enum timer_kind kind);
/* The stream of a connection is no more. */
void server_count_down(struct server *server);

/* ---- drain.c ---- */

/* The request's drain waits for it no more. */
void drain_leave(struct request *req);
/* server_free(): without a call of on_drained(). */
void drain_cancel_all(struct server *server);

/* ---- places.c ---- */

/* Give a new connection, whose stream is there and not counted yet, a place, if need be that of
 * another one, which is dropped: of the same address, if that has more than its share. False if
 * there is none. It has to leave in either case.
 */
bool places_take(struct connection *conn);
/* The same for the client of a request on a connection that has a place of its own; never refused.
 */
void places_take_for_request(struct connection *conn);
void places_leave(struct connection *conn);

/* ---- ready.c ---- */

void ready_init(struct server *server);
void ready_done(struct server *server);

/* May more be done in this turn? */
bool ready_has_time(struct server *server);

/* Go on in a later turn with what came for the connection, or its end. Nothing if it waits. */
void ready_add_unread(struct connection *conn);
/* Does what is new wait, behind what waits already or because the turn's time is up? */
bool ready_must_wait(struct server *server);
/* Call the handler when it is the turn of the request's client. */
void ready_add_request(struct connection *conn);
/* It waits no more. Before the request is done. */
void ready_remove(struct connection *conn);

/* ---- connection_admit.c ---- */

/* Find the route and ask the guard. True if the request may go on, else it is answered. */
bool connection_admit(struct connection *conn);

/* ---- request.c ---- */

void request_init(struct request *req, struct connection *conn);
void request_done(struct request *req);

/* ---- reply.c ---- */

void reply_continue(struct connection *conn);
/* Send the answer that was held back while the body came, if there is one. */
void reply_send_held(struct connection *conn, bool keep_alive);
/* Send 'text' whenever a begun stream was silent for a while. Static text. */
void request_set_keepalive(struct request *req, const char *text);
void reply_keepalive(struct request *req);

#endif
