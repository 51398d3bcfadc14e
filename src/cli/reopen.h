/* SPDX-License-Identifier: Apache-2.0 */
/* reopen.h - to open a WebSocket again that a manager has not opened, or has lost
 *
 * The cluster has another manager that leads within seconds, or the same one again. Loop's thread only.
 */
#ifndef AQ_CLI_REOPEN_H
#define AQ_CLI_REOPEN_H

#include "cli/cli.h"
#include "http/defer.h"

struct reopen {
    struct defer *timer; /* NULL = none runs */
    void (*fn)(void *data);
    void *data;
    int64_t since_usec; /* monotonic: of the first failure; 0 = none since reopen_done() */
};

/* Call fn(data) after a pause, if 'err' may pass and has not lasted for 'for_usec' yet. False: it is
 * the caller's to report.
 */
bool reopen_later(struct reopen *reopen, uv_loop_t *loop, const struct aq_error *err,
                  int64_t for_usec, void (*fn)(void *data), void *data);

/* It is open, or is wanted no longer. */
void reopen_done(struct reopen *reopen);

#endif
