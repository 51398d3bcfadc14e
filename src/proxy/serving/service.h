/* SPDX-License-Identifier: Apache-2.0 */
/* service.h - services (struct served), tokens, replicas and calls from the inside, for the files of
 * this directory
 *
 * table.c makes and changes services as the manager says; tokens.c lets requests in; queue.c has those
 * that wait; replica.c connects to replicas; call.c leads a request from the one to the other, and
 * answer.c its answer back; report.c tells the manager; refusal.c writes what the proxy says itself.
 *
 * Times are monotonic microseconds unless they say otherwise.
 */
#ifndef AQ_PROXY_SERVING_SERVICE_H
#define AQ_PROXY_SERVING_SERVICE_H

#include "base/list.h"
#include "base/log_budget.h"
#include "base/map.h"
#include "base/strbuf.h"
#include "link/message.h"
#include "model/model_service.h"
#include "proxy/app_link.h"
#include "proxy/browser.h"
#include "proxy/serving.h"
#include "serving/balance.h"
#include "serving/latency.h"
#include "serving/usage_scan.h"

#define SERVICE_NAME_ROOM (PLACE_SERVICE_MAX + 1)

struct serving {
    struct proxy *proxy;
    struct map services; /* id, 16 bytes -> struct served */
    struct map names;    /* in lower case -> struct served; only those of the routes in use */
    int64_t version;     /* of these */
    bool is_unsaved;
    int64_t saved_usec;
    struct defer *applied; /* writes the file, then confirms */
    struct defer *tick;    /* deadlines, idle connections, tickets */
    size_t ticks;
    struct defer *report; /* serving.use */
    int64_t reported_usec;
    struct log_budget log;
};

enum service_affinity { AFFINITY_NONE, AFFINITY_HEADER, AFFINITY_PROMPT };

/* How long answers took, and how long until their first byte, by serving/latency.h. */
struct service_latency {
    int64_t duration_usec, first_byte_usec; /* sums */
    int64_t durations[LATENCY_BUCKETS], first_bytes[LATENCY_BUCKETS];
};

struct service_totals { /* since the start of the proxy, for metrics */
    uint64_t requests, ok, client_errors, server_errors, refused, broken;
    uint64_t prompt_tokens, completion_tokens, cached_tokens;
    struct service_latency latency;
};

struct token {
    struct list link; /* service.tokens */
    struct uuid id;
    const struct msg_serving_token *said; /* NULL: revoked, or service.anyone */
    int64_t level;                        /* of the bucket, millionths of requests */
    int64_t filled_usec;
    int64_t budget, spent; /* OpenAI tokens: as the manager said last, and since */
    struct list waiting;   /* struct call, by arrival */
    size_t waiting_count;
    struct list turn_link;            /* service.turns, while some wait */
    size_t calls;                     /* that name it */
    struct msg_serving_token_use use; /* sums that are not reported yet */
};

struct replica {
    struct list link; /* service.replicas */
    struct served *service;
    struct uuid session_id;
    char short_id[9]; /* the first 8 digits, for people */
    size_t at;        /* in service.entries; BALANCE_NONE: it is not listed any more */
    struct list idle; /* struct conn, the latest last */
    size_t idle_count;
    bool keeps[2]; /* connections, after answers with a length and after those in chunks */
    size_t in_flight;
    int64_t revision;
    struct msg_serving_replica_use use; /* sums that are not reported yet, as those of 'latency' */
    struct service_latency latency;
    unsigned failed;            /* times in a row that it was ejected */
    unsigned errors;            /* answers in a row with a status of 500 or more */
    int64_t ejected_until_usec; /* 0 = it is not ejected */
    bool is_trial;              /* its ejection is over: one request shows */
    struct manager_ask *ask;    /* for a ticket */
    int64_t ask_usec;           /* not before */
};

struct served {
    struct serving *of;
    struct uuid id;
    struct message said; /* serving.routes with this service alone */
    const struct msg_serving_service *msg;
    bool is_listed;
    enum service_affinity affinity;
    const char *affinity_header;
    struct map hashes; /* of tokens, hexadecimal -> struct token */
    struct list tokens;
    struct token anyone;  /* who asks a public service without a token */
    struct list replicas; /* those listed in the order of 'entries', and those with calls */
    struct balance_replica *entries;
    struct replica **entry_replicas;
    size_t entry_count, turn;
    int64_t open_usec; /* since when some replica is open; 0 = none is */
    struct list calls;
    struct list turns; /* struct token: of the next call that is taken from the queue */
    size_t waiting_count, waiting_bytes, in_flight;
    bool is_serving;                    /* served_serve_queue() runs */
    struct msg_serving_service_use use; /* sums that are not reported yet */
    bool is_dirty;
    struct service_totals totals;
};

enum call_state {
    CALL_READS,    /* the beginning of the body is still to come */
    CALL_WAITS,    /* in the queue */
    CALL_CONNECTS, /* to its replica */
    CALL_SENT,     /* the request, as far as it is there */
};

