/* SPDX-License-Identifier: Apache-2.0 */
/* data.h - the agent's end of the data path: proxies reach apps in containers without the manager
 *
 * A proxy shows a ticket (link/ticket.h). The agent checks its signature, that it is for this agent
 * and this proxy, and that the kernel runs, then connects to the port in the container's network.
 *
 * On the same machine a proxy comes to a socket in the runtime directory and is handed the
 * connection itself (data_socket.c): its bytes do not pass the agent. From other machines it comes
 * by TLS, with the certificates of the cluster on both sides (data_server.c).
 *
 * Who has no ticket reaches no container, and costs little: connections that have not shown one are
 * few, short, and read in small pieces. Loop's thread only.
 */
#ifndef AQ_AGENT_DATA_DATA_H
#define AQ_AGENT_DATA_DATA_H

#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/uuid.h"

#define DATA_PORT 8083
#define DATA_PORTS 16      /* agents of one machine take the next ones */
#define DATA_FOLDER "data" /* of sockets, in the runtime directory */

struct data_path;

struct data_conf {
    uv_loop_t *loop;
    const char *agent_id;
    const char *ca, *cert, *key; /* PEM, of the cluster */
    const char *run;             /* the runtime directory */
    const char *user;    /* whom the socket admits besides root and the own user; NULL = none */
    const char *host;    /* TLS: the IP address to listen on; NULL = no TLS */
    uint16_t port;       /* 0 = the first free one from DATA_PORT on */
    const char *address; /* HOST:PORT for proxies; NULL = where it listens */
    /* The network namespace of the kernel's container; *ret is the caller's. -ESRCH, of the kind
     * "not-found", if it does not run here.
     */
    int (*open_network)(void *data, const struct uuid *kernel_id, int *ret, struct aq_error *err);
    void *data;
};

/* Texts are copied. The socket and TLS are tried apart: what fails is logged, and the manager remains
 * as the way. -EINVAL for unusable certificates.
 */
int data_path_new(const struct data_conf *conf, struct data_path **ret, struct aq_error *err);
/* Connections by TLS end; those that were handed over go on. NULL is fine. */
void data_path_free(struct data_path *path);

/* As msg_hello.data. Borrowed. */
const char *data_path_get_address(const struct data_path *path);

void data_path_write_metrics(const struct data_path *path, struct strbuf *out);

#endif
