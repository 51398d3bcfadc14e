/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>

#include "agent/kernel/log_turns.h"

#define READERS 5
#define PIECE ((size_t)16384)

struct fixture {
    uv_loop_t loop;
    struct log_turns turns;
    struct worker *workers[READERS];
    size_t in_turn; /* bytes, since the loop polled */
};

struct worker {
    struct log_turn turn;
    struct fixture *f;
    size_t index, piece, left, calls;
    size_t frees; /* which of them it frees when it is called; READERS = none */
};

static void free_worker(struct worker *worker)
{
    log_turn_cancel(&worker->turn);
    worker->f->workers[worker->index] = NULL;
    free(worker);
}

static size_t on_turn(struct log_turn *turn)
{
    struct worker *worker = LIST_ENTRY(turn, struct worker, turn);
    struct fixture *f = worker->f;
    size_t piece = worker->piece;

    f->in_turn += piece;
    worker->calls++;
    if (--worker->left)
        log_turn_wait(&f->turns, turn);
    if (worker->frees < READERS)
        free_worker(f->workers[worker->frees]);
    return piece;
}

static struct worker *add(struct fixture *f, size_t index, size_t piece, size_t count)
{
    struct worker *worker = calloc(1, sizeof(*worker));

    assert_non_null(worker);
    *worker = (struct worker){
        .f = f, .index = index, .piece = piece, .left = count, .frees = READERS
    };
    log_turn_init(&worker->turn, on_turn);
    log_turn_wait(&f->turns, &worker->turn);
    return f->workers[index] = worker;
}

/* What is done until the loop polls. */
static size_t run_turn(struct fixture *f)
{
    f->in_turn = 0;
    (void)uv_run(&f->loop, UV_RUN_NOWAIT);
    return f->in_turn;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    (void)uv_loop_init(&f->loop);
    *state = f;
    log_turns_init(&f->turns, &f->loop);
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < READERS; i++)
        if (f->workers[i])
            free_worker(f->workers[i]);
    log_turns_done(&f->turns);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0)
        ;
    assert_int_equal(uv_loop_close(&f->loop), 0);
    free(f);
    return 0;
}

/* All together have the bytes of one, whoever writes much, and each gets as many calls. */
static void test_one_budget_for_all(void **state)
{
    struct fixture *f = *state;

    for (size_t i = 0; i < READERS; i++)
        (void)add(f, i, i == 0 ? 2 * PIECE : PIECE, 1000);
    for (int turn = 1; turn <= 20; turn++) {
        size_t done = run_turn(f);

        assert_in_range(done, LOG_TURN_BYTES, LOG_TURN_BYTES + 2 * PIECE - 1);
        for (size_t i = 1; i < READERS; i++)
            assert_row(f->workers[0]->calls - f->workers[i]->calls <= 1, "%zu after %d turns", i,
                       turn);
    }
}

/* Looking for what is not there is no free work. */
static void test_calls_that_read_nothing(void **state)
{
    struct fixture *f = *state;

    (void)add(f, 0, 0, 100000);
    (void)run_turn(f);
    assert_in_range(f->workers[0]->calls, 1, 1000);
}

/* The loop polls and calls timers while there is always something to read. */
static void count_up(uv_timer_t *timer)
{
    ++*(int *)timer->data;
}

static void test_timers_go_on(void **state)
{
    struct fixture *f = *state;
    uv_timer_t timer;
    int count = 0;

    (void)uv_timer_init(&f->loop, &timer);
    timer.data = &count;
    (void)uv_timer_start(&timer, count_up, 1, 1);
    (void)add(f, 0, PIECE, SIZE_MAX);
    while (count < 10)
        assert_true(run_turn(f) >= LOG_TURN_BYTES);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)run_turn(f);
}

static void test_ends(void **state)
{
    struct fixture *f = *state;

    (void)add(f, 0, PIECE, 3);
    (void)add(f, 1, PIECE, 1);
    log_turn_wait(&f->turns, &f->workers[0]->turn); /* it waits already */
    log_turn_cancel(&f->workers[1]->turn);
    log_turn_cancel(&f->workers[1]->turn);
    while (uv_run(&f->loop, UV_RUN_DEFAULT) != 0) /* until nobody waits */
        ;
    assert_int_equal(f->workers[0]->calls, 3);
    assert_int_equal(f->workers[1]->calls, 0);
    log_turn_wait(&f->turns, &f->workers[1]->turn);
    assert_int_equal(run_turn(f), PIECE);
}

/* Itself while it would go on, one that waits, one that does not. */
static void test_freed_meanwhile(void **state)
{
    struct fixture *f = *state;

    add(f, 0, PIECE, 2)->frees = 0;
    add(f, 1, PIECE, 1)->frees = 2;
    (void)add(f, 2, PIECE, 1);
    (void)add(f, 3, PIECE, 1);
    add(f, 4, PIECE, 1)->frees = 3;
    assert_int_equal(run_turn(f), 4 * PIECE);
    assert_null(f->workers[0]);
    assert_non_null(f->workers[1]);
    assert_null(f->workers[2]);
    assert_null(f->workers[3]);
    assert_int_equal(run_turn(f), 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_one_budget_for_all), TEST(test_calls_that_read_nothing),
        TEST(test_timers_go_on),       TEST(test_ends),
        TEST(test_freed_meanwhile),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
