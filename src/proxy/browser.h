/* SPDX-License-Identifier: Apache-2.0 */
/* browser.h - one connection of a browser from the inside: browser.c reads its request and passes
 * on, control.c answers what is for the proxy itself
 */
#ifndef AQ_PROXY_BROWSER_H
#define AQ_PROXY_BROWSER_H

#include "base/pump.h"
#include "http/defer.h"
#include "http/message.h"
#include "proxy/place.h"
#include "proxy/proxy.h"

struct browser {
    struct list link;
    struct proxy *proxy;
    struct stream *stream;
    struct message_parser *request, *answer; /* answer: NULL before the app is connected */
    struct defer *timer;
    struct place place;
    struct cookie cookie;
    struct pump pump;        /* stream and app */
    struct manager_ask *ask; /* under way */
    struct link_stream *app;
    bool has_head, is_request_read; /* the request's */
    bool is_page;                   /* a person looks at it: it may come again by itself */
    bool is_upgraded;               /* bytes both ways from here on */
    bool is_answered;               /* at least begun */
    bool is_ending;                 /* what is queued goes out, then it is closed */
};

/* The whole answer, and the end of the connection. 'headers' are lines with CRLF, or "". */
void browser_reply(struct browser *b, int status, const char *headers, const char *type,
                   const char *body);
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
