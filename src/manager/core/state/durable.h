/* SPDX-License-Identifier: Apache-2.0 */
/* durable.h - durable objects: what the turn of the loop examines, and what proposes changes
 *
 * What a durable object is stands in the store, and in memory as the store has it. Code that writes
 * down that something is wanted of it, or was seen, touches it, or says when it is to be
 * examined. The turn then calls its step, which may propose events (commit/proposal.c). Until
 * these are back from the store the object is busy, and there is no other step.
 *
 * A struct becomes one by embedding struct durable, as struct session_entry does. Loop's thread
 * only; times are monotonic, in microseconds.
 */
#ifndef AQ_MANAGER_CORE_STATE_DURABLE_H
#define AQ_MANAGER_CORE_STATE_DURABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/list.h"

struct aq_error;
struct core;
struct durable;

struct durable_ops {
    /* It was touched, is not busy and may propose: do what follows from what it is, from what is
     * wanted and from what was seen. Another step without news changes nothing.
     */
    void (*step)(struct core *core, struct durable *d);
    /* A batch with a proposal of it is back, and it is not busy any more. Durable and applied (0):
     * it is touched, unless the events retired it. Nothing was written (< 0, with 'err'): there
     * will be another step, at once or later.
     */
    void (*returned)(struct core *core, struct durable *d, int result, const struct aq_error *err);
    /* It was retired, and nothing points to it any more. */
    void (*free)(struct durable *d);
};

struct durable {
    struct list link; /* in core.durables.touched, or in .retired */
    const struct durable_ops *ops;
    int64_t wake_usec;   /* when to examine it; 0 = at no time */
    int64_t retry_usec;  /* no step before; 0 = at once */
    uint32_t heap_index; /* in core.durables.heap, UINT32_MAX = not */
    bool is_live;        /* it was added and is not retired */
    bool is_busy;        /* a proposal of it is under way */
    bool is_alone;       /* its last proposal was rejected: do not share the next */
};

/* Not live yet: until it is added, touching and waking it does nothing. */
void durable_init(struct durable *d, const struct durable_ops *ops);

/* Makes it live. */
void durable_add(struct core *core, struct durable *d);

/* Examine it in this turn. Does nothing to one that is retired, as the next. */
void durable_touch(struct core *core, struct durable *d);

/* Examine it not later than at 'usec'. */
void durable_wake_at(struct core *core, struct durable *d, int64_t usec);

/* Forget its wake time, if it has one. */
void durable_cancel_wake(struct core *core, struct durable *d);

/* The earliest wake time of all; 0 = there is none. */
int64_t durable_next_wake(const struct core *core);

/* Touch all whose wake time has come. */
void durable_pop_due(struct core *core, int64_t now);

/* One of those that are touched, which then is not any more; NULL = none is. */
struct durable *durable_take_touched(struct core *core);

/* It has ended: it is not examined any more. Freed in a later turn, when no proposal of it is under
 * way, so that those who hold a pointer in this one may finish (deferred free). Its owner takes
 * it out of all else.
 */
void durable_retire(struct core *core, struct durable *d);

/* Free those that were retired and are not busy. */
void durable_free_retired(struct core *core);

#endif
