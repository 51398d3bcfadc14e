/* SPDX-License-Identifier: Apache-2.0 */
/* pump.h - bytes between a client and a kernel, both ways, at the pace of the slower side
 *
 * A pump joins two ends: a WebSocket, a request, a link stream, a command, a terminal, a log.
 * What one end gives is put to the other at once; if that makes the other full, the giver is
 * paused until it has drained. What is given before the other end is open waits in the pump, and
 * the giver is paused meanwhile. So neither side can fill memory, and no side needs to know what
 * the other is.
 *
 * Who owns the ends embeds the pump, tells it what happens to them, and ends them; a pump ends
 * nothing by itself. What is encoded differently on both sides is translated before it is given.
 * Pure; no thread of its own.
 */
#ifndef AQ_BASE_PUMP_H
#define AQ_BASE_PUMP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/strbuf.h"

/* An end whose put() has more than this queued says that it is full. */
#define PUMP_QUEUE_HIGH ((size_t)256 << 10)

enum pump_side { PUMP_CLIENT, PUMP_KERNEL, PUMP_SIDES };

/* Of one kind of end; whose module has it says what 'end' is. None calls the pump, or frees it,
 * but for one that goes on: it may give at once, and its owner then free the pump.
 */
struct pump_ops {
    /* Queue all of these bytes. 0; 1 = it is full, and pump_drained() follows; -errno. */
    int (*put)(void *end, const char *bytes, size_t len);
    /* Give nothing until told to go on. */
    void (*pause)(void *end, bool is_paused);
    /* No more will be put; what was put still goes out. NULL = it makes no difference to this end.
     */
    void (*finish)(void *end);
};

struct pump_end {
    const struct pump_ops *ops; /* NULL = it is not there, yet or any more */
    void *data;
    bool is_open;        /* it can be put bytes */
    bool is_full;        /* ... but it is not the time: the other end is paused */
    bool is_finished;    /* the other end gives no more */
    struct strbuf early; /* what was given for it before it was open */
    size_t early_high;   /* pump_set_early() */
};

struct pump {
    struct pump_end ends[PUMP_SIDES];
};

void pump_init(struct pump *pump);
/* What waits is lost. */
void pump_done(struct pump *pump);

/* This end is there: it can give, and be paused. */
void pump_join(struct pump *pump, enum pump_side side, const struct pump_ops *ops, void *end);
/* It takes bytes from now on, and gets what waits. As pump_give(). */
int pump_open(struct pump *pump, enum pump_side side);
/* It is gone: not called any more. */
void pump_part(struct pump *pump, enum pump_side side);

/* The giver is paused when so much waits for this end: who is paused is not heard to leave. 0
 * unless set: then it is paused with what it gives first, even if that is nothing.
 */
void pump_set_early(struct pump *pump, enum pump_side side, size_t high);

/* This end gives bytes for the other. 0; -errno: what the other's put() said, -EPIPE if that is
 * gone, -ENOBUFS if too much waits for it to open.
 */
int pump_give(struct pump *pump, enum pump_side from, const char *bytes, size_t len);

/* All that this end had queued is gone. */
void pump_drained(struct pump *pump, enum pump_side side);

/* This end gives no more; the other is told, after what waits for it. */
void pump_finish(struct pump *pump, enum pump_side from);

#endif
