/* SPDX-License-Identifier: Apache-2.0 */
/* flushes.h - what has something for its connection, a few of them in each turn of the loop
 *
 * One event may be for hundreds of streams, and each write is a system call: others have
 * their turns in between, and what comes meanwhile goes out by the same write. In the
 * order in which they came. Everything here belongs to the loop's thread.
 */
#ifndef AQ_MANAGER_CALL_FLUSHES_H
#define AQ_MANAGER_CALL_FLUSHES_H

#include <uv.h>

#include "base/cleanup.h"
#include "base/list.h"

struct flush_queue;

struct flush_queue *flushes_new(void);
void flushes_free(struct flush_queue *flushes); /* after the last one was cancelled or called */
AQ_DEFINE_CLEANUP(struct flush_queue, flushes_free)

/* Zeroed = does not wait. */
struct flush {
    struct list link;
    struct flush_queue *waits_in; /* NULL = does not wait */
    void (*fn)(struct flush *flush);
};

/* Have flush->fn called in a later turn; nothing if it waits already. */
void flushes_add(struct flush_queue *flushes, uv_loop_t *loop, struct flush *flush);

/* It is not called any more. */
void flush_cancel(struct flush *flush);

#endif
