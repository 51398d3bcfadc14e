/* SPDX-License-Identifier: Apache-2.0 */
/* app_socket.h - a TCP connection to a port of 127.0.0.1 in a container's network, from outside
 *
 * The socket is made in the container's network namespace and stays there; nothing runs in the
 * container for it. Loop's thread only.
 */
#ifndef AQ_AGENT_DATA_APP_SOCKET_H
#define AQ_AGENT_DATA_APP_SOCKET_H

#include <sys/types.h>
#include <uv.h>

#include "base/error.h"
#include "base/uuid.h"

struct app_socket;

/* 'fd' is connected and the callee's, or it is -1 and 'err' says why: of the kinds "not-listening"
 * (nobody accepts on this port) and "connect-failed". The app_socket is gone.
 */
typedef void app_socket_fn(void *data, int fd, const struct aq_error *err);

/* 'ns' is the container's network namespace, and stays the caller's; -1 = the agent's own, for
 * processes of the node. The callback comes later.
 */
int app_socket_connect(uv_loop_t *loop, int ns, uint16_t port, app_socket_fn *fn, void *data,
                       struct app_socket **ret, struct aq_error *err);

/* The network namespace of a kernel's container, of which 'keeper' is a process, or the OCI runtime
 * that started it. *ret is the caller's. -ESRCH, of the kind "not-found", if the process has ended or
 * is none of the kernel's. Where containers have the node's network, it is the node's, which the
 * session's own programs reach as well.
 */
int app_socket_open_network(pid_t keeper, const struct uuid *kernel_id, int *ret,
                            struct aq_error *err);

/* No callback follows. NULL is fine. */
void app_socket_cancel(struct app_socket *socket);

#endif
