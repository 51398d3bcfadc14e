/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - see work.h */
#include "storage/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define USER_WAITING_LEAST 64 /* that a user may have at any time; beyond that half of the rest */
#define POOL_MAX 1024         /* of libuv */
#define POOL_OTHERS 4         /* for what is no volume's: names of hosts */

static const unsigned work_threads[WORK_LANES] = {
    [WORK_DATA] = 6, [WORK_SHORT] = 3, [WORK_COUNT] = 2,
    [WORK_TREE] = 2, [WORK_COPY] = 2,  [WORK_PURGE] = 1
};

void work_lanes_init(struct work_lane lanes[WORK_LANES], uv_loop_t *loop)
{
    for (size_t i = 0; i < WORK_LANES; i++) {
        unsigned threads = work_threads[i];

        lanes[i] = (struct work_lane){ .loop = loop,
                                       .active_max = threads,
                                       .user_max = threads > 1 ? threads - 1 : 1 };
        list_init(&lanes[i].active);
        list_init(&lanes[i].waiting);
    }
}

static void work_run(uv_work_t *uv)
{
    struct work *work = AQ_CONTAINER_OF(uv, struct work, uv);

    work->run(work);
}

static unsigned work_count_active(const struct work_lane *lane, const struct uuid *user)
{
    unsigned count = 0;

    LIST_FOREACH(it, &lane->active)
        count += uuid_equals(&LIST_ENTRY(it, struct work, link)->user, user);
    return count;
}

static void work_on_done(uv_work_t *uv, int status);

/* Begin what may begin, by its turn. */
static void work_fill(struct work_lane *lane)
{
    LIST_FOREACH(it, &lane->waiting) {
        struct work *work = LIST_ENTRY(it, struct work, link);

        if (lane->active_count == lane->active_max)
            return;
        if (work_count_active(lane, &work->user) >= lane->user_max)
            continue;
        list_remove(&work->link);
        list_add(&lane->active, &work->link);
        lane->waiting_count--;
        lane->active_count++;
        lane->turn = AQ_MAX(lane->turn, work->turn);
        work->is_waiting = false;
        (void)uv_queue_work(lane->loop, &work->uv, work_run, work_on_done);
    }
}

static void work_on_done(uv_work_t *uv, int status)
{
    struct work *work = AQ_CONTAINER_OF(uv, struct work, uv);
    struct work_lane *lane = work->lane;

    (void)status;
    list_remove(&work->link);
    lane->active_count--;
    work_fill(lane);
    work->done(work);
}

/* Its turn follows the last one of its user. -EAGAIN if that has enough of the queue. */
static int work_take_turn(const struct work_lane *lane, struct work *work, struct aq_error *err)
{
    size_t count = 0;

    work->turn = lane->turn;
    LIST_FOREACH(it, &lane->waiting) {
        const struct work *other = LIST_ENTRY(it, struct work, link);

        if (!uuid_equals(&other->user, &work->user))
            continue;
        work->turn = other->turn + 1;
        count++;
    }
    if (count >= USER_WAITING_LEAST && count >= (WORK_WAITING_MAX - lane->waiting_count) / 2)
        return aq_fail(err, EAGAIN, "%zu operations of this user wait for the volume; try again",
                       count);
    return 0;
}

static void work_queue(struct work_lane *lane, struct work *work)
{
    struct list *place = &lane->waiting;

    while (place->prev != &lane->waiting
           && LIST_ENTRY(place->prev, struct work, link)->turn > work->turn)
        place = place->prev;
    list_add(place, &work->link);
    lane->waiting_count++;
    work->is_waiting = true;
}

int work_submit(struct work_lane *lane, struct work *work, const struct uuid *user,
                void (*run)(struct work *work), void (*done)(struct work *work),
                struct aq_error *err)
{
    int r;

    work->lane = lane;
    work->user = user ? *user : (struct uuid){ 0 };
    work->run = run;
    work->done = done;
    if (lane->waiting_count == WORK_WAITING_MAX)
        return aq_fail(err, EAGAIN, "too much is asked of this volume; try again");
    if ((r = work_take_turn(lane, work, err)) < 0)
        return r;
    work_queue(lane, work);
    work_fill(lane);
    return 0;
}

bool work_withdraw(struct work *work)
{
    if (!work->is_waiting)
        return false;
    list_remove(&work->link);
    work->lane->waiting_count--;
    work->is_waiting = false;
    return true;
}

void work_set_threads(size_t volumes)
{
    size_t count = POOL_OTHERS;
    char text[16];

    for (size_t i = 0; i < WORK_LANES; i++)
        count += volumes * work_threads[i];
    (void)snprintf(text, sizeof(text), "%zu", AQ_MIN(count, (size_t)POOL_MAX));
    (void)setenv("UV_THREADPOOL_SIZE", text, 1);
}
