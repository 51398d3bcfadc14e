/* SPDX-License-Identifier: Apache-2.0 */
/* loop.c - event loops: their iterations in libuv's order, and when the next one is due
 *
 * A loop rests in its poll phase. When something is due it turns: what came is handed out, then
 * the checks and the closing callbacks end the iteration, and the next one begins with its timers,
 * up to the poll phase again.
 */
#include <errno.h>

#include "base/memory.h"
#include "simuv/simuv_internal.h"

#define SPIN_USEC 5  /* an iteration takes up to so long, so that loops that spin see time pass */
#define WAKE_USEC 20 /* until a loop turns that something came for */

static uint32_t loop_ids;

static bool loop_has_work(const struct simuv_loop *loop)
{
    return !list_is_empty(&loop->idles) || !list_is_empty(&loop->pending)
           || !list_is_empty(&loop->io) || !list_is_empty(&loop->asyncs_sent)
           || !list_is_empty(&loop->works_done) || loop->uv->closing_handles;
}

static int64_t loop_spin_time(void)
{
    return simuv_now + 1 + (int64_t)simuv_random_of_below(SIMUV_TURNS, SPIN_USEC);
}

/* When the next turn is due; INT64_MAX = nothing is to be done. */
static int64_t loop_due(const struct simuv_loop *loop)
{
    uint64_t timer = simuv_timers_next_msec(loop);

    if (loop_has_work(loop))
        return loop_spin_time();
    return timer == UINT64_MAX ? INT64_MAX : (int64_t)timer * 1000;
}

static void loop_advance(struct simuv_loop *loop, int64_t at)
{
    if (at != INT64_MAX && (!simuv_event_is_queued(&loop->event) || loop->event.at > at))
        simuv_event_schedule(&loop->event, at);
}

/* No turn of this loop is under way, and somebody waits for the next. */
static bool loop_is_asleep(const struct simuv_loop *loop)
{
    return !loop->is_turning && !loop->is_dead && (loop->nested || !loop->is_manual);
}

static int64_t loop_wake_time(void)
{
    return simuv_now + 1 + (int64_t)simuv_random_of_below(SIMUV_TURNS, WAKE_USEC);
}

void simuv_loop_touch(struct simuv_loop *loop)
{
    if (loop_is_asleep(loop))
        loop_advance(loop, loop_has_work(loop) ? loop_wake_time() : loop_due(loop));
}

/* ---- an iteration ---- */

static void loop_update_time(struct simuv_loop *loop)
{
    loop->uv->time = (uint64_t)(simuv_now / 1000);
}

/* Up to where libuv waits. */
static void loop_begin_iteration(struct simuv_loop *loop)
{
    loop_update_time(loop);
    simuv_timers_run(loop);
    simuv_streams_run_pending(loop);
    simuv_idles_run(loop);
    simuv_prepares_run(loop);
    loop->is_polling = true;
}

/* From where it waits to the end. */
static void loop_end_iteration(struct simuv_loop *loop)
{
    loop->is_polling = false;
    loop_update_time(loop);
    simuv_asyncs_run(loop);
    simuv_works_run_done(loop);
    simuv_streams_run_io(loop);
    simuv_checks_run(loop);
    simuv_handles_run_closing(loop);
}

static void loop_turn(struct simuv_loop *loop)
{
    simuv_note("loop", loop->id, loop->uv->timer_counter);
    simuv_enter(loop->host);
    loop->is_turning = true;
    if (loop->is_polling)
        loop_end_iteration(loop);
    loop_begin_iteration(loop);
    loop->is_turning = false;
    loop->uv->stop_flag = 0;
    simuv_leave();
    simuv_loop_touch(loop);
    simuv_event_stepped();
}

static void loop_on_due(struct simuv_event *event)
{
    struct simuv_loop *loop = AQ_CONTAINER_OF(event, struct simuv_loop, event);

    if (loop->nested) {
        loop->is_due = true;
        (void)simuv_wake_all(loop);
    } else if (!loop->is_turning && !loop->is_manual) {
        loop_turn(loop);
    }
}

/* ---- making and closing ---- */

