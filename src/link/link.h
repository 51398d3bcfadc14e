/* SPDX-License-Identifier: Apache-2.0 */
/* link.h - the connection between the manager that leads and its agents
 *
 * Here an agent is each program that connects to a manager: an agent, a front
 * daemon, another manager. It connects out: TLS 1.3, both sides show certificates
 * of the cluster's authority (pki.h). It looks for the leader among the managers
 * that it knows, and follows none of an epoch lower than it has followed. One
 * control connection per agent carries
 * frames: 4 bytes length of the rest, 8 bytes seq, 8 bytes ack (big endian),
 * then the JSON text of a message (message.h); at most LINK_FRAME_MAX bytes
 * after the length. seq counts reliable messages of one process from 1;
 * transient ones have 0; a frame without text only acknowledges and keeps
 * alive. Bulk data has a connection of its own per stream; the next stream may
 * take it over (link_stream.h).
 *
 * All calls and callbacks belong to the thread of the libuv loop. Messages
 * and texts given to a callback are borrowed for its duration. The program
 * ignores SIGPIPE.
 */
#ifndef AQ_LINK_LINK_H
#define AQ_LINK_LINK_H

#include <uv.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/pump.h"
#include "link/message.h"
#include "link/pki.h"

#define LINK_FRAME_MAX (4u << 20)
#define LINK_QUEUE_MAX_BYTES (64u << 20) /* unacknowledged, per peer */
#define LINK_PORT 8082
#define LINK_PING_USEC (3 * USEC_PER_SEC)
#define LINK_DEAD_USEC (10 * USEC_PER_SEC)        /* at the manager */
#define LINK_CLIENT_CUT_USEC (4 * USEC_PER_SEC)   /* without the manager's machine: decision 586 */
#define LINK_CLIENT_DEAD_USEC (15 * USEC_PER_SEC) /* at the agent: decision 558 */
#define LINK_NOT_LEADER "not-leader"              /* kind of a refusal */

/* ---- streams, on both sides ---- */

struct link_stream;

struct link_stream_ops {
    void (*on_open)(void *data, struct link_stream *stream); /* may be NULL */
    void (*on_data)(void *data, struct link_stream *stream, const char *bytes, size_t len);
    void (*on_drain)(void *data, struct link_stream *stream); /* all written bytes have left */
    /* The end, called exactly once unless link_stream_close() came first;
     * 'err' NULL = the peer finished. The stream is gone afterwards.
     */
    void (*on_close)(void *data, struct link_stream *stream, const struct aq_error *err);
};

/* Queue bytes. 0; 1 = queued, but wait for on_drain before writing more; -errno. */
int link_stream_write(struct link_stream *stream, const void *bytes, size_t len);
/* Stop and go on calling on_data; the peer is held back meanwhile. */
void link_stream_pause(struct link_stream *stream, bool paused);
/* stream_is_quiet() of its connection: false if the peer has said something or left. */
bool link_stream_is_quiet(const struct link_stream *stream);
/* Send what is queued, then close. No callback follows. NULL is fine. */
void link_stream_close(struct link_stream *stream);
const struct uuid *link_stream_id(const struct link_stream *stream);
/* An end of a pump that is a struct link_stream: open with on_open(). */
extern const struct pump_ops link_stream_pump;

/* ---- manager side ---- */

struct link_server;
struct link_join;
struct stream;
struct strbuf;

struct link_server_conf {
    uv_loop_t *loop;
    const char *host;        /* to listen on */
    uint16_t port;           /* 0 = any free one */
    struct pki_ca *ca;       /* borrowed for the server's life */
    const char *cert, *key;  /* PEM, of pki_issue_server() */
    struct uuid incarnation; /* of this manager process */
    int64_t ping_usec;       /* keep-alive interval; 0 = 3 s */
    int64_t dead_usec;       /* silence that ends a connection; 0 = 10 s */
    int64_t epoch;           /* of this manager as the leader; 0 = its store counts none */
};

