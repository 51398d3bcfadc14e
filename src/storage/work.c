/* SPDX-License-Identifier: Apache-2.0 */
/* work.c - see work.h */
#include "storage/work.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define WAITING_MAX 4096
#define POOL_MAX 1024 /* of libuv */
#define POOL_OTHERS 4 /* for what is no volume's: names of hosts */

static const unsigned work_threads[WORK_LANES] = {
    [WORK_DATA] = 8, [WORK_TREE] = 2, [WORK_COPY] = 2, [WORK_PURGE] = 1
};

void work_lanes_init(struct work_lane lanes[WORK_LANES], uv_loop_t *loop)
{
    for (size_t i = 0; i < WORK_LANES; i++) {
        lanes[i] = (struct work_lane){ .loop = loop, .active_max = work_threads[i] };
        list_init(&lanes[i].waiting);
    }
}

static void work_run(uv_work_t *uv)
{
    struct work *work = AQ_CONTAINER_OF(uv, struct work, uv);

    work->run(work);
}

static void work_start(struct work *work);

static void work_on_done(uv_work_t *uv, int status)
{
    struct work *work = AQ_CONTAINER_OF(uv, struct work, uv), *next;
    struct work_lane *lane = work->lane;

    (void)status;
    lane->active--;
    if (!list_is_empty(&lane->waiting)) {
        next = LIST_ENTRY(lane->waiting.next, struct work, link);
        list_remove(&next->link);
        lane->waiting_count--;
        work_start(next);
    }
    work->done(work);
}

static void work_start(struct work *work)
{
    work->lane->active++;
    (void)uv_queue_work(work->lane->loop, &work->uv, work_run, work_on_done);
}

int work_submit(struct work_lane *lane, struct work *work, void (*run)(struct work *work),
                void (*done)(struct work *work), struct aq_error *err)
{
    if (lane->waiting_count == WAITING_MAX)
        return aq_fail(err, EAGAIN, "too much is asked of this volume; try again");
    work->lane = lane;
    work->run = run;
    work->done = done;
    if (lane->active < lane->active_max) {
        work_start(work);
        return 0;
    }
    list_add(&lane->waiting, &work->link);
    lane->waiting_count++;
    return 0;
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
