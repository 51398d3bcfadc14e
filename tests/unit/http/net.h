/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - a server on a real socket and what tests of it share */
#ifndef AQ_TESTS_HTTP_NET_H
#define AQ_TESTS_HTTP_NET_H

#include <errno.h>

#include "http/client.h"
#include "http/server.h"
#include "testing.h"

struct net {
    uv_loop_t loop;
    struct router *router;
    struct server *server;
    struct listener *listener;
    char base[64]; /* "http://127.0.0.1:port" */
    bool stopped;
};

#define RUN_UNTIL(net, cond)                         \
    do {                                             \
        while (!(cond))                              \
            (void)uv_run(&(net)->loop, UV_RUN_ONCE); \
    } while (0)

void net_up(struct net *net, const struct route *routes, size_t count, void *data,
            const struct server_limits *limits, const struct listener_options *listen);

void net_up_guarded(struct net *net, const struct route *routes, size_t count,
                    server_guard_fn *guard);

/* For server_stop(): what net_down() waits for. */
void net_on_stopped(void *data);

/* Every connection and request must be over afterwards. It may have been stopped before. */
void net_down(struct net *net);

/* ---- a client that says exactly what it is told ---- */

struct raw {
    struct stream *stream;
    struct strbuf got;
    bool open, ended;
};

void raw_open(struct raw *raw, struct net *net);

void raw_say(struct raw *raw, const char *text);

void raw_close(struct raw *raw);

/* ---- one answer ---- */

struct answer {
    bool done;
    int status;
    struct strbuf body;
    struct aq_error err;
};

void answer_take(void *data, const struct client_response *response, const struct aq_error *err);

#endif
