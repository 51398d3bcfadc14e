/* SPDX-License-Identifier: Apache-2.0 */
/* Loops: the order within an iteration, timers, closing, other threads, crash and boot. */
#include "stage.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"

/* What was called, a letter each. */
static char calls[200];

static void note(const void *handle)
{
    size_t len = strlen(calls);

    assert_true(len + 1 < sizeof(calls));
    calls[len] = *(const char *)((const uv_handle_t *)handle)->data;
}

static int begin(void **state)
{
    (void)state;
    simuv_begin(5);
    return 0;
}

static int end(void **state)
{
    (void)state;
    simuv_end();
    return 0;
}

static int forget(void **state)
{
    (void)state;
    memset(calls, 0, sizeof(calls));
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    note(handle);
}

static void on_timer(uv_timer_t *timer)
{
    note(timer);
}

static void start_timer(uv_loop_t *loop, uv_timer_t *timer, const char *name, uint64_t msec)
{
    assert_int_equal(uv_timer_init(loop, timer), 0);
    timer->data = (void *)(uintptr_t)name;
    assert_int_equal(uv_timer_start(timer, on_timer, msec, 0), 0);
}

static void test_timers_fire_in_the_order_of_time_and_start(void **state)
{
    uv_timer_t timers[4];
    uv_loop_t loop;
    int64_t before;

    (void)state;
    assert_int_equal(uv_loop_init(&loop), 0);
    start_timer(&loop, &timers[0], "d", 300000);
    start_timer(&loop, &timers[1], "b", 20);
    start_timer(&loop, &timers[2], "a", 10);
    start_timer(&loop, &timers[3], "c", 20);
    before = simuv_now_usec();
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_string_equal(calls, "abcd");
    assert_int_equal((simuv_now_usec() - before) / 1000, 300000);
    assert_int_equal(uv_now(&loop), simuv_now_usec() / 1000);
    uv_close((uv_handle_t *)&timers[0], on_closed);
    uv_close((uv_handle_t *)&timers[1], on_closed);
    uv_close((uv_handle_t *)&timers[2], NULL);
    uv_close((uv_handle_t *)&timers[3], NULL);
    assert_string_equal(calls, "abcd"); /* never within the call */
    assert_int_equal(uv_loop_close(&loop), UV_EBUSY);
    assert_int_equal(uv_run(&loop, UV_RUN_NOWAIT), 0);
    assert_string_equal(calls, "abcdbd");
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- one of each ---- */

struct watchers {
    uv_loop_t loop;
    uv_timer_t timer;
    uv_idle_t idle;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_async_t async;
};

static char watcher_names[] = "ipca";

static void on_idle(uv_idle_t *idle)
{
    note(idle);
}

static void on_prepare(uv_prepare_t *prepare)
{
    note(prepare);
}

static void on_check(uv_check_t *check)
{
    note(check);
}

static void on_async(uv_async_t *async)
{
    note(async);
}

static void watchers_init(struct watchers *w)
{
    assert_int_equal(uv_loop_init(&w->loop), 0);
    start_timer(&w->loop, &w->timer, "t", 0);
    assert_int_equal(uv_idle_init(&w->loop, &w->idle), 0);
    assert_int_equal(uv_prepare_init(&w->loop, &w->prepare), 0);
    assert_int_equal(uv_check_init(&w->loop, &w->check), 0);
    assert_int_equal(uv_async_init(&w->loop, &w->async, on_async), 0);
    w->idle.data = &watcher_names[0];
    w->prepare.data = &watcher_names[1];
    w->check.data = &watcher_names[2];
    w->async.data = &watcher_names[3];
    assert_int_equal(uv_idle_start(&w->idle, on_idle), 0);
    assert_int_equal(uv_prepare_start(&w->prepare, on_prepare), 0);
    assert_int_equal(uv_check_start(&w->check, on_check), 0);
}

static void watchers_close(struct watchers *w)
{
    uv_close((uv_handle_t *)&w->timer, NULL);
    uv_close((uv_handle_t *)&w->idle, NULL);
    uv_close((uv_handle_t *)&w->prepare, NULL);
    uv_close((uv_handle_t *)&w->check, NULL);
    uv_close((uv_handle_t *)&w->async, on_closed);
}

static void test_an_iteration_has_the_order_of_libuv(void **state)
{
    struct watchers w;

    (void)state;
    watchers_init(&w);
    assert_int_equal(uv_async_send(&w.async), 0);
    assert_int_equal(uv_async_send(&w.async), 0); /* one call for both */
    watchers_close(&w);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_string_equal(calls, "a");
    calls[0] = '\0';
    assert_int_equal(uv_loop_close(&w.loop), 0);

    watchers_init(&w);
    assert_int_equal(uv_async_send(&w.async), 0);
    assert_int_equal(uv_run(&w.loop, UV_RUN_NOWAIT), 1);
    assert_string_equal(calls, "tipac");
    assert_int_equal(uv_idle_stop(&w.idle), 0);
    assert_int_equal(uv_run(&w.loop, UV_RUN_NOWAIT), 1);
    assert_string_equal(calls, "tipacpc");
    watchers_close(&w);
    assert_int_equal(uv_run(&w.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

/* ---- as the simulation runs it ---- */

static void test_a_loop_sleeps_before_its_checks(void **state)
{
    struct watchers w;
    simuv_host host = simuv_add_host("10.9.0.1");

    (void)state;
    simuv_enter(host);
    watchers_init(&w);
    assert_int_equal(uv_idle_stop(&w.idle), 0);
    simuv_leave();
    stage_run(SEC);
    assert_string_equal(calls, "tp"); /* what a timer did is not seen by a check yet */
    assert_int_equal(uv_async_send(&w.async), 0);
    stage_run(SEC);
    assert_string_equal(calls, "tpacp");
    simuv_enter(host);
    watchers_close(&w);
    simuv_leave();
    stage_run(SEC);
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

static void on_step(void *data)
{
    ++*(int *)data;
    assert_int_equal(simuv_current_host(), 0);
}

static void stop_it(void *data)
{
    (void)data;
    simuv_stop();
}

static void test_steps_and_appointments(void **state)
{
    simuv_host host = simuv_add_host("10.9.0.2");
    int64_t before = simuv_now_usec();
    struct watchers w;
    int steps = 0;

    (void)state;
    simuv_enter(host);
    watchers_init(&w);
    assert_int_equal(uv_idle_stop(&w.idle), 0);
    assert_int_equal(uv_timer_start(&w.timer, on_timer, 1000, 1000), 0);
    simuv_leave();
    simuv_at(before + 5 * SEC + SEC / 2, stop_it, NULL);
    simuv_run_until(before + 60 * SEC, on_step, &steps);
    assert_int_equal(simuv_now_usec(), before + 5 * SEC + SEC / 2);
    assert_int_equal(steps, 6); /* its first iteration, and five timers */
    simuv_enter(host);
    watchers_close(&w);
    simuv_leave();
    stage_run(SEC);
    assert_int_equal(uv_loop_close(&w.loop), 0);
}

/* ---- work on other threads ---- */

static void on_work(uv_work_t *work)
{
    *(int *)work->data = (int)simuv_current_host();
    (void)usleep(100000);
}

static void on_worked(uv_work_t *work, int status)
{
    *(int *)work->data = status == 0 ? -*(int *)work->data : 1000;
}

static void test_work_is_done_beside_the_loop(void **state)
{
    simuv_host host = simuv_add_host("10.9.0.3");
    uv_work_t works[6];
    int results[6] = { 0 }, begun = 0;
    uv_loop_t loop;

    (void)state;
    simuv_enter(host);
    assert_int_equal(uv_loop_init(&loop), 0);
    for (int i = 0; i < 6; i++) {
        works[i].data = &results[i];
        assert_int_equal(uv_queue_work(&loop, &works[i], on_work, on_worked), 0);
    }
    simuv_leave();
    assert_int_equal(uv_cancel((uv_req_t *)&works[5]), 0);
    stage_run(50000);
    for (int i = 0; i < 5; i++)
        begun += results[i] == (int)host;
    assert_int_equal(begun, 4); /* as many as libuv has workers */
    assert_int_equal(results[5], 1000);
    stage_run(SEC);
    for (int i = 0; i < 5; i++)
        assert_int_equal(results[i], -(int)host);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* ---- crash and boot ---- */

static int lock_file(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void test_a_crash_stops_all_and_frees_locks(void **state)
{
    char path[] = "/tmp/aliquot-simuv-XXXXXX";
    simuv_host host = simuv_add_host("10.9.0.4");
    static struct watchers before; /* a crash leaves it behind */
    struct watchers after;
    int fd = mkstemp(path);
    size_t len;

    (void)state;
    assert_true(fd >= 0);
    (void)close(fd);
    simuv_enter(host);
    watchers_init(&before);
    assert_int_equal(uv_idle_stop(&before.idle), 0);
    assert_int_equal(uv_timer_start(&before.timer, on_timer, 100, 100), 0);
    assert_true(lock_file(path) >= 0);
    assert_int_equal(lock_file(path), -1);
    simuv_leave();
    stage_run(SEC);
    len = strlen(calls);
    assert_true(len > 10);
    simuv_crash(host, false);
    stage_run(10 * SEC);
    assert_int_equal(strlen(calls), len);
    simuv_boot(host);
    simuv_enter(host);
    watchers_init(&after);
    fd = lock_file(path);
    assert_true(fd >= 0);
    (void)close(fd);
    watchers_close(&after);
    simuv_leave();
    stage_run(SEC);
    assert_int_equal(uv_loop_close(&after.loop), 0);
    assert_int_equal(unlink(path), 0);
}

static void test_each_host_has_its_wall_clock(void **state)
{
    simuv_host host = simuv_add_host("10.9.0.5");
    int64_t wall = clock_realtime_usec(), monotonic = clock_monotonic_usec();

    (void)state;
    assert_int_equal(monotonic, simuv_now_usec());
    simuv_set_wall_offset(host, -3600 * SEC);
    assert_int_equal(clock_realtime_usec(), wall);
    simuv_enter(host);
    assert_int_equal(clock_realtime_usec(), wall - 3600 * SEC);
    assert_int_equal(clock_monotonic_usec(), monotonic);
    simuv_leave();
    stage_run(SEC);
    assert_int_equal(clock_realtime_usec(), wall + SEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_timers_fire_in_the_order_of_time_and_start, forget),
        cmocka_unit_test_setup(test_an_iteration_has_the_order_of_libuv, forget),
        cmocka_unit_test_setup(test_a_loop_sleeps_before_its_checks, forget),
        cmocka_unit_test_setup(test_steps_and_appointments, forget),
        cmocka_unit_test_setup(test_work_is_done_beside_the_loop, forget),
        cmocka_unit_test_setup(test_a_crash_stops_all_and_frees_locks, forget),
        cmocka_unit_test_setup(test_each_host_has_its_wall_clock, forget),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
