/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - passes requests on from a manager that does not lead to the one that does
 *
 * All methods and paths are passed on, with bodies, answers, event streams and WebSockets, at the
 * pace of the slower side. They go to the leader's link port by TLS with this manager's
 * certificate, where server_adopt() takes them. While no leader is known, requests are held.
 *
 * A request whose leader is lost before it answers is sent to the next leader if repeating it is
 * safe: nothing of its body was sent, or it only reads (GET, HEAD, OPTIONS), or the manager keeps
 * its answer (Idempotency-Key, or a row of 'answered_once') and its body has at most 512 KiB. Any
 * other is answered 502, as the lost leader may have processed it. An event stream ends with its
 * leader; a WebSocket is closed with code 1012.
 *
 * Called on the loop's thread only. There are no callbacks to the caller.
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
    /* Requests that this manager answers itself; NULL = none. forward_new() sets its fallback. It
     * must outlive all requests.
     */
    struct router *router;
    /* Routes whose answer the leader keeps, so that a repeated request with the same signature gets
     * the same answer; NULL = none. Borrowed.
     */
    const struct router *answered_once;
    struct address_list proxies; /* trusted, each with the requests of many clients. Borrowed */
    unsigned hold_msec;          /* for which a request waits for a leader; 0 = 30,000 */
    size_t hold_max;             /* requests that wait at a time; 0 = 2000 */
};

/* Starts without a leader. The server and the objects that the options name must outlive it. */
struct forward *forward_new(const struct forward_options *options);

/* The app that passes all requests on: server_set_app(server, forward_get_app()). */
const struct server_app *forward_get_app(const struct forward *forward);

/* 'link' is "host:port" of the leader's link port, and is copied; NULL = no manager leads. Requests
 * that wait are sent. If the address differs from the former one, unanswered requests go to the new
 * leader or fail, answers that have begun may finish within 5 s, and event streams and WebSockets
 * end.
 */
void forward_set_leader(struct forward *forward, const char *link);

/* This manager leads: requests that wait, and those that can be repeated, go to the server's
 * present app. A later forward_set_leader() passes requests on again.
 */
void forward_release(struct forward *forward);

/* Cuts the remaining requests. The loop must run once more. NULL is allowed. */
void forward_free(struct forward *forward);

#endif