struct call {
    struct list link; /* service.calls */
    struct browser *browser;
    struct served *service;
    struct token *token;
    struct list waiting_link; /* token.waiting */
    struct replica *replica;  /* NULL while it waits */
    struct conn *conn;
    enum call_state state;
    unsigned tries;
    bool has_key, is_resendable;
    bool is_fresh; /* it takes no connection that was used before */
    bool was_used; /* its connection was */
    uint64_t key;
    struct strbuf again;  /* one that is resendable, as far as it has come */
    struct strbuf chunks; /* that were read and are not passed on yet */
    struct strbuf scan;   /* the beginning of the body, for its key */
    size_t scan_next;     /* look at so many bytes */
    size_t queued_bytes;  /* counted in service.waiting_bytes */
    int status;           /* of the answer; 0 = none yet */
    int64_t begun_usec, queued_usec, sent_usec;
    int64_t awaited_usec; /* since when the rest of the body is awaited of the client */
    int64_t sent_bytes;   /* of the body, since then */
    int64_t first_usec; /* of the body's first byte, or of the head without a body; 0 = none yet */
    bool has_body;
    int64_t queue_usec,
        start_usec;     /* how long it waited for a slot, and for a replica to be there */
    int64_t moved_usec; /* when bytes of it came last, either way */
    struct usage_scan usage;
};

/* ---- table.c ---- */

struct served *serving_find(const struct serving *serving, const char *name);
void serving_apply(struct serving *serving, const struct msg_serving_routes *routes);
void served_free(struct served *service); /* without calls */
/* How long requests wait, how many and how many bytes, with defaults in place of 0. */
int64_t served_queue_usec(const struct served *service);
size_t served_queue_max(const struct served *service);
size_t served_queue_bytes(const struct served *service);

/* ---- tokens.c ---- */

/* The token of this request; NULL: it was refused. */
struct token *token_admit(struct browser *b, struct served *service,
                          const struct message_head *head);
struct token *token_new(const struct uuid *id);
void token_free(struct token *token);

/* ---- queue.c ---- */

/* False: it was refused, as too many wait. */
bool queue_add(struct call *call);
void queue_remove(struct call *call);
/* The same as its turn has come: the token's next call waits until the others had theirs. */
void queue_take(struct call *call);
/* Whose turn it is; NULL = none waits. */
struct call *queue_next(const struct served *service);
/* More of its body has come. */
void queue_grow(struct call *call, size_t len);

/* ---- replica.c ---- */

struct conn;

struct replica *replica_new(struct served *service, const struct uuid *session_id);
void replica_free(struct replica *replica); /* without calls */
/* Its entry says whether it is open, from what the manager said and how it did. */
void replica_update(struct replica *replica, int64_t now);
void replica_count(struct replica *replica, int by);
/* It could not be reached, or reset a connection. */
void replica_failed(struct replica *replica);
/* The head of an answer came, with this status. */
void replica_answered(struct replica *replica, int status);
void replica_ask_ticket(struct replica *replica, int64_t now);
void replica_close_idle(struct replica *replica,
                        int64_t now); /* those that have been so too long */

/* A connection for the call: call->conn is set. 1: it is there; 0: call_on_connected() or
 * call_on_unconnected() follows; -errno.
 */
int conn_take(struct replica *replica, struct call *call, struct aq_error *err);
struct app_link *conn_link(const struct conn *conn);
/* It serves another request within 'keep_usec' after this answer, or not at all. */
void conn_give_back(struct conn *conn, const struct message_head *answer, int64_t keep_usec);
/* A connection that was used before has brought another answer. */
void conn_note_kept(struct conn *conn);
void conn_close(struct conn *conn);

/* ---- call.c ---- */

void call_on_connected(struct call *call);
void call_on_unconnected(struct call *call, const struct aq_error *err);
/* No more is done for it; browser.call is NULL. Replicas have room for others. */
void call_end(struct call *call);
/* End it, and answer its client. As serving_refuse(). */
void call_refuse(struct call *call, int status, const char *code, unsigned retry_sec,
                 const char *text);
/* Count what the answer's usage said so far, in the end. */
void call_count_tokens(struct call *call);
/* Count an answer by its status. */
void call_count_answer(struct call *call);
/* Send those that wait, as long as there is room. */
void served_serve_queue(struct served *service);
void served_check_calls(struct served *service, int64_t now); /* their deadlines */

/* ---- refusal.c ---- */

/* A problem document that is an error of OpenAI's API, too. retry_sec 0 = no Retry-After. */
void serving_refuse(struct browser *b, int status, const char *code, unsigned retry_sec,
                    const char *text);

/* Count a request that is answered 429 or 503. 'token': whose it is. */
void served_count_refused(struct served *service, struct token *token);

/* ---- report.c ---- */

/* Something that serving.use says has changed; 'at_once': it is sent now. */
void served_report(struct served *service, bool at_once);
/* Something was counted that the manager has not got. */
bool replica_has_news(const struct replica *replica);
void serving_send_use(struct serving *serving);

#endif
