/* SPDX-License-Identifier: Apache-2.0 */
/* Which replica takes a request: by load and share, and by a key. */
#include "testing.h"

#include "serving/balance.h"

#define SHARE INT64_C(1000000)

static void test_the_least_loaded_takes_it(void **state)
{
    static const struct {
        const char *name;
        struct balance_replica replicas[3];
        size_t turn, want;
    } cases[] = {
        { "fewest requests",
          { { .weight = SHARE, .in_flight = 2 },
            { .weight = SHARE, .in_flight = 1 },
            { .weight = SHARE, .in_flight = 3 } },
          0,
          1 },
        { "twice the share takes twice",
          { { .weight = SHARE, .in_flight = 1 },
            { .weight = 2 * SHARE, .in_flight = 2 },
            { .weight = SHARE, .in_flight = 1 } },
          0,
          1 },
        { "equal ones take turns",
          { { .weight = SHARE }, { .weight = SHARE }, { .weight = SHARE } },
          5,
          2 },
        { "a cap",
          { { .weight = SHARE, .in_flight = 1, .cap = 1 },
            { .weight = SHARE, .in_flight = 8 },
            { .weight = SHARE, .in_flight = 9 } },
          0,
          1 },
        { "all at their caps",
          { { .weight = SHARE, .in_flight = 1, .cap = 1 },
            { .weight = SHARE, .in_flight = 1, .cap = 1 },
            { .weight = SHARE, .in_flight = 1, .cap = 1 } },
          0,
          BALANCE_NONE },
        { "unhealthy only without others",
          { { .weight = SHARE, .rank = BALANCE_UNHEALTHY },
            { .weight = SHARE, .in_flight = 50 },
            { .weight = SHARE, .rank = BALANCE_EJECTED } },
          0,
          1 },
        { "waits for a good one at its cap",
          { { .weight = SHARE, .rank = BALANCE_UNHEALTHY },
            { .weight = SHARE, .in_flight = 1, .cap = 1 },
            { .weight = SHARE, .rank = BALANCE_CLOSED } },
          0,
          BALANCE_NONE },
        { "all are ejected",
          { { .weight = SHARE, .rank = BALANCE_EJECTED, .in_flight = 1 },
            { .weight = SHARE, .rank = BALANCE_EJECTED },
            { .weight = SHARE, .rank = BALANCE_CLOSED } },
          0,
          1 },
        { "none is open",
          { { .weight = SHARE, .rank = BALANCE_CLOSED },
            { .weight = SHARE, .rank = BALANCE_CLOSED },
            { .weight = SHARE, .rank = BALANCE_CLOSED } },
          0,
          BALANCE_NONE },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        assert_row(balance_choose(cases[i].replicas, 3, cases[i].turn) == cases[i].want, "%s",
                   cases[i].name);
    assert_int_equal(balance_choose(NULL, 0, 0), BALANCE_NONE);
    assert_int_equal(balance_choose_by_key(NULL, 0, 7), BALANCE_NONE);
    assert_false(balance_is_open(cases[8].replicas, 3));
    assert_true(balance_is_open(cases[4].replicas, 3));
}

static void test_weights(void **state)
{
    (void)state;
    assert_int_equal(balance_weight(1000000, 1000000), 1000000);
    assert_int_equal(balance_weight(250000, 500000), 125000);
    assert_int_equal(balance_weight(1000000, 0), 1);
    assert_int_equal(balance_weight(INT64_MAX, INT64_MAX), INT64_C(1) << 40);
}

static void fill(struct balance_replica *replicas, size_t count)
{
    for (size_t i = 0; i < count; i++)
        replicas[i] = (struct balance_replica){ .hash = balance_hash(1, &i, sizeof(i)),
                                                .weight = SHARE };
}

static void test_a_key_stays_with_its_replica(void **state)
{
    struct balance_replica four[4], three[3];
    size_t counts[4] = { 0 }, moved = 0;

    (void)state;
    fill(four, 4);
    four[3].weight = 3 * SHARE;
    memcpy(three, four, sizeof(three));
    for (uint64_t key = 0; key < 6000; key++) {
        size_t at = balance_choose_by_key(four, 4, key);

        assert_int_equal(balance_choose_by_key(four, 4, key), at);
        counts[at]++;
        moved += at < 3 && balance_choose_by_key(three, 3, key) != at;
    }
    assert_int_equal(moved, 0); /* only those of the one that left move */
    for (size_t i = 0; i < 3; i++)
        assert_in_range(counts[i], 800, 1200); /* a sixth */
    assert_in_range(counts[3], 2700, 3300);
}

static void test_no_key_overloads_a_replica(void **state)
{
    struct balance_replica replicas[4];

    (void)state;
    fill(replicas, 4);
    for (int i = 0; i < 400; i++)
        replicas[balance_choose_by_key(replicas, 4, 42)].in_flight++;
    for (size_t i = 0; i < 4; i++)
        assert_in_range(replicas[i].in_flight, 1, 125);
}

static void test_a_key_keeps_to_caps_and_ranks(void **state)
{
    struct balance_replica replicas[3];
    size_t first, second;

    (void)state;
    fill(replicas, 3);
    first = balance_choose_by_key(replicas, 3, 9);
    replicas[first].rank = BALANCE_EJECTED;
    second = balance_choose_by_key(replicas, 3, 9);
    assert_int_not_equal(first, second);
    replicas[second].cap = replicas[second].in_flight = 1;
    assert_int_equal(balance_choose_by_key(replicas, 3, 9), 3 - first - second);
    replicas[3 - first - second].rank = BALANCE_CLOSED;
    assert_int_equal(balance_choose_by_key(replicas, 3, 9), BALANCE_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_least_loaded_takes_it),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_a_key_stays_with_its_replica),
        cmocka_unit_test(test_no_key_overloads_a_replica),
        cmocka_unit_test(test_a_key_keeps_to_caps_and_ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
