/* SPDX-License-Identifier: Apache-2.0 */
/* Whose request runs: see turns.h. */
#include "manager/call/turns.h"

#include <errno.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/memory.h"

#define WAITING_MAX 256 /* of one user */

/* A user with a request that runs. */
struct turns_user {
    struct list waiting; /* turn.link */
    unsigned count;
};

struct turn_queue {
    struct map users;  /* id -> struct turns_user */
    struct list ready; /* turn.link: one is called in each turn of the loop */
    uv_idle_t *idle;   /* while there are users; active while one is ready */
};

struct turn_queue *turns_new(void)
{
    struct turn_queue *turns = aq_alloc(sizeof(*turns));

    list_init(&turns->ready);
    return turns;
}

void turns_free(struct turn_queue *turns)
{
    if (!turns)
        return;
    for (size_t i = 0; i < turns->users.count; i++)
        free(turns->users.entries[i].value);
    map_done(&turns->users);
    free(turns);
}

static void turns_on_closed(uv_handle_t *handle)
{
    free(handle);
}

bool turns_run_one(struct turn_queue *turns)
{
    struct turn *turn;

    if (list_is_empty(&turns->ready))
        return false;
    turn = LIST_ENTRY(turns->ready.next, struct turn, link);
    list_remove(&turn->link);
    if (list_is_empty(&turns->ready))
        (void)uv_idle_stop(turns->idle);
    turn->fn(turn);
    return true;
}

static void turns_on_idle(uv_idle_t *idle)
{
    (void)turns_run_one(idle->data);
}

void turns_wait(struct turn_queue *turns, struct turn *turn)
{
    list_add(&turns->ready, &turn->link);
    (void)uv_idle_start(turns->idle, turns_on_idle);
}

static void turns_add_user(struct turn_queue *turns, uv_loop_t *loop, const struct uuid *id)
{
    struct turns_user *user = aq_alloc(sizeof(*user));

    if (!turns->idle) {
        turns->idle = aq_alloc(sizeof(*turns->idle));
        (void)uv_idle_init(loop, turns->idle);
        turns->idle->data = turns;
    }
    list_init(&user->waiting);
    map_set(&turns->users, id->bytes, sizeof(id->bytes), user);
}

static void turns_close_idle(struct turn_queue *turns)
{
    if (turns->users.count || !turns->idle)
        return;
    uv_close((uv_handle_t *)turns->idle, turns_on_closed);
    turns->idle = NULL;
}

int turns_enter(struct turn_queue *turns, uv_loop_t *loop, const struct uuid *user_id,
                struct turn *turn, struct aq_error *err)
{
    struct turns_user *user = map_get(&turns->users, user_id->bytes, sizeof(user_id->bytes));

    if (user && user->count >= WAITING_MAX)
        return aq_fail_kind(err, EAGAIN, "rate-limit-exceeded",
                            "%d requests of this user wait already; wait for their answers",
                            WAITING_MAX);
    if (user) {
        list_add(&user->waiting, &turn->link);
        user->count++;
        return 0;
    }
    turns_add_user(turns, loop, user_id);
    turn->fn(turn);
    return 0;
}

void turns_leave(struct turn_queue *turns, const struct uuid *user_id)
{
    struct turns_user *user = map_get(&turns->users, user_id->bytes, sizeof(user_id->bytes));

    if (list_is_empty(&user->waiting)) {
        free(map_remove(&turns->users, user_id->bytes, sizeof(user_id->bytes)));
        turns_close_idle(turns);
    } else {
        struct turn *next = LIST_ENTRY(user->waiting.next, struct turn, link);

        list_remove(&next->link);
        user->count--;
        turns_wait(turns, next);
    }
}
