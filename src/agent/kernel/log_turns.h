/* SPDX-License-Identifier: Apache-2.0 */
/* log_turns.h - whose log is read, so much in each turn of the loop
 *
 * Readers that have something to do wait in one list. In each turn of the loop, which polls
 * in between, they are called in order until they have done LOG_TURN_BYTES together; who has
 * more to do waits behind the others. Belongs to the thread of the loop.
 */
#ifndef AQ_AGENT_KERNEL_LOG_TURNS_H
#define AQ_AGENT_KERNEL_LOG_TURNS_H

#include <stddef.h>
#include <uv.h>

#include "base/list.h"

#define LOG_TURN_BYTES ((size_t)256 << 10) /* of all readers: less than a millisecond */

/* Of an agent; those who wait come to and go from it by the calls below. */
struct log_turns {
    uv_loop_t *loop;
    struct list waiting; /* log_turn.link */
    uv_idle_t *idle;     /* active while somebody waits */
};

/* Part of a reader. 'fn' does a piece of its work, and returns how many bytes that was: read or
 * written, whatever is more. It does not wait any more when it is called, and may be freed then.
 */
struct log_turn {
    struct list link;
    size_t (*fn)(struct log_turn *turn);
};

void log_turns_init(struct log_turns *turns, uv_loop_t *loop);
/* Nobody waits any more, and nobody comes. Of one that is zeroed nothing happens. */
void log_turns_done(struct log_turns *turns);

void log_turn_init(struct log_turn *turn, size_t (*fn)(struct log_turn *turn));
/* Have it called in a later turn of the loop; nothing if it waits already. */
void log_turn_wait(struct log_turns *turns, struct log_turn *turn);
/* It is not called any more. */
void log_turn_cancel(struct log_turn *turn);

#endif
