/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "agent/net/ports.h"
#include "base/clock.h"

static int64_t now = 1000;

static int64_t read_now(void *data)
{
    (void)data;
    return now;
}

static bool is_even(uint16_t port)
{
    return port % 2 == 0;
}

static uint16_t take(struct ports *ports)
{
    uint16_t port = 0;

    return ports_take(ports, NULL, &port, NULL) == 0 ? port : 0;
}

static void test_rest(void **state)
{
    struct ports ports;

    (void)state;
    assert_int_equal(ports_init(&ports, 100, 102, 60, NULL), 0);
    assert_int_equal(take(&ports), 100);
    assert_int_equal(take(&ports), 101);
    ports_give(&ports, 100);
    now += 10;
    ports_give(&ports, 101);
    assert_int_equal(take(&ports), 102);
    assert_int_equal(take(&ports), 0); /* both rest */
    now += 50;
    assert_int_equal(take(&ports), 100);
    assert_int_equal(take(&ports), 0);
    now += 10;
    assert_int_equal(take(&ports), 101);
    ports_give(&ports, 99);
    ports_give(&ports, 103);
    now += 1000;
    assert_int_equal(take(&ports), 0);
    ports_done(&ports);
}

static void test_by_number(void **state)
{
    struct ports ports;

    (void)state;
    assert_int_equal(ports_init(&ports, 100, 102, 60, NULL), 0);
    assert_true(ports_take_number(&ports, 101));
    assert_false(ports_take_number(&ports, 101));
    assert_false(ports_take_number(&ports, 99));
    assert_int_equal(take(&ports), 100);
    assert_int_equal(take(&ports), 102);
    assert_int_equal(take(&ports), 0);
    ports_give(&ports, 101);
    ports_give(&ports, 101);                     /* again: nothing */
    assert_true(ports_take_number(&ports, 101)); /* whatever its rest */
    ports_give(&ports, 101);
    now += 60;
    assert_int_equal(take(&ports), 101);
    assert_int_equal(take(&ports), 0);
    ports_done(&ports);
}

static void test_used_by_others(void **state)
{
    struct ports ports;
    uint16_t port;

    (void)state;
    assert_int_equal(ports_init(&ports, 101, 103, 60, NULL), 0);
    assert_int_equal(ports_take(&ports, is_even, &port, NULL), 0);
    assert_int_equal(port, 102);
    assert_int_equal(ports_take(&ports, is_even, &port, NULL), -ENOSPC);
    assert_int_equal(take(&ports), 101); /* the look did not cost their place */
    ports_done(&ports);
}

static void test_bad_ranges(void **state)
{
    struct ports ports;

    (void)state;
    assert_int_equal(ports_init(&ports, 0, 10, 0, NULL), -EINVAL);
    assert_int_equal(ports_init(&ports, 11, 10, 0, NULL), -EINVAL);
    assert_int_equal(ports_init(&ports, 65535, 65535, 0, NULL), 0);
    assert_int_equal(take(&ports), 65535);
    ports_done(&ports);
}

int main(void)
{
    const struct clock clock = { .realtime_usec = read_now, .monotonic_usec = read_now };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest),
        cmocka_unit_test(test_by_number),
        cmocka_unit_test(test_used_by_others),
        cmocka_unit_test(test_bad_ranges),
    };

    clock_set(&clock);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
