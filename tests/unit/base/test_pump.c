/* SPDX-License-Identifier: Apache-2.0 */
/* Two ends that note what a pump does with them. */
#include "unit/testing.h"

#include <errno.h>

#include "base/pump.h"

struct noted {
    struct strbuf bytes;
    int answer; /* of put() */
    bool is_paused, is_finished;
    struct pump *gives; /* the client, as soon as it may go on */
};

static int noted_put(void *end, const char *bytes, size_t len)
{
    struct noted *noted = end;

    assert_false(noted->is_finished);
    if (noted->answer >= 0)
        strbuf_add(&noted->bytes, bytes, len);
    return noted->answer;
}

static void noted_pause(void *end, bool is_paused)
{
    struct noted *noted = end;

    assert_int_not_equal(noted->is_paused, is_paused);
    noted->is_paused = is_paused;
    if (noted->gives && !is_paused)
        assert_int_equal(pump_give(noted->gives, PUMP_CLIENT, "later", 5), 0);
}

static void noted_finish(void *end)
{
    struct noted *noted = end;

    assert_false(noted->is_finished);
    noted->is_finished = true;
}

static const struct pump_ops noted_ops = { noted_put, noted_pause, noted_finish };

struct fixture {
    struct pump pump;
    struct noted ends[PUMP_SIDES];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    *state = f;
    pump_init(&f->pump);
    for (int side = 0; side < PUMP_SIDES; side++)
        strbuf_init(&f->ends[side].bytes);
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    pump_done(&f->pump);
    for (int side = 0; side < PUMP_SIDES; side++)
        strbuf_done(&f->ends[side].bytes);
    free(f);
    return 0;
}

static struct noted *join(struct fixture *f, enum pump_side side)
{
    pump_join(&f->pump, side, &noted_ops, &f->ends[side]);
    return &f->ends[side];
}

static void test_both_ways(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT), *kernel = join(f, PUMP_KERNEL);

    assert_int_equal(pump_open(&f->pump, PUMP_CLIENT), 0);
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "typed", 5), 0);
    assert_int_equal(pump_give(&f->pump, PUMP_KERNEL, "shown", 5), 0);
    assert_string_equal(kernel->bytes.data, "typed");
    assert_string_equal(client->bytes.data, "shown");
    assert_false(client->is_paused || kernel->is_paused);
}

static void test_the_giver_waits_for_a_full_end(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT), *kernel = join(f, PUMP_KERNEL);

    (void)pump_open(&f->pump, PUMP_CLIENT);
    (void)pump_open(&f->pump, PUMP_KERNEL);
    client->answer = 1;
    assert_int_equal(pump_give(&f->pump, PUMP_KERNEL, "a", 1), 0);
    assert_true(kernel->is_paused);
    assert_int_equal(pump_give(&f->pump, PUMP_KERNEL, "b", 1), 0); /* was under way */
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "c", 1), 0); /* the other way is free */
    assert_false(client->is_paused);
    pump_drained(&f->pump, PUMP_KERNEL); /* not the one that was full */
    assert_true(kernel->is_paused);
    pump_drained(&f->pump, PUMP_CLIENT);
    assert_false(kernel->is_paused);
    pump_drained(&f->pump, PUMP_CLIENT); /* once is enough */
    assert_string_equal(client->bytes.data, "ab");
}

static void test_bytes_wait_until_it_is_open(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT), *kernel;

    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "ea", 2), 0);
    assert_true(client->is_paused);
    kernel = join(f, PUMP_KERNEL);
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "rly", 3), 0);
    pump_finish(&f->pump, PUMP_CLIENT);
    pump_drained(&f->pump, PUMP_KERNEL); /* not open yet: its own affair */
    assert_true(client->is_paused);
    assert_int_equal(kernel->bytes.len, 0);
    assert_false(kernel->is_finished);
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_string_equal(kernel->bytes.data, "early");
    assert_true(kernel->is_finished);
    assert_false(client->is_paused);
}

static void test_what_waits_can_make_it_full(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT), *kernel = join(f, PUMP_KERNEL);

    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "early", 5), 0);
    kernel->answer = 1;
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_true(client->is_paused);
    pump_drained(&f->pump, PUMP_KERNEL);
    assert_false(client->is_paused);
}

static void test_so_much_may_wait_without_a_pause(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT), *kernel = join(f, PUMP_KERNEL);

    pump_set_early(&f->pump, PUMP_KERNEL, 5);
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "head", 4), 0);
    assert_false(client->is_paused);
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "b", 1), 0);
    assert_true(client->is_paused);
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_string_equal(kernel->bytes.data, "headb");
    assert_false(client->is_paused);
}

static void test_a_giver_can_wait_from_the_start(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT);

    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, NULL, 0), 0);
    assert_true(client->is_paused);
    (void)join(f, PUMP_KERNEL);
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_false(client->is_paused);
}

static void test_what_waits_goes_first(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT), *kernel = join(f, PUMP_KERNEL);

    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "early ", 6), 0);
    client->gives = &f->pump;
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_string_equal(kernel->bytes.data, "early later");
}

static void test_a_giver_that_joins_late_is_paused(void **state)
{
    struct fixture *f = *state;
    struct noted *client;

    (void)join(f, PUMP_KERNEL);
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, "head", 4), 0);
    client = join(f, PUMP_CLIENT);
    assert_true(client->is_paused);
    assert_int_equal(pump_open(&f->pump, PUMP_KERNEL), 0);
    assert_false(client->is_paused);
}

static void test_an_end_that_fails_or_is_gone(void **state)
{
    struct fixture *f = *state;
    struct noted *client = join(f, PUMP_CLIENT);

    (void)join(f, PUMP_KERNEL);
    (void)pump_open(&f->pump, PUMP_CLIENT);
    client->answer = -ENOBUFS;
    assert_int_equal(pump_give(&f->pump, PUMP_KERNEL, "a", 1), -ENOBUFS);
    pump_part(&f->pump, PUMP_CLIENT);
    assert_int_equal(pump_give(&f->pump, PUMP_KERNEL, "a", 1), -EPIPE);
    pump_finish(&f->pump, PUMP_KERNEL);
    assert_false(client->is_finished);
}

static void test_what_waits_is_bounded(void **state)
{
    struct fixture *f = *state;
    size_t len = (size_t)1 << 20, given = 0;
    char *bytes = calloc(1, len);

    assert_non_null(bytes);
    while (pump_give(&f->pump, PUMP_CLIENT, bytes, len) == 0)
        assert_true((given += len) <= (size_t)8 << 20);
    assert_int_equal(pump_give(&f->pump, PUMP_CLIENT, bytes, len), -ENOBUFS);
    assert_int_equal(given, (size_t)8 << 20);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_both_ways, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_giver_waits_for_a_full_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_wait_until_it_is_open, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_waits_can_make_it_full, setup, teardown),
        cmocka_unit_test_setup_teardown(test_so_much_may_wait_without_a_pause, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_giver_can_wait_from_the_start, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_waits_goes_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_giver_that_joins_late_is_paused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_end_that_fails_or_is_gone, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_waits_is_bounded, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
