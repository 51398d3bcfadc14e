/* SPDX-License-Identifier: Apache-2.0 */
/* turns.c - see turns.h */
#include "agent/probe/turns.h"

#include "base/clock.h"

#define SLOW_USEC USEC_PER_SEC

void turns_init(struct turn_queue *turns, size_t max)
{
    *turns = (struct turn_queue){ .max = max };
    list_init(&turns->waiting);
    list_init(&turns->slow_waiting);
}

/* A turn that ends within begin() comes back here: the loop goes on with the room that it leaves. */
static void turns_run(struct turn_queue *turns)
{
    struct list *link;

    if (turns->is_running)
        return;
    turns->is_running = true;
    while (
        turns->count < turns->max
        && ((link = list_take(&turns->waiting))
            || (turns->slow_count < turns->max / 2 && (link = list_take(&turns->slow_waiting))))) {
        struct turn *turn = LIST_ENTRY(link, struct turn, link);

        turn->begun_usec = clock_monotonic_usec();
        turns->count++;
        turns->slow_count += turn->is_slow;
        turn->begin(turn);
    }
    turns->is_running = false;
}

void turn_init(struct turn *turn, struct turn_queue *of, void (*begin)(struct turn *turn))
{
    *turn = (struct turn){ .of = of, .begin = begin };
    list_init(&turn->link);
}

void turn_wait(struct turn *turn)
{
    list_add(turn->is_slow ? &turn->of->slow_waiting : &turn->of->waiting, &turn->link);
    turns_run(turn->of);
}

void turn_over(struct turn *turn)
{
    list_remove(&turn->link);
    if (!turn->begun_usec)
        return;
    turn->of->count--;
    turn->of->slow_count -= turn->is_slow;
    turn->is_slow = clock_monotonic_usec() - turn->begun_usec > SLOW_USEC;
    turn->begun_usec = 0;
    turns_run(turn->of);
}
