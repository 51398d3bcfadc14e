/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the HTTP server of a front daemon: where it listens, GET /health, and its orderly end
 *
 * Loop's thread only. A zeroed one can be closed.
 */
#ifndef AQ_FRONT_SERVER_H
#define AQ_FRONT_SERVER_H

#include "base/host_port.h"
#include "front/program.h"
#include "http/server.h"

struct front_server {
    struct front *front;
    struct router
        *router; /* routes are added between front_server_init() and front_server_open() */
    struct server *server;
    void (*on_stopped)(void *self);
    bool is_draining, is_closing;
    bool has_stopped; /* no connection is left */
};

/* Make the router, whose first route is GET /health. */
int front_server_init(struct front_server *server, struct front *front, struct aq_error *err);

/* Listen at the address of the settings; 'options' needs neither router nor the number of
 * connections. on_stopped(front->self) follows once after front_server_drain() or
 * front_server_close().
 */
int front_server_open(struct front_server *server, struct server_options *options,
                      void (*on_stopped)(void *self), struct aq_error *err);

/* For front_type.drain(): requests under way may end, then front_drained() follows. */
void front_server_drain(struct front_server *server);

/* For front_type.close(): all connections are cut. */
void front_server_close(struct front_server *server);

/* It was closed, and no connection is left: once all requests have ended, too, it can be freed. */
bool front_server_has_ended(const struct front_server *server);
void front_server_done(struct front_server *server);

/* The address of the settings; 'buf' holds it. */
struct listener_options front_listener_options(const struct front *front, char buf[HOST_PORT_MAX]);

/* The JSON of /health and the like. */
void front_write_state(const struct front *front, const char *state, struct strbuf *out);
/* That of /health; returns the status of the reply. */
int front_write_health(const struct front *front, struct strbuf *out);

#endif
