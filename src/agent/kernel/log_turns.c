/* SPDX-License-Identifier: Apache-2.0 */
/* log_turns.c - whose log is read, so much in each turn of the loop */
#include "agent/kernel/log_turns.h"

#include <stdlib.h>

#include "base/memory.h"

#define CALL_BYTES ((size_t)1024) /* what a call costs that reads next to nothing */

/* Not a timer of no time: libuv calls such a one again before it polls. */
static void log_turns_on_idle(uv_idle_t *idle)
{
    struct log_turns *turns = idle->data;
    size_t done = 0;

    while (!list_is_empty(&turns->waiting) && done < LOG_TURN_BYTES) {
        struct log_turn *turn = LIST_ENTRY(turns->waiting.next, struct log_turn, link);
        size_t bytes;

        list_remove(&turn->link);
        bytes = turn->fn(turn);
        done += AQ_MAX(bytes, CALL_BYTES);
    }
    if (list_is_empty(&turns->waiting))
        (void)uv_idle_stop(idle);
}

void log_turns_init(struct log_turns *turns, uv_loop_t *loop)
{
    turns->idle = aq_alloc(sizeof(*turns->idle));
    turns->loop = loop;
    list_init(&turns->waiting);
    (void)uv_idle_init(loop, turns->idle);
    turns->idle->data = turns;
}

static void log_turns_on_closed(uv_handle_t *handle)
{
    free(handle);
}

void log_turns_done(struct log_turns *turns)
{
    if (turns->idle)
        uv_close((uv_handle_t *)AQ_TAKE(turns->idle), log_turns_on_closed);
}

void log_turn_init(struct log_turn *turn, size_t (*fn)(struct log_turn *turn))
{
    list_init(&turn->link);
    turn->fn = fn;
}

void log_turn_wait(struct log_turns *turns, struct log_turn *turn)
{
    if (!list_is_empty(&turn->link))
        return;
    list_add(&turns->waiting, &turn->link);
    (void)uv_idle_start(turns->idle, log_turns_on_idle);
}

void log_turn_cancel(struct log_turn *turn)
{
    list_remove(&turn->link);
}
