/* SPDX-License-Identifier: Apache-2.0 */
/* forward.h - ports of this machine, whose connections are tunnels into a session
 *
 * A connection that fails is told on standard error, and the others go on. So many are open at a
 * time; more wait until one of them ends.
 */
#ifndef AQ_CLI_TUNNEL_FORWARD_H
#define AQ_CLI_TUNNEL_FORWARD_H

#include "cli/tunnel/tunnel.h"

#define FORWARD_PORTS_MAX 32
#define FORWARD_CONNECTIONS_MAX 32 /* of them each is a process in the container */

struct forward_port {
    uint16_t local; /* 0 = any free one; then the one that it is */
    uint16_t remote;
};

struct forward_job {
    struct cli *cli;
    struct follow_session session;
    const char *app;     /* whose ports they are, and which is started if need be; NULL = none */
    const char *address; /* to listen on: a literal, or "localhost" */
    struct forward_port ports[FORWARD_PORTS_MAX];
    size_t count;
    /* It listens on all; a failure ends it. May be NULL. */
    int (*on_ready)(void *data, struct aq_error *err);
    void *data;
};

/* Until SIGINT, SIGTERM or SIGHUP, which is 0; -ENOENT when the session has ended; -EADDRINUSE
 * and others of listening.
 */
int forward_run(struct forward_job *job, struct aq_error *err);

#endif
