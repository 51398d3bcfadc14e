/* SPDX-License-Identifier: Apache-2.0 */
/* What agents could give if they were empty: exact amounts, what holds for all devices, and that
 * the scheduler agrees.
 */
#include "world.h"

#include "sched/capacity.h"

#define TENTH (AMOUNT_ONE / 10)

static void test_exact_amounts(void **state)
{
    static const struct {
        struct capacity_device devices[4];
        int64_t asked, floor, ceiling; /* 0 and -1 = none */
    } rows[] = {
        { { { AMOUNT_ONE, TENTH } }, 550000, 500000, 600000 },
        { { { AMOUNT_ONE, TENTH } }, 500000, 500000, 500000 },
        { { { AMOUNT_ONE, TENTH } }, 50000, 0, 100000 },
        { { { AMOUNT_ONE, TENTH } }, 1050000, 1000000, -1 },
        { { { AMOUNT_ONE, TENTH }, { AMOUNT_ONE, TENTH } }, 1050000, 1000000, 1100000 },
        { { { AMOUNT_ONE, TENTH }, { AMOUNT_ONE, TENTH } }, INT64_MAX, 2000000, -1 },
        { { { AMOUNT_ONE, 0 }, { AMOUNT_ONE, 0 } }, 1999999, 1999999, 1999999 },
        /* two equal parts of 4 at most: nothing between 10 and ... */
        { { { 10, 1 }, { 4, 1 } }, 11, 10, -1 },
        { { { 10, 1 }, { 6, 1 } }, 11, 11, 11 },
        { { { 10, 1 }, { 6, 1 } }, 13, 12, -1 },
        { { { 10, 1 }, { 9, 1 }, { 7, 1 } }, 19, 18, 21 },
        /* of two quanta, whichever is nearer */
        { { { 10, 5 }, { 9, 3 } }, 7, 6, 9 },
        { { { 10, 5 }, { 9, 3 } }, 10, 10, 10 },
        { { { 7, 5 } }, 7, 5, -1 }, /* what is left of a device is given to nobody */
        { { { 0, 0 } }, 1, 0, -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        size_t count = 0;
        int64_t ceiling = rows[i].ceiling < 0 ? INT64_MAX : rows[i].ceiling;

        while (count < 4 && rows[i].devices[count].capacity)
            count++;
        assert_row(capacity_floor(rows[i].devices, count, false, rows[i].asked) == rows[i].floor,
                   "%zu", i);
        assert_row(capacity_ceiling(rows[i].devices, count, false, rows[i].asked) == ceiling, "%zu",
                   i);
    }
}

/* Of what may be split, whatever the devices of one quantum have together. */
static void test_split_amounts(void **state)
{
    static const struct {
        struct capacity_device devices[4];
        int64_t asked, floor, ceiling; /* 0 and -1 = none */
    } rows[] = {
        { { { 10, 1 }, { 4, 1 } }, 11, 11, 11 },
        { { { 10, 1 }, { 4, 1 } }, 15, 14, -1 },
        { { { 10, 5 }, { 9, 3 } }, 11, 10, -1 },
        { { { 10, 5 }, { 9, 5 } }, 11, 10, 15 },
        { { { AMOUNT_ONE, TENTH }, { AMOUNT_ONE, TENTH } }, 1050000, 1000000, 1100000 },
        { { { INT64_MAX, 1 }, { INT64_MAX, 1 } }, 7, 7, 7 },
        { { { 0, 0 } }, 1, 0, -1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        int64_t ceiling = rows[i].ceiling < 0 ? INT64_MAX : rows[i].ceiling;
        size_t count = 0;

        while (count < 4 && rows[i].devices[count].capacity)
            count++;
        assert_row(capacity_floor(rows[i].devices, count, true, rows[i].asked) == rows[i].floor,
                   "%zu", i);
        assert_row(capacity_ceiling(rows[i].devices, count, true, rows[i].asked) == ceiling, "%zu",
                   i);
    }
}

/* Does a pass place it on the agent while that is empty? */
static bool is_placed(const struct capacity_device *devices, size_t count, int64_t asked)
{
    static const char slot[] = "cuda.shares";
    char request[64], free[64];
    int64_t sum = 0;
    bool placed;

    begin(&sched_fifo, &sched_concentrated);
    for (size_t d = 0; d < count; d++) {
        world.devices[0][d] = (struct sched_device){ slot_name_intern(slot, strlen(slot)), NULL,
                                                     devices[d].capacity, devices[d].capacity,
                                                     devices[d].quantum };
        sum += devices[d].capacity;
    }
    (void)snprintf(free, sizeof(free), "cuda.shares=%.6f", (double)sum / AMOUNT_ONE);
    (void)snprintf(request, sizeof(request), "cuda.shares=%.6f", (double)asked / AMOUNT_ONE);
    (void)agent("a", free);
    world.agents[0].capacity = world.agents[0].free;
    world.agents[0].devices = world.devices[0];
    world.agents[0].device_count = count;
    session(request);
    run_at(0);
    placed = verdict_of(0) == SCHED_PLACED;
    assert_true(placed || verdict_of(0) == SCHED_NO_CAPACITY);
    end();
    return placed;
}

/* Every amount on many sets of small devices: what fits is what a pass places, the nearest fit,
 * and nothing between them does.
 */
static void test_scheduler_agrees(void **state)
{
    static const int64_t quanta[] = { 0, 1, 2, 3 };
    unsigned seed = 7;

    (void)state;
    for (int round = 0; round < 150; round++) {
        struct capacity_device devices[4];
        size_t count = 1 + (size_t)(seed = seed * 1103515245u + 12345u) / 65536 % 4;
        int64_t last = 0;

        for (size_t d = 0; d < count; d++) {
            seed = seed * 1103515245u + 12345u;
            devices[d].capacity = 1 + seed / 65536 % 7;
            devices[d].quantum = quanta[seed / 4194304 % (round % 2 ? 4 : 1)];
        }
        for (int64_t asked = 1; asked <= 30; asked++) {
            bool fits = is_placed(devices, count, asked);

            last = fits ? asked : last;
            assert_row(capacity_floor(devices, count, false, asked) == last, "%d: %d", round,
                       (int)asked);
            assert_row((capacity_ceiling(devices, count, false, asked) == asked) == fits, "%d: %d",
                       round, (int)asked);
            for (int64_t below = asked; fits && below > 0; below--) {
                int64_t above = capacity_ceiling(devices, count, false, below);

                assert_true(above >= below && above <= asked);
                assert_true(capacity_floor(devices, count, false, above) == above);
            }
        }
    }
}

/* What no agent could hold if it were empty waits aside; those behind it start. */
static void test_waits_aside(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=2")->capacity = own("cpu=4");
    session("cpu=5");
    session("cpu=2");
    run_at(0);
    assert_int_equal(verdict_of(0), SCHED_NO_CAPACITY);
    assert_string_equal(places(), "- a");
    assert_false(world.result.is_blocked);
    end();

    begin(&sched_fifo, &sched_concentrated); /* what only waits for room holds up others as ever */
    agent("a", "cpu=2")->capacity = own("cpu=4");
    session("cpu=4");
    session("cpu=2");
    run_at(0);
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_string_equal(places(), "- -");
    end();
}

/* Agents that take nothing count for nothing; neither do others than the designated. */
static void test_which_agents_count(void **state)
{
    static const char *const only_small[] = { "small" };

    (void)state;
    for (int n = 0; n < 4; n++) {
        begin(&sched_fifo, &sched_concentrated);
        agent("large", "cpu=0")->capacity = own("cpu=8");
        world.agents[0].is_closed = n & 1;
        agent("small", "cpu=2")->capacity = own("cpu=2");
        session("cpu=4");
        world.sessions[0].designated = only_small;
        world.sessions[0].designated_count = n >> 1;
        world.sessions[0].designated_strict = true;
        run_at(0);
        assert_int_equal(verdict_of(0), n == 0 ? SCHED_NO_ROOM : SCHED_NO_CAPACITY);
        end();
    }
}

/* Containers on different agents: each fits, all of them have to. */
static void test_containers(void **state)
{
    (void)state;
    for (int containers = 2; containers <= 5; containers++) {
        begin(&sched_fifo, &sched_concentrated);
        agent("a", "cpu=1")->capacity = own("cpu=4");
        agent("b", "cpu=1")->capacity = own("cpu=5");
        session("cpu=2")->single_node = false;
        for (int k = 1; k < containers; k++)
            kernel("cpu=2");
        run_at(0);
        assert_int_equal(verdict_of(0), containers <= 4 ? SCHED_NO_ROOM : SCHED_NO_CAPACITY);
        end();
    }
}

/* Kept between passes: it comes back into the order with an agent that can hold it. */
static void test_agent_arrives(void **state)
{
    AQ_CLEANUP(sched_freep) struct sched *s = NULL;
    struct sched_options options = { .sequencer = &sched_fifo,
                                     .selector = { .ops = &sched_concentrated } };
    struct sched_session large, small;
    struct sched_result result;
    struct sched_agent a = { .id = "a" }, b = { .id = "b" };
    uint32_t handle;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    a.free = a.capacity = own("cpu=4");
    b.free = b.capacity = own("cpu=16");
    large = make_session(1, "cpu=8");
    small = make_session(2, "cpu=4");
    s = sched_new(world.types, &options);
    assert_int_equal(sched_set_agent(s, &a, NULL), 0);
    assert_int_equal(sched_add(s, &large, &handle, NULL), 0);
    sched_pass(s, 0, &world.arena, &result);
    assert_int_equal(result.outcomes[0].verdict, SCHED_NO_CAPACITY);
    assert_int_equal(sched_add(s, &small, &handle, NULL), 0);
    assert_int_equal(sched_set_agent(s, &b, NULL), 0);
    sched_pass(s, 1, &world.arena, &result);
    assert_int_equal(result.count, 2);
    assert_int_equal(result.outcomes[0].session, 0);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact_amounts),      cmocka_unit_test(test_split_amounts),
        cmocka_unit_test(test_scheduler_agrees),   cmocka_unit_test(test_waits_aside),
        cmocka_unit_test(test_which_agents_count), cmocka_unit_test(test_containers),
        cmocka_unit_test(test_agent_arrives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
