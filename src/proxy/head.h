/* SPDX-License-Identifier: Apache-2.0 */
/* head.h - heads of requests and answers as they are passed on
 *
 * Headers of one connection stay on it: how long it is kept, each side is told by its own.
 */
#ifndef AQ_PROXY_HEAD_H
#define AQ_PROXY_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "http/message.h"
#include "proxy/place.h"

struct head_origin {
    const char *address; /* of the browser */
    bool is_tls;
    bool is_plain; /* the answer is read in passing: the server is not asked to compress it */
};

/* Does the request ask to leave HTTP/1.1, in a way that is passed on? A model service only for
 * WebSockets: after an upgrade to HTTP/2 the client could send requests that nobody checks.
 */
bool head_is_upgrade(const struct message_head *head, const struct place *place) AQ_UNTRUSTED;

/* Does a page of another origin ask for what it must not, whatever the cookie says? A WebSocket, of
 * which browsers leave it to the server who may open it, or a change. 'url' is the proxy's own, as
 * a server in front of it may have changed Host.
 */
bool head_is_foreign(const struct message_head *head, const char *url) AQ_UNTRUSTED;

/* To the app or service: its own target, without what lets a browser in, or a client ask a service,
 * and X-Forwarded-* of ours alone.
 */
void head_write_request(const struct message_head *head, const struct place *place,
                        const struct head_origin *origin, struct strbuf *out);

/* To the browser, whose connection is kept or not. By a path, targets and cookies of the app are
 * moved beneath it; such cookies an app cannot set.
 */
void head_write_answer(const struct message_head *head, const struct place *place, bool is_kept,
                       struct strbuf *out);

/* How long the sender keeps the connection without a request, as its Keep-Alive header says: at most an
 * hour; -1 = it does not say.
 */
int64_t head_keep_usec(const struct message_head *head) AQ_UNTRUSTED;

#endif
