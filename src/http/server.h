/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - an HTTP/1.1 server on a uv loop
 *
 * Each request is routed and authorised when its head is there, then its body
 * is collected (within limits), then the handler of the route is called. The
 * handler answers at once or any time later, on the loop's thread, and must
 * end every request exactly once (request_reply() and the like, or
 * request_end() of a stream), also when the client has gone meanwhile. After
 * that the request no longer exists.
 *
 * No handler and no callback runs inside a function of this header: an answer
 * only queues the connection's next request, and request_read_body() and
 * request_resume_body() only queue the next piece, for a later turn of the
 * loop (or for the parser that called the handler, once that has returned).
 * So a caller may answer while it walks a list of requests. It must still
 * detach a request from what it keeps before it answers, because the request
 * is gone afterwards.
 */
#ifndef AQ_HTTP_SERVER_H
#define AQ_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/pump.h"
#include "base/strbuf.h"
#include "http/client_share.h"
#include "http/listener.h"
#include "http/message.h"
#include "http/origin.h"
#include "http/router.h"
#include "http/stream.h"
#include "http/url.h"

struct server;
struct request;

/* 0 takes the default in brackets. */
struct server_limits {
    struct message_limits message; /* [message_limits_default] */
    unsigned head_msec;            /* first byte of a head to its last [10,000] */
    unsigned body_msec;            /* the body may stand still [30,000] */
    unsigned idle_msec;            /* between requests [75,000] */
    unsigned write_msec;           /* queued bytes may stand still [30,000] */
    unsigned keepalive_msec;       /* silence on an event stream before a comment [15,000] */
    unsigned connections_max;      /* beyond it idle ones are closed, else 503 [10,000] */
    size_t queue_max;              /* bytes queued for one slow reader [8 MiB] */
    size_t bodies_max; /* bytes of all bodies held at one time, beyond it 503, and of answers that
                          clients have not taken, beyond it 429 [128 MiB] */
};

/* Called with the head, before the body. 0 lets the request pass; -errno
 * answers with the problem of 'err' (whose kind decides).
 */
typedef int server_guard_fn(struct request *req, const struct route *route, void *data,
                            struct aq_error *err);

#define SERVER_PEER_MAX CLIENT_SHARE_NAME_MAX

/* Who counts as one for the places that connections take: the name for an address as
 * stream_get_address() gives it. False if it stands for many, such as a proxy or a socket
 * of this machine. On the loop's thread.
 */
typedef bool server_name_peer_fn(const char *address, char ret[SERVER_PEER_MAX], void *data);

/* Who answers requests, and which are admitted. What it points to must outlive all requests that
 * begin under it.
 */
struct server_app {
    const struct router *router;
    server_guard_fn *guard; /* may be NULL */
    /* Likewise before the handler, with the whole body: a client may have taken long to send it.
     * With ROUTE_STREAM_BODY it has not. May be NULL.
     */
    server_guard_fn *recheck;
    server_name_peer_fn *name_peer; /* may be NULL: places are not counted by address */
    void *guard_data;               /* of all three */
    /* Borrowed, looked at for each request; NULL = no page but the server's own reads answers */
    const struct origin_rules *origins;
};

struct server_options {
    struct server_limits limits;
    struct server_app app; /* copied: the server's first */
};

/* The loop must outlive the server. */
struct server *server_new(uv_loop_t *loop, const struct server_options *options);

/* Listen on one more address. The listener is the server's. */
int server_listen(struct server *server, const struct listener_options *options,
                  struct listener **ret, struct aq_error *err);

/* Requests that begin from now on are this app's. Borrowed, until another one is set and no request
 * of it is left.
 */
void server_set_app(struct server *server, const struct server_app *app);

/* End an app that is not the server's any more: requests under way may end within 'grace_msec',
 * then their clients are cut, of which request_set_gone() tells. on_drained() is called once, from
 * the loop, when none is left. Connections that are between requests live on. An app is drained
 * once at a time; server_free() calls nothing.
 */
void server_drain(struct server *server, const struct server_app *app, unsigned grace_msec,
                  void (*on_drained)(void *data), void *data);

/* Take over an open stream on which another server passes on requests of many clients. Each must
 * have one header "Aliquot-Client" with its client's address ("unix" for a socket of that machine):
 * request_get_address() is that one then, and places are counted by it. On all other connections
 * the header means nothing. 'bytes' is what came already, copied.
 */
void server_adopt(struct server *server, struct stream *stream, const char *bytes, size_t len);
#define SERVER_CLIENT_HEADER "Aliquot-Client"

/* Stop: listeners and idle connections close at once, requests under way may
 * end within 'grace_msec', then every connection closes and 'on_stopped' is
 * called once. Streams are told by request_set_gone().
 */
void server_stop(struct server *server, unsigned grace_msec, void (*on_stopped)(void *data),
                 void *data);

/* After on_stopped() and only once every handler has ended its request. */
void server_free(struct server *server);

struct server_stats {
    uint64_t requests, connections_total, refused; /* since the start */
    size_t connections;                            /* now */
};
void server_get_stats(const struct server *server, struct server_stats *ret);

/* ---- a request ---- */

