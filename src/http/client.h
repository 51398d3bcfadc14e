/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - an HTTP/1.1 client on a uv loop, with a pool of connections
 *
 * An exchange is one request and its answer. Everything happens on the
 * loop's thread; callbacks never come from within client_send().
 */
#ifndef AQ_HTTP_CLIENT_H
#define AQ_HTTP_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sys/socket.h>

#include <uv.h>

#include "base/error.h"
#include "base/pump.h"
#include "http/message.h"
#include "http/stream.h"
#include "http/url.h"

struct client;
struct exchange;

/* What has come of a request: of one that is not cancelled before. */
struct client_outcome {
    const struct address *address; /* of the server */
    int status;                    /* of the answer; 0 = none came */
    bool was_sent;                 /* a connection was made, so the server may have the request */
};

bool client_is_same_address(const struct address *a, const struct address *b);

struct client_options {
    struct tls_context *tls;      /* for https; NULL = the system's trust, made when needed */
    struct message_limits limits; /* of answers; 0 = message_limits_default */
    unsigned connect_msec;        /* 0 = 10 s */
    unsigned answer_msec;         /* from the request's end to the head; 0 = none */
    unsigned idle_msec;           /* an unused connection is kept; 0 = 20 s */
    unsigned connections_max;     /* per address, further exchanges wait; 0 = 32 */
    unsigned connecting_max;      /* of these, in the middle of connecting; 0 = all */
    /* As in stream_options, of every connection. */
    bool (*may_reach)(void *data, const struct sockaddr *addr);
    void *reach_data;
    /* For those who know several servers of the same: once for each request, WebSockets as well,
     * before its own callback. It begins and cancels no request. NULL = none.
     */
    void (*on_outcome)(void *data, const struct client_outcome *outcome);
    void *outcome_data;
};

struct client *client_new(uv_loop_t *loop, const struct client_options *options);
/* Cancels what is under way: on_end() is called with ECANCELED. Not from within
 * a callback. The handles are gone after the loop has run once more.
 */
void client_free(struct client *client);

uv_loop_t *client_get_loop(const struct client *client);

/* End every GET that is asked of this address, its answer begun or not: on_end() is called with
 * 'err', and may ask another server, not this one. Not from within a callback.
 */
void client_break(struct client *client, const struct address *address, const struct aq_error *err);

struct client_request {
    enum method method;
    const char *verb;    /* says the request line in place of the method's name; or NULL */
    const char *url;     /* absolute; see url_parse(). Copied */
    const char *target;  /* says the request line in place of the URL's; or NULL */
    const char *host;    /* says the Host header in place of the URL's; or NULL */
    const char *socket;  /* connect to this address instead of the URL's ("unix:/path"); or NULL */
    const char *headers; /* whole lines "Name: value\r\n"; Host, Content-Length and
                             Transfer-Encoding are added. Copied. NULL = none */
    const void *body;    /* copied */
    size_t body_len;
    bool stream_body; /* the body follows by exchange_write(), chunked unless is_sized */
    bool is_sized;    /* it will have 'body_length' bytes */
    uint64_t body_length;
    /* Exchanges that wait for a connection go by turns of their owners. Copied; NULL = one that all
     * without a name share.
     */
    const char *owner;
    bool is_sent_once;    /* never tried once more */
    uint64_t body_max;    /* of the answer; 0 = the client's limit, UINT64_MAX = none */
    unsigned answer_msec; /* 0 = the client's */
};

struct exchange_ops {
    /* Any may be NULL but on_end. The head lives until that has returned. */
    void (*on_head)(struct exchange *ex, const struct message_head *head, void *data);
    void (*on_body)(struct exchange *ex, const char *bytes, size_t len, void *data);
    /* The server asks for the body ("100 Continue"). */
    void (*on_continue)(struct exchange *ex, void *data);
    /* Once, and last: err->code is 0 if the whole answer came. The exchange
     * is gone afterwards.
     */
    void (*on_end)(struct exchange *ex, const struct aq_error *err, void *data);
    /* stream_body: exchange_get_queued() fell to zero after it had been above. */
    void (*on_drain)(struct exchange *ex, void *data);
};

/* Returns 0 or -EINVAL. Without an answer yet, an idempotent request on
 * a connection that was kept from before is tried once more on a new one, unless is_sent_once.
 */
int client_send(struct client *client, const struct client_request *request,
                const struct exchange_ops *ops, void *data, struct exchange **ret,
                struct aq_error *err);

/* stream_body: 0 or -EPIPE. */
int exchange_write(struct exchange *ex, const void *bytes, size_t len);
int exchange_finish(struct exchange *ex);
size_t exchange_get_queued(const struct exchange *ex);

/* Was it put on an open connection, so that the server may have begun with it? Also in on_end(). */
bool exchange_is_sent(const struct exchange *ex);

/* Stop and continue reading the answer. */
void exchange_pause(struct exchange *ex);
void exchange_resume(struct exchange *ex);

/* An end of a pump that is a struct exchange with stream_body: is put the body of the request, and
 * gives that of the answer.
 */
extern const struct pump_ops exchange_pump;

/* Break off; neither on_end() nor the client_done_fn is called. The exchange is
 * gone. NULL is fine.
 */
void exchange_cancel(struct exchange *ex);

/* In on_head() with status 101: take over the connection. The stream is the
 * caller's to close; the exchange is gone without on_end(). Bytes that came
 * already are given to ops->on_read() from the loop.
 */
struct stream *exchange_upgrade(struct exchange *ex, const struct stream_ops *ops, void *data);

/* ---- whole answers ---- */

struct client_response {
    const struct message_head *head;
    const char *body; /* NUL-terminated */
    size_t body_len;
};

/* 'response' is NULL if 'err' has a code; both are borrowed for the call. */
typedef void client_done_fn(void *data, const struct client_response *response,
                            const struct aq_error *err);

/* client_send() that collects the answer (within body_max). */
int client_fetch(struct client *client, const struct client_request *request,
                 client_done_fn *on_done, void *data, struct exchange **ret, struct aq_error *err);

#endif
