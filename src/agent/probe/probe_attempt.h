/* SPDX-License-Identifier: Apache-2.0 */
/* probe_attempt.h - one probe: a connection to a port and, with a path, a GET of it
 *
 * A probe costs a socket, at most 16 KiB of memory and its timeout, whatever the program answers. It
 * follows no redirect. Loop's thread only.
 */
#ifndef AQ_AGENT_PROBE_PROBE_ATTEMPT_H
#define AQ_AGENT_PROBE_PROBE_ATTEMPT_H

#include <uv.h>

#include "agent/probe/probe_state.h"
#include "base/error.h"

struct probe_attempt;

struct probe_target {
    uint16_t port;    /* of 127.0.0.1 */
    const char *path; /* NULL = a connection that is accepted, and not closed at once, will do */
    int status;       /* that is expected */
    int64_t timeout_usec;
};

/* What was found; 'text' says it to people, and is NULL of PROBE_GOOD. The attempt is gone. */
typedef void probe_attempt_fn(void *data, enum probe_outcome outcome, const char *text);

/* Begin; 'ns' is the network namespace, -1 = the agent's own, and stays the caller's. 'target' is
 * borrowed until the callback, which comes later. -errno if the node has no socket for it.
 */
int probe_attempt_start(uv_loop_t *loop, int ns, const struct probe_target *target,
                        probe_attempt_fn *fn, void *data, struct probe_attempt **ret,
                        struct aq_error *err) AQ_UNTRUSTED;

/* No callback follows. NULL is fine. */
void probe_attempt_cancel(struct probe_attempt *attempt);

#endif