enum method request_get_method(const struct request *req); /* after X-Method-Override */
const char *request_get_target(const struct request *req); /* raw path and query */
const char *request_get_path(const struct request *req);   /* raw path */
const char *request_get_header(const struct request *req, const char *name); /* or NULL */
const struct message_head *request_get_head(const struct request *req);
const struct route *request_get_route(const struct request *req);
const char *request_get_param(const struct request *req, const char *name); /* or NULL */
/* First value of that name in the query, decoded, or NULL. */
const char *request_get_query(const struct request *req, const char *name);
const struct url_query *request_get_queries(const struct request *req);
/* NUL-terminated; "" and 0 without one. Borrowed until the request ends. */
const char *request_get_body(const struct request *req, size_t *ret_len);
/* Memory that lives as long as the request. */
struct arena *request_get_arena(struct request *req);
/* Of the client, also when that is gone: of the connection it came by, or as server_adopt() has it.
 * Borrowed until the request ends.
 */
const char *request_get_address(const struct request *req);
/* It came by a connection that server_adopt() took over. */
bool request_is_passed_on(const struct request *req);
uv_loop_t *request_get_loop(const struct request *req);

/* A pointer that the guard leaves for the handler, e.g. the principal; put
 * what it points to into the arena.
 */
void request_set_data(struct request *req, void *data);
void *request_get_data(const struct request *req);

/* For the guard: who asks, a user or an address, which counts as one client of quota.h until
 * the request ends. Once at most; -EAGAIN if it has too much under way.
 */
int request_set_client(struct request *req, const char *name, struct aq_error *err);

/* Tell when the client goes away before the end (an end of its sending counts
 * as that). The request must still be ended. NULL unsets. While a body is read
 * by request_read_body(), that callback is told instead.
 */
void request_set_gone(struct request *req, void (*on_gone)(struct request *req, void *data),
                      void *data);
bool request_is_gone(const struct request *req);

/* Let the server's present app answer it: it is routed and admitted from the loop as if its head
 * had come just now, and is not the caller's any more. -EINVAL unless its route is
 * ROUTE_STREAM_BODY, no body was read and no answer was begun. -EPIPE once the client has gone.
 * After an error it must still be ended.
 */
int request_reroute(struct request *req);
/* The same for one whose body was read, as far as 'body', which is copied: it is given again. */
int request_reroute_read(struct request *req, const char *body, size_t len);

/* ROUTE_STREAM_BODY: read the body as it comes. 'on_body' gets pieces, then
 * one call with len 0 at its end; -errno in 'status' if it broke off. A client that waits for
 * "100 Continue" is sent that now.
 */
typedef void request_body_fn(struct request *req, const char *bytes, size_t len, int status,
                             void *data);
void request_read_body(struct request *req, request_body_fn *on_body, void *data);
void request_pause_body(struct request *req);
void request_resume_body(struct request *req);

/* ---- the answer ---- */

/* Add a header to the answer. Values with control characters are dropped. */
void request_add_header(struct request *req, const char *name, const char *value);
void request_add_header_int(struct request *req, const char *name, int64_t value);

/* The whole answer; the bytes are copied if they cannot be sent at once. */
void request_reply(struct request *req, int status, const char *content_type, const void *body,
                   size_t len);
/* The same with "application/json"; a failed strbuf becomes a 500. */
void request_reply_json(struct request *req, int status, const struct strbuf *json);
void request_reply_empty(struct request *req, int status);
/* A problem document; 'data' is JSON text or NULL. See problem.h. What becomes
 * a 500 is logged, as its text is not shown.
 */
void request_fail(struct request *req, const struct aq_error *err);
void request_fail_data(struct request *req, const struct aq_error *err, const char *data);

/* An answer of unknown length. request_write() returns 0, -EPIPE once the
 * client has gone, -ENOBUFS beyond queue_max (nothing was queued then); a considerate writer waits
 * for on_drain when request_get_queued() is not zero. request_end() ends it; request_abort() breaks
 * it off so that the client notices.
 */
void request_begin(struct request *req, int status, const char *content_type,
                   void (*on_drain)(struct request *req, void *data), void *data);
int request_write(struct request *req, const void *bytes, size_t len);
/* The same for an answer of 'length' bytes: what is missing of them at request_end() breaks it off.
 */
void request_begin_sized(struct request *req, int status, const char *content_type, uint64_t length,
                         void (*on_drain)(struct request *req, void *data), void *data);
/* The same for an answer that another server gave to this request: status and headers are those of
 * 'head', which is borrowed for the call, but for what is of this connection alone. Headers that
 * were added to the request are left out. Its body follows as after request_begin(): what has come
 * of it goes out with the head.
 */
void request_begin_as(struct request *req, const struct message_head *head, const char *bytes,
                      size_t len, void (*on_drain)(struct request *req, void *data), void *data);
size_t request_get_queued(const struct request *req);
/* An end of a pump that is a struct request: gives its body, and is put what request_write() takes.
 */
extern const struct pump_ops request_pump;
void request_end(struct request *req);
void request_abort(struct request *req);

/* Answer 101 with the headers added so far and take over the connection: the
 * stream is borrowed and calls 'ops' from now on, bytes that came already
 * are given to on_read() from the loop. request_end() closes it. NULL if the
 * client has gone (the request must still be ended).
 */
struct stream *request_upgrade(struct request *req, const char *protocol,
                               const struct stream_ops *ops, void *data);

#endif