struct link_server_ops {
    /* An agent with a valid certificate of this name greets. 0 accepts: a
     * connection of another incarnation of the same agent is then fenced.
     * -errno refuses with err->text ("refused" when err->kind is NULL); the
     * agent gives up unless *retry_usec was set. 'welcome' may be amended.
     * NULL accepts everyone.
     */
    int (*on_hello)(void *data, const struct msg_hello *hello, struct msg_welcome *welcome,
                    int64_t *retry_usec, struct aq_error *err);
    /* After welcome was sent: link_server_send() reaches this incarnation now. */
    void (*on_connected)(void *data, const char *agent_id, const struct uuid *incarnation);
    /* Acknowledged when it returns. Durability is the agent's: what the
     * manager loses is in the next inventory.
     */
    void (*on_message)(void *data, const char *agent_id, const struct message *msg);
    /* The connection ended; 'orderly' = the agent said bye. */
    void (*on_disconnected)(void *data, const char *agent_id, const struct uuid *incarnation,
                            bool orderly, const char *why);
    /* Someone wants to join. Answer now or later by exactly one of
     * link_join_accept() and link_join_refuse(). NULL refuses everyone.
     */
    void (*on_join)(void *data, struct link_join *join, const struct msg_join *msg);
    /* A connection with a certificate of another manager ("manager:NAME", which is 'peer') begins
     * with HTTP. The callee owns 'stream' and sets its callbacks before it returns; 'first' are the
     * bytes that were read, borrowed. NULL: it is closed.
     */
    void (*on_http)(void *data, struct stream *stream, struct strbuf *first, const char *peer);
};

int link_server_new(const struct link_server_conf *conf, const struct link_server_ops *ops,
                    void *data, struct link_server **ret, struct aq_error *err);
/* Close everything without callbacks; frees itself when the loop has closed its handles. */
void link_server_free(struct link_server *server);
AQ_DEFINE_CLEANUP(struct link_server, link_server_free)

uint16_t link_server_port(const struct link_server *server);
bool link_server_is_connected(const struct link_server *server, const char *agent_id);
/* When bytes came last from it, monotonic; 0 = none yet. */
int64_t link_server_heard_usec(const struct link_server *server, const char *agent_id);
/* The highest epoch of an agent that was refused because it follows a later one than ours, and who
 * that was last, valid while the server is; 0 = none was.
 */
int64_t link_server_get_ahead(const struct link_server *server, const char **ret_agent_id);
size_t link_server_connection_count(const struct link_server *server);

/* The managers of the cluster, copied, of which at most LINK_MANAGERS_MAX are kept: all that connect
 * are told, and those that are connected when the list has changed.
 */
void link_server_set_managers(struct link_server *server, const struct link_manager *list,
                              size_t count);

/* This manager does not lead: from now on every hello and join is refused as LINK_NOT_LEADER with
 * the address of the manager that does ("host:port", copied; NULL = not known), streams are closed,
 * and those that are connected are refused, too. May be called again with another leader.
 */
void link_server_redirect(struct link_server *server, const char *leader);

/* While the lease of this leader is in doubt: reliable messages are queued and none is sent,
 * orders that are transient fail with -ENOTCONN. Other messages go out: connections are kept alive.
 */
void link_server_hold(struct link_server *server, bool is_held);

/* Queue a message. Reliable ones wait for a reconnect of the same
 * incarnation and are dropped when another one connects; transient ones need
 * a connection (-ENOTCONN). -ENOTCONN too for an agent never seen, -ENOBUFS
 * past LINK_QUEUE_MAX_BYTES.
 */
int link_server_send(struct link_server *server, const char *agent_id, const struct message *msg,
                     struct aq_error *err);

/* Drop the agent's connection and queue; with a text it is told why and gives up. */
void link_server_drop(struct link_server *server, const char *agent_id, const char *text);

/* Ask the agent for a stream; stream_id and key of 'open' are filled in here.
 * on_open comes when the agent has connected, else on_close with -ETIMEDOUT,
 * -ENOTCONN or what the agent answered.
 */
int link_server_open_stream(struct link_server *server, const char *agent_id,
                            struct msg_stream_open *open, const struct link_stream_ops *ops,
                            void *data, struct link_stream **ret, struct aq_error *err);

/* What a manager is given in place of a certificate: PEM, hexadecimal, URI (see struct msg_joined).
 * For ret_keys of link_join_request() they are allocated, and link_join_keys_done() wipes them.
 */
