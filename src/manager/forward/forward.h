/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - requests to a manager that does not lead, passed on to the one that does
 *
 * All methods and paths, bodies, answers, event streams and WebSockets, as they come and at the
 * pace of the slower side. They go to the leader's link port, in TLS with this manager's
 * certificate, where server_adopt() takes them. While no leader is known they are held.
 *
 * A request whose leader is lost before it answers goes to the next leader if that does no harm: if
 * nothing of its body was sent yet, if it reads only (GET, HEAD, OPTIONS), or if the manager keeps
 * its answer (Idempotency-Key, or a row of 'answered_once') and its body has 512 KiB at most. Any
 * other is answered 502, as it may have been done. An event stream ends with its leader, a
 * WebSocket is closed with 1012.
 *
 * Loop's thread only. Nothing here calls the caller back.
 */
#ifndef AQ_MANAGER_FORWARD_H
#define AQ_MANAGER_FORWARD_H

#include "http/client_address.h"
#include "http/server.h"
#include "http/tls.h"

struct forward;

struct forward_options {
    uv_loop_t *loop;
    struct server *server;
    struct tls_context *tls; /* of a client, with the manager's certificate and any_name */
    /* What this manager answers itself; NULL = nothing. Its fallback becomes ours. It must outlive
     * all requests.
     */
    struct router *router;
    /* Requests of these rows are answered as before if they are sent again with the same signature;
     * NULL = none. Borrowed.
     */
    const struct router *answered_once;
    struct address_list proxies; /* trusted: their connections are many clients'. Borrowed */
    unsigned hold_msec;          /* a request waits for a leader; 0 = 30,000 */
    size_t hold_max;             /* so many wait; 0 = 2000 */
};

/* No leader is known. The server and what the options name must outlive it. */
struct forward *forward_new(const struct forward_options *options);

/* After server_set_app(server, forward_get_app()) its requests come here. */
const struct server_app *forward_get_app(const struct forward *forward);

/* "host:port" of the leader's link port, which is copied; NULL = none leads. Requests that wait are
 * sent. With another address than before, requests without an answer go to the new leader, or fail;
 * answers that have begun may end within some seconds, event streams and WebSockets end.
 */
void forward_set_leader(struct forward *forward, const char *link);

/* This manager leads: requests that wait, and those that can be sent again, go to the app that the
 * server has now. forward_set_leader() takes that back.
 */
void forward_release(struct forward *forward);

/* All requests that are left are cut. Its handles are gone once the loop has run again. */
void forward_free(struct forward *forward);

#endif
