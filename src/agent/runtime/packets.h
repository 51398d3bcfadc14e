/* SPDX-License-Identifier: Apache-2.0 */
/* packets.h - one connection to a monitor, on the loop
 *
 * Frees itself when the loop has closed its handle, some time after
 * packets_close().
 */
#ifndef AQ_AGENT_RUNTIME_PACKETS_H
#define AQ_AGENT_RUNTIME_PACKETS_H

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "monitor/protocol.h"

struct packets;

/* One packet, or len 0: the other side has gone; then packets_close(). */
typedef void packets_fn(void *data, const char *packet, size_t len);

/* Read from a connected socket, which becomes the connection's (it is closed
 * on failure too).
 */
int packets_new(uv_loop_t *loop, int fd, packets_fn *on_packet, void *data, struct packets **ret,
                struct aq_error *err);

/* Connect to FOLDER/monitor.sock; a socket, or -errno (-ECONNREFUSED, -ENOENT:
 * nobody is there).
 */
int packets_connect(const char *directory, struct aq_error *err);

/* The same to another socket of the directory. What comes says who sent it (base/sender.h). */
int packets_connect_to(const char *directory, const char *name, struct aq_error *err);

/* 0, or -errno: what a monitor does not take at once is lost. */
int packets_send(struct packets *packets, const void *packet, size_t len);

/* MONITOR_KEEP on a socket to a monitor, which gets descriptors of its own. 0 or -errno. */
int packets_send_kept(int socket, const int kept[MONITOR_KEPT]);

/* No callback follows. NULL is fine. */
void packets_close(struct packets *packets);

#endif
