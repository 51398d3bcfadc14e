/* SPDX-License-Identifier: Apache-2.0 */
/* Threads: one at a time, locks, conditions with and without a deadline, and sleep. */
#include "stage.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

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

/* ---- a queue between threads ---- */

struct box {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int items, taken, inside;
    bool is_over;
};

static void *take_items(void *data)
{
    struct box *box = data;

    (void)pthread_mutex_lock(&box->lock);
    while (!box->is_over || box->items) {
        if (!box->items) {
            (void)pthread_cond_wait(&box->changed, &box->lock);
            continue;
        }
        assert_int_equal(box->inside++, 0);
        (void)usleep(10); /* others may run, and want the lock */
        assert_int_equal(--box->inside, 0);
        box->items--;
        box->taken++;
    }
    (void)pthread_mutex_unlock(&box->lock);
    return data;
}

static void test_a_queue_with_three_threads(void **state)
{
    struct box box = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
    pthread_t threads[3];
    void *result = NULL;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_items, &box), 0);
    for (int i = 0; i < 100; i++) {
        (void)pthread_mutex_lock(&box.lock);
        box.items++;
        (void)pthread_cond_signal(&box.changed);
        (void)pthread_mutex_unlock(&box.lock);
    }
    (void)pthread_mutex_lock(&box.lock);
    box.is_over = true;
    (void)pthread_cond_broadcast(&box.changed);
    assert_int_equal(pthread_mutex_trylock(&box.lock), EBUSY);
    (void)pthread_mutex_unlock(&box.lock);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &box);
    }
    assert_int_equal(box.taken, 100);
    assert_int_equal(pthread_mutex_destroy(&box.lock), 0);
    assert_int_equal(pthread_cond_destroy(&box.changed), 0);
}

/* ---- deadlines ---- */

struct wait {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    clockid_t clock;
    int64_t usec, woken_usec;
    int result;
};

static void *wait_so_long(void *data)
{
    struct wait *wait = data;
    struct timespec until;

    (void)clock_gettime(wait->clock, &until);
    until.tv_sec += (time_t)(wait->usec / SEC);
    (void)pthread_mutex_lock(&wait->lock);
    wait->result = pthread_cond_timedwait(&wait->changed, &wait->lock, &until);
    (void)pthread_mutex_unlock(&wait->lock);
    wait->woken_usec = simuv_now_usec();
    return NULL;
}

static void start_wait(struct wait *wait, clockid_t clock, int64_t usec, pthread_t *thread)
{
    pthread_condattr_t attr;

    *wait = (struct wait){ .clock = clock, .usec = usec, .result = -1 };
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, clock);
    assert_int_equal(pthread_mutex_init(&wait->lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&wait->changed, &attr), 0);
    (void)pthread_condattr_destroy(&attr);
    assert_int_equal(pthread_create(thread, NULL, wait_so_long, wait), 0);
}

static void test_waits_end_by_simulated_time(void **state)
{
    simuv_host host = simuv_add_host("10.9.0.1");
    struct wait waits[3];
    pthread_t threads[3];
    int64_t before = simuv_now_usec();

    (void)state;
    simuv_set_wall_offset(host, 86400 * SEC);
    simuv_enter(host);
    start_wait(&waits[0], CLOCK_MONOTONIC, 3600 * SEC, &threads[0]);
    start_wait(&waits[1], CLOCK_REALTIME, 60 * SEC, &threads[1]);
    start_wait(&waits[2], CLOCK_MONOTONIC, 3600 * SEC, &threads[2]);
    simuv_leave();
    stage_run(30 * SEC);
    (void)pthread_mutex_lock(&waits[2].lock);
    (void)pthread_cond_signal(&waits[2].changed);
    (void)pthread_mutex_unlock(&waits[2].lock);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(waits[0].result, ETIMEDOUT);
    assert_int_equal((waits[0].woken_usec - before) / SEC, 3600);
    assert_int_equal(waits[1].result, ETIMEDOUT);
    assert_int_equal((waits[1].woken_usec - before) / SEC, 60);
    assert_int_equal(waits[2].result, 0);
    assert_int_equal((waits[2].woken_usec - before) / SEC, 30);
}

/* ---- threads of a host ---- */

static void *count_seconds(void *data)
{
    for (;;) {
        (void)sleep(1);
        ++*(int *)data;
    }
    return NULL;
}

static void test_threads_of_a_crashed_host_stay_where_they_are(void **state)
{
    simuv_host host = simuv_add_host("10.9.0.2");
    static int seconds;
    pthread_t thread;

    (void)state;
    simuv_enter(host);
    assert_int_equal(pthread_create(&thread, NULL, count_seconds, &seconds), 0);
    simuv_leave();
    stage_run(10 * SEC + SEC / 2);
    assert_int_equal(seconds, 10);
    simuv_crash(host, true);
    stage_run(10 * SEC);
    assert_int_equal(seconds, 10);
    simuv_boot(host);
    stage_run(10 * SEC);
    assert_int_equal(seconds, 10);
}

/* ---- a loop on a thread ---- */

static void on_timer(uv_timer_t *timer)
{
    *(int64_t *)timer->data = simuv_now_usec();
    uv_close((uv_handle_t *)timer, NULL);
}

static void *run_loop(void *data)
{
    uv_timer_t timer;
    uv_loop_t loop;

    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &timer), 0);
    timer.data = data;
    assert_int_equal(uv_timer_start(&timer, on_timer, 5000, 0), 0);
    assert_int_equal(uv_run(&loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(&loop), 0);
    return NULL;
}

static void test_a_thread_runs_a_loop_of_its_own(void **state)
{
    int64_t before = simuv_now_usec(), fired = 0;
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, run_loop, &fired), 0);
    stage_run(4 * SEC);
    assert_int_equal(fired, 0);
    stage_run(2 * SEC);
    assert_int_equal((fired - before + 1000) / SEC, 5); /* loops count milliseconds */
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The simulated time that a sync took. */
static void *sync_file(void *data)
{
    int64_t *took = data, before = simuv_now_usec();
    char path[] = "/tmp/aliquot-simuv-XXXXXX";
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    assert_int_equal(fdatasync(fd), 0);
    *took = simuv_now_usec() - before;
    (void)close(fd);
    (void)unlink(path);
    return NULL;
}

static int64_t sync_on(simuv_host host)
{
    int64_t took = 0;
    pthread_t thread;

    simuv_enter(host);
    assert_int_equal(pthread_create(&thread, NULL, sync_file, &took), 0);
    simuv_leave();
    stage_run(10 * SEC);
    assert_int_equal(pthread_join(thread, NULL), 0);
    return took;
}

static void test_threads_wait_for_their_disk(void **state)
{
    simuv_host host = simuv_add_host("10.9.9.9");
    int64_t before;

    (void)state;
    assert_in_range(sync_on(host), 100, 1000);
    simuv_set_sync_time(host, SEC, SEC);
    assert_int_equal(sync_on(host), 2 * SEC);
    before = simuv_now_usec();
    simuv_enter(host); /* as a loop's code, in no time */
    simuv_wait_for_sync();
    simuv_leave();
    assert_int_equal(simuv_now_usec(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_with_three_threads),
        cmocka_unit_test(test_waits_end_by_simulated_time),
        cmocka_unit_test(test_threads_of_a_crashed_host_stay_where_they_are),
        cmocka_unit_test(test_a_thread_runs_a_loop_of_its_own),
        cmocka_unit_test(test_threads_wait_for_their_disk),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
