/* SPDX-License-Identifier: Apache-2.0 */
/* browser.h - one connection of a browser from the inside: browser.c reads its requests one after
 * the other, app.c passes them on and takes the answers, control.c answers what is for the proxy
 * itself, reply.c writes what the proxy says
 */
#ifndef AQ_PROXY_BROWSER_H
#define AQ_PROXY_BROWSER_H

#include "base/pump.h"
#include "http/defer.h"
#include "http/message.h"
#include "proxy/app_link.h"
#include "proxy/place.h"
#include "proxy/port.h"

/* One request and its answer. */
struct browser_turn {
    bool has_head, is_read; /* the request's; is_read = all of it */
    bool is_page;           /* a person looks at it: it may come again by itself */
    bool is_passed;         /* it is the app's */
    bool is_kept;           /* the connection outlives it */
    bool is_shared;         /* to a model service, with its token: pages of any origin may read the
                               answer, unless the replica allows one alone */
    bool is_answered;       /* at least begun */
    bool is_whole;          /* the answer */
};

struct browser {
    struct list link;                  /* proxy.browsers */
    struct list waiting_link;          /* proxy.waiting[], or nowhere */
    uint64_t waits_since;              /* uv_now() */
    struct client_share *share, *user; /* connections.h */
    struct proxy *proxy;
    struct stream *stream;
    struct port *port; /* by which it came; NULL = the proxy's own */
    struct message_parser *request,
        *answer; /* NULL once upgraded; answer: before an app is asked */
    struct defer *timer;
    struct place place;
    struct cookie cookie;
    struct browser_turn turn;
    struct pump pump;         /* stream and app */
    struct manager_ask *ask;  /* a token is redeemed */
    struct app_link *opening; /* to the app, under way */
    struct app_link *app;
    struct call *call;    /* to a model service, under way: serving.h */
    struct cookie app_of; /* for whom 'app' is */
    struct strbuf again;  /* the request, if it may be sent twice; else empty */
    bool is_app_lasting;  /* that app has been seen to answer twice on one stream */
    bool is_app_used;     /* it has answered before */
    bool has_right;       /* to some app: it has shown a good cookie */
    bool is_upgraded;     /* bytes both ways from here on */
    bool is_flushing;     /* the turn is over, but its answer is still queued: nothing is read */
    bool is_ending;       /* what is queued goes out, then it is closed */
    bool is_watched;      /* 'timer' is browser_watch()'s */
    uint64_t sent;        /* watched: stream_sent() at the last look */
    unsigned still_msec;  /* watched: for so long it has not changed */
};

extern const struct message_limits browser_limits; /* of requests and answers */

void browser_free(struct browser *b);
/* What is queued goes out, then the connection ends. */
void browser_end(struct browser *b);
/* After 'msec', in place of what was to come before. */
void browser_wait(struct browser *b, unsigned msec, void (*fn)(void *data));
/* The connection is dropped if the client takes none of what is queued for 30 s. Reading from the
 * client does not change that time.
 */
void browser_watch(struct browser *b);
void browser_stop_watch(struct browser *b);
/* The browser is read again, unless the app takes no more or an answer is still queued. */
void browser_go_on(struct browser *b);
/* If this turn's request and answer are over, the next one's begins once the client has taken the
 * answer, or the connection ends.
 */
void browser_settle(struct browser *b);

/* ---- app.c ---- */

/* Bytes of the app or replica, and the end of its connection; 'err' NULL = in order. Either may free the
 * browser.
 */
void app_take(struct browser *b, const char *bytes, size_t len);
void app_on_end(struct browser *b, const struct aq_error *err);
/* Its connection is not asked any more; another can be joined to the pump. */
void app_part(struct browser *b);
/* The parser of answers is there. */
void app_expect_answer(struct browser *b);
/* Pass the request on, of which this is the head. */
void app_ask(struct browser *b, const struct message_head *head);
/* Bytes of the request as they came, of which it is known that they are its own. */
int app_give(struct browser *b, const char *bytes, size_t len);
/* No app is connected or asked for any more. */
void app_drop(struct browser *b);
/* Nothing is to come from it, or go to it, for the time being. */
bool app_is_idle(const struct browser *b);

/* ---- reply.c ---- */

/* The whole answer. 'headers' are lines with CRLF, or ""; 'type' NULL = there is no body. */
void browser_reply(struct browser *b, int status, const char *headers, const char *type,
                   const char *body);
/* A page that says 'text'. */
void browser_show(struct browser *b, int status, const char *headers, const char *text);
/* A page for a person, a problem document for a program. */
void browser_refuse(struct browser *b, int status, const char *text);
/* The same by an error's code. */
void browser_fail(struct browser *b, const struct aq_error *err);

/* ---- control.c ---- */

/* Answer a request whose target is the proxy's own. */
void control_serve(struct browser *b, const struct message_head *head);
/* Is it the address at which tokens become cookies? */
bool control_is_setup(const char *target);

#endif