int uv_loop_init(uv_loop_t *uv)
{
    struct simuv_loop *loop;
    void *data = uv->data;

    if (!simuv_has_begun)
        simuv_cannot("uv_loop_init() before simuv_begin()");
    loop = aq_alloc(sizeof(*loop));
    *uv = (uv_loop_t){ .data = data, .internal_fields = loop, .backend_fd = -1 };
    loop->uv = uv;
    loop->event.run = loop_on_due;
    loop->id = ++loop_ids;
    loop->host = simuv_current_host();
    loop->is_manual = !simuv_task_now->is_driver;
    list_init(&loop->idles);
    list_init(&loop->prepares);
    list_init(&loop->checks);
    list_init(&loop->asyncs_sent);
    list_init(&loop->works_done);
    list_init(&loop->io);
    list_init(&loop->pending);
    list_init((struct list *)(void *)uv->handle_queue);
    list_add(&simuv_machine_here()->loops, &loop->link);
    loop_update_time(loop);
    if (!loop->is_manual)
        loop_advance(loop, loop_wake_time()); /* its first iteration */
    return 0;
}

int uv_loop_close(uv_loop_t *uv)
{
    struct simuv_loop *loop = simuv_loop_of(uv);

    if (uv->active_reqs.count || uv->closing_handles
        || !list_is_empty((struct list *)(void *)uv->handle_queue))
        return UV_EBUSY;
    simuv_event_cancel(&loop->event);
    list_remove(&loop->link);
    free(loop->timers);
    free(loop);
    uv->internal_fields = NULL;
    return 0;
}

int uv_loop_alive(const uv_loop_t *uv)
{
    return uv->active_handles > 0 || uv->active_reqs.count > 0 || uv->closing_handles != NULL;
}

void uv_stop(uv_loop_t *uv)
{
    uv->stop_flag = 1;
}

void uv_update_time(uv_loop_t *uv)
{
    loop_update_time(simuv_loop_of(uv));
}

uint64_t uv_now(const uv_loop_t *uv)
{
    return uv->time;
}

/* ---- uv_run() by the code itself ---- */

/* Until something is due for the loop; if it has work, as long as an iteration takes. Only urgent
 * events happen, if the driver waits.
 */
static void loop_wait(struct simuv_loop *loop)
{
    int64_t due = loop_due(loop);

    loop->is_due = false;
    loop->event.is_urgent = true;
    if (due != INT64_MAX)
        simuv_event_schedule(&loop->event, due);
    while (!loop->is_due)
        (void)simuv_wait(loop, INT64_MAX, "uv_run() of a loop for which nothing ever comes");
    loop->event.is_urgent = false;
}

/* As long as an iteration takes. */
static void loop_pass(struct simuv_loop *loop)
{
    loop->event.is_urgent = true; /* it is due now, if at all */
    (void)simuv_wait(NULL, loop_spin_time(), "an iteration of uv_run()");
    loop->event.is_urgent = false;
}

static void loop_iterate(struct simuv_loop *loop, uv_run_mode mode)
{
    bool was_turning = loop->is_turning, has_pending = !list_is_empty(&loop->pending);

    loop->is_turning = true;
    loop_begin_iteration(loop);
    loop->is_turning = false;
    if (mode == UV_RUN_NOWAIT || has_pending || loop->uv->stop_flag || !uv_loop_alive(loop->uv))
        loop_pass(loop);
    else
        loop_wait(loop);
    loop->is_turning = true;
    loop_end_iteration(loop);
    if (mode == UV_RUN_ONCE) {
        loop_update_time(loop);
        simuv_timers_run(loop);
    }
    loop->is_turning = was_turning;
}

int uv_run(uv_loop_t *uv, uv_run_mode mode)
{
    struct simuv_loop *loop = simuv_loop_of(uv);
    bool is_alive = uv_loop_alive(uv);

    loop->is_manual |= !simuv_task_now->is_driver;
    loop->nested++;
    loop_update_time(loop);
    while (is_alive && !uv->stop_flag) {
        simuv_note("run", loop->id, uv->timer_counter);
        loop_iterate(loop, mode);
        is_alive = uv_loop_alive(uv);
        if (mode != UV_RUN_DEFAULT)
            break;
    }
    uv->stop_flag = 0;
    loop->nested--;
    loop->is_polling = true;
    simuv_loop_touch(loop);
    return is_alive;
}