struct link_join_keys {
    char *ca_key, *seal_key, *database;
};
void link_join_keys_done(struct link_join_keys *keys);

/* Send the certificate that pki_issue_agent() made for msg->csr; the caller
 * has recorded it, so that it can be revoked. A manager gets 'keys' instead;
 * NULL for all others. 'note' is shown to who runs the join; NULL = nothing.
 */
void link_join_accept(struct link_join *join, const char *cert, const struct link_join_keys *keys,
                      const char *note);
/* Does the connection come from this machine? */
bool link_join_is_local(const struct link_join *join);
void link_join_refuse(struct link_join *join, const char *kind, const char *text);

/* ---- agent side ---- */

struct link_client;

struct link_client_conf {
    uv_loop_t *loop;
    const char *const *addresses; /* of managers, "host[:port]", copied; one at least */
    size_t address_count;
    bool is_fixed; /* an administrator chose these: managers named by a leader are not tried, except
                      the leader to which a refusal points */
    int64_t epoch; /* the highest that was followed; 0 = none */
    const char *ca, *cert, *key; /* PEM */
    const char *agent_id;
    struct uuid incarnation;
    int64_t ping_usec, dead_usec;           /* 0 = 3 s, 15 s */
    int64_t retry_min_usec, retry_max_usec; /* jittered pause after all addresses were tried; 0 =
                                               200 ms; 10 s, of several addresses 2 s */
};

struct link_client_ops {
    /* Fill in what the link does not know (slots, devices, version ...); borrowed
     * until the callback's return is used, before the next callback.
     */
    void (*on_greet)(void *data, struct msg_hello *hello);
    /* A leader of a higher epoch than any before: make it durable; only then it is followed.
     * -errno: it is not followed, and tried again later. NULL = kept in memory alone.
     */
    int (*on_epoch)(void *data, int64_t epoch);
    /* The managers of the cluster have changed, to be kept for the next start; NULL = unused. */
    void (*on_managers)(void *data, const struct link_manager *list, size_t count);
    void (*on_connected)(void *data, const struct msg_welcome *welcome);
    /* A message; reliable ones (seq > 0) come in order, once. The manager
     * keeps them until link_client_ack(); so MSG_UNKNOWN wants one, too, as
     * which an order of a lower epoch comes.
     */
    void (*on_message)(void *data, uint64_t seq, const struct message *msg);
    void (*on_disconnected)(void *data, const char *why); /* also after a failed try */
    /* Fenced, revoked or refused for good: the client has stopped. */
    void (*on_refused)(void *data, const char *kind, const char *text);
};

int link_client_new(const struct link_client_conf *conf, const struct link_client_ops *ops,
                    void *data, struct link_client **ret, struct aq_error *err);
/* Say bye if connected and close without callbacks. */
void link_client_free(struct link_client *client);
AQ_DEFINE_CLEANUP(struct link_client, link_client_free)

bool link_client_is_connected(const struct link_client *client);
/* Of the manager that welcomed it last, or that is tried. Valid until the next callback. */
const char *link_client_address(const struct link_client *client);
int link_client_send(struct link_client *client, const struct message *msg, struct aq_error *err);
/* All messages up to 'seq' are durable. */
void link_client_ack(struct link_client *client, uint64_t seq);

/* Serve a stream.open: connects, presents the key, then as on the other side. */
int link_client_open_stream(struct link_client *client, const struct msg_stream_open *open,
                            const struct link_stream_ops *ops, void *data, struct link_stream **ret,
                            struct aq_error *err);

/* Blocking, with a loop of its own: show the token to the manager at 'address'
 * ("host[:port]"), whose authority must have the token's fingerprint, or to the leader
 * to which it points, and get a certificate for msg->csr; a manager gets no certificate
 * (*ret_cert is NULL) and 'ret_keys', which is NULL for all others. Caller frees all texts;
 * ret_address is that of the manager that answered.
 */
int link_join_request(const char *address, const struct pki_token *token,
                      const struct msg_join *msg, int64_t timeout_usec, char **ret_cert,
                      char **ret_ca, char **ret_address, struct link_join_keys *ret_keys,
                      struct aq_error *err);

#endif
