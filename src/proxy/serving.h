/* SPDX-License-Identifier: Apache-2.0 */
/* serving.h - model services, as the rest of the proxy sees them: src/proxy/serving has the code
 *
 * The manager sends which services there are, by which tokens they may be asked, and which replicas
 * take requests (serving.routes). The proxy keeps this in the file "services", so that it serves while
 * the manager is away, also after a restart. A request is a struct call of its browser's connection.
 *
 * Loop's thread only.
 */
#ifndef AQ_PROXY_SERVING_H
#define AQ_PROXY_SERVING_H

#include "base/strbuf.h"
#include "http/message.h"
#include "link/message.h"

struct browser;
struct call;
struct proxy;
struct serving;

/* Reads the file. After routes_new() and manager_init(). */
struct serving *serving_new(struct proxy *proxy);
void serving_free(struct serving *serving); /* after the last browser; NULL is fine */

void serving_on_connected(struct serving *serving);
void serving_on_routes(struct serving *serving, const struct msg_serving_routes *routes);
void serving_write_metrics(const struct serving *serving, struct strbuf *out);

/* ---- a request, for browser.c and app.c ---- */

/* Answer the request with this head, whose place is a service's: browser.call is set, or the request
 * was refused.
 */
void call_begin(struct browser *b, const struct message_head *head);
/* Bytes of the request as they came, which are this piece. Also called without bytes for its end. The
 * browser is not freed within. As app_give().
 */
int call_give(struct call *call, const char *bytes, size_t len, const struct message_piece *piece);
/* Chunks were given that are passed on together, after the last of what was read at once. Likewise. */
int call_flush(struct call *call);
/* The browser has no call any more: whatever it was waiting for is called off. */
void call_drop(struct browser *b);

/* The head of the answer; 'out' ends with what the client gets of it. */
void call_on_head(struct call *call, const struct message_head *head, struct strbuf *out);
/* A piece of the answer's body, without framing. */
void call_on_body(struct call *call, const char *bytes, size_t len);
/* The answer is whole; its connection can serve another request if it 'is_lasting'. The call is
 * gone.
 */
void call_on_answered(struct call *call, bool is_lasting);
/* The connection ended, or sent what is not HTTP, before an answer. The request is sent again, or
 * refused.
 */
void call_on_unanswered(struct call *call);
/* An answer has begun and breaks off: the client's connection is about to be cut. */
void call_on_broken(struct call *call);

#endif
