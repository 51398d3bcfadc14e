/* SPDX-License-Identifier: Apache-2.0 */
/* runner_wire.h - one connection to aliquot-runner, or a monitor: whole packets, none lost */
#ifndef AQ_AGENT_RUNTIME_RUNNER_WIRE_H
#define AQ_AGENT_RUNTIME_RUNNER_WIRE_H

#include <stdbool.h>
#include <uv.h>

#include "base/error.h"
#include "runner/protocol.h"

struct runner_wire;

struct runner_wire_ops {
    /* One packet, or len 0: the other side has gone; then runner_wire_close(). */
    void (*on_packet)(void *data, const char *packet, size_t len);
    void (*on_drain)(void *data); /* all that was queued has been taken */
};

/* To 'socket', a name in the directory, whose packets have 'piece_max' bytes besides their type,
 * RUNNER_OUTPUT_MAX at most. Only a child of 'keeper' is listened to; 0 = anybody.
 * -ENOTCONN if nobody listens there.
 */
int runner_wire_open(uv_loop_t *loop, const char *directory, const char *socket, pid_t keeper,
                     size_t piece_max, const struct runner_wire_ops *ops, void *data,
                     struct runner_wire **ret, struct aq_error *err);

/* A packet of a type byte and 'len' bytes, or of a whole struct. 0; 1 = it is
 * queued: on_drain() follows; -ENOBUFS if more than a MiB is queued already; -EPIPE.
 */
int runner_wire_send_bytes(struct runner_wire *wire, char type, const char *bytes, size_t len);
int runner_wire_send(struct runner_wire *wire, const void *packet, size_t len);

void runner_wire_pause(struct runner_wire *wire, bool paused);

/* No callback follows; it frees itself when the loop has closed its handle. */
void runner_wire_close(struct runner_wire *wire);

#endif
