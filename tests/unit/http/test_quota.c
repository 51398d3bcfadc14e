/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

#include "http/quota.h"

#define PLACES 1000
#define CLIENTS 4

static struct quota_client *held[CLIENTS][PLACES];

/* As many requests of the client as there may be. */
static size_t quota_fill(struct quota *quota, size_t which)
{
    const char name[] = { (char)('a' + which), '\0' };
    struct aq_error err = { 0 };
    size_t count = 0;
    int r;

    while ((r = quota_enter(quota, name, &held[which][count], &err)) == 0)
        count++;
    assert_int_equal(r, -EAGAIN);
    assert_string_equal(err.kind, "rate-limit-exceeded");
    return count;
}

static void test_there_is_always_room_for_the_next(void **state)
{
    static const size_t expected[CLIENTS] = { 333, 222, 148, 99 }; /* a third of what is left */
    struct quota quota;

    (void)state;
    quota_init(&quota, PLACES, 1 << 20);
    for (size_t i = 0; i < CLIENTS; i++)
        assert_int_equal(quota_fill(&quota, i), expected[i]);
    for (size_t i = 0; i < CLIENTS; i++)
        for (size_t k = 0; k < expected[i]; k++)
            quota_leave(&quota, held[i][k], 0);
    assert_int_equal(quota.requests, 0);
    assert_int_equal(quota.clients.count, 0);
    quota_done(&quota);
}

static void test_everybody_has_a_few_places(void **state)
{
    struct quota quota;

    (void)state;
    quota_init(&quota, 4, 1 << 20);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(quota_fill(&quota, i), QUOTA_REQUESTS_LEAST);
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < QUOTA_REQUESTS_LEAST; k++)
            quota_leave(&quota, held[i][k], 0);
    quota_done(&quota);
}

static void test_bytes_of_one_leave_room_for_others(void **state)
{
    const size_t max = 16 * QUOTA_BYTES_LEAST, step = QUOTA_BYTES_LEAST / 4;
    struct quota_client *greedy, *modest;
    size_t taken = 0, more = 0;
    struct quota quota;

    (void)state;
    quota_init(&quota, PLACES, max);
    assert_int_equal(quota_enter(&quota, "greedy", &greedy, NULL), 0);
    assert_int_equal(quota_enter(&quota, "modest", &modest, NULL), 0);
    while (quota_add_bytes(&quota, greedy, step))
        taken += step;
    assert_in_range(taken, max / 3 - step, max / 3 + step);
    while (quota_add_bytes(&quota, modest, step))
        more += step;
    assert_in_range(more, QUOTA_BYTES_LEAST, max - taken);
    assert_true(quota_add_bytes(&quota, NULL, max - taken - more)); /* nobody's: all there is */
    assert_false(quota_add_bytes(&quota, NULL, 1));
    quota_leave(&quota, NULL, max - taken - more);
    quota_leave(&quota, greedy, taken);
    quota_leave(&quota, modest, more);
    assert_int_equal(quota.bytes, 0);
    quota_done(&quota);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_is_always_room_for_the_next),
        cmocka_unit_test(test_everybody_has_a_few_places),
        cmocka_unit_test(test_bytes_of_one_leave_room_for_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
