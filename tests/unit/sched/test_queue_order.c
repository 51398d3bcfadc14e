/* SPDX-License-Identifier: Apache-2.0 */
/* Sequencers: the vectors of Backend.AI, and queues of twenty sessions and more. */
#include "world.h"

#include "sched/fair.h"

static void owners(size_t count)
{
    world.snap.owner_count = count;
}

/* ---- fifo ---- */

/* Twenty sessions over three bands on 20 cores: by priority, then by age; the
 * eleventh in that order wants more than is left and holds up the rest.
 */
static void test_fifo_twenty(void **state)
{
    static const int priorities[20] = { 10, 10, 50, 10, 0,  50, 10, 0,  10, 50,
                                        10, 0,  50, 10, 10, 0,  50, 10, 0,  10 };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-1", "cpu=12");
    (void)agent("i-2", "cpu=8");
    for (int i = 0; i < 20; i++)
        session(i == 10 ? "cpu=13" : i % 2 ? "cpu=1" : "cpu=2")->priority = priorities[i];
    run_at(0);
    /* 50: 3 6 10 13 17 (2 1 1 2 2); 10: 1 2 4 7 9 (2 1 1 2 2), then 11 has no room */
    assert_string_equal(placed_in_order(), "3 6 10 13 17 1 2 4 7 9");
    assert_int_equal(verdict_of(10), SCHED_NO_ROOM);
    assert_true(world.result.is_blocked);
    assert_int_equal(verdict_of(13), SCHED_BEHIND);
    end();
}

/* Which is tried first, by how often each has failed; N = num_retries_to_skip. */
static void test_skipping(void **state)
{
    static const struct {
        uint32_t n, retries[3];
        const char *order;
    } rows[] = {
        { 5, { 0, 0, 0 }, "1 2 3" },  { 0, { 5, 0, 0 }, "1 2 3" },  { 5, { 5, 4, 3 }, "2 3 1" },
        { 5, { 5, 0, 0 }, "2 3 1" },  { 5, { 5, 10, 0 }, "3 1 2" }, { 5, { 5, 5, 5 }, "1 2 3" },
        { 5, { 0, 10, 0 }, "1 3 2" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.retries_to_skip = rows[i].n;
        (void)agent("i-1", "cpu=4");
        for (int s = 0; s < 3; s++)
            session("cpu=1")->retries = rows[i].retries[s];
        run_at(0);
        assert_row(strcmp(placed_in_order(), rows[i].order) == 0, "%zu: %s", i, placed_in_order());
        end();
    }
}

/* N = 3, four cores; A wants 8, B wants 1: A fails in the first three passes
 * and holds up B, which starts in the fourth; A is tried then, too.
 */
static void test_skipping_worked_example(void **state)
{
    struct sched *s;
    struct sched_result result;
    uint32_t a, b;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 3;
    (void)agent("i-1", "cpu=4");
    (void)session("cpu=8");
    (void)session("cpu=1");
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    assert_int_equal(sched_add(s, &world.sessions[0], &a, NULL), 0);
    assert_int_equal(sched_add(s, &world.sessions[1], &b, NULL), 0);
    for (int pass = 1; pass <= 3; pass++) {
        sched_pass(s, 0, &world.arena, &result);
        assert_true(result.is_blocked);
        assert_int_equal(result.count, pass == 1); /* A's failure is told once */
    }
    sched_pass(s, 0, &world.arena, &result);
    assert_false(result.is_blocked);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.outcomes[0].session, b);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    sched_free(s);
    end();
}

/* Two that failed often block nobody, in either order. */
static void test_two_blockers(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 2;
    (void)agent("i-1", "cpu=20");
    for (int i = 0; i < 24; i++)
        session(i < 2 ? "cpu=64" : "cpu=1")->retries = i < 2 ? 2 : 0;
    run_at(0);
    assert_string_equal(placed_in_order(), "3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22");
    end();
}

/* ---- lifo ---- */

static void test_lifo_twenty(void **state)
{
    (void)state;
    begin(&sched_lifo, &sched_concentrated);
    (void)agent("i-1", "cpu=16");
    for (int i = 0; i < 22; i++)
        session("cpu=1")->priority = i < 11 ? 9 : 1;
    run_at(0);
    assert_string_equal(placed_in_order(), "11 10 9 8 7 6 5 4 3 2 1 22 21 20 19 18");
    end();
}

/* ---- drf ---- */

/* Capacity 10 cpu, 100 mem. A holds {4,10} twice, so .8 in sum; B {5,5}, so .5;
 * C nothing. C's request makes it .5 by mem: then B (older than C's next).
 */
static void test_drf_shares(void **state)
{
    (void)state;
    begin(&sched_drf, &sched_concentrated);
    agent("i-1", "cpu=9 mem=75")->capacity = own("cpu=10 mem=100");
    world.owners[0].used = own("cpu=8 mem=20");
    world.owners[1].used = own("cpu=5 mem=5");
    owners(3);
    session("cpu=1 mem=1")->owner = 0;
    session("cpu=1 mem=1")->owner = 1;
    session("cpu=1 mem=50")->owner = 2;
    run_at(0);
    assert_string_equal(placed_in_order(), "3 2 1");
    end();
}

/* The dominant share may be of another slot for each: cpu-heavy .6, mem-heavy .4. */
static void test_drf_dominance(void **state)
{
    (void)state;
    begin(&sched_drf, &sched_concentrated);
    agent("i-1", "cpu=30 mem=50000 tpu.device=0")->capacity = own(
        "cpu=100 mem=100000 tpu.device=0");
    world.owners[0].used = own("cpu=60 mem=10000");
    world.owners[1].used = own("cpu=10 mem=40000 tpu.device=3"); /* of nothing: not counted */
    owners(3);
    session("cpu=1")->owner = 0;
    session("cpu=1")->owner = 1;
    session("cpu=1")->owner = 2; /* new: first */
    run_at(0);
    assert_string_equal(placed_in_order(), "3 2 1");
    end();
}

/* Three owners with 8 sessions each of 1, 2 and 4 cpus on 28: always the owner who has
 * least goes next, so shares never differ by more than one session.
 */
static void test_drf_in_turn(void **state)
{
    static const char *const requests[] = { "cpu=1", "cpu=2", "cpu=4" };
    int64_t held[3] = { 0 };

    (void)state;
    begin(&sched_drf, &sched_concentrated);
    (void)agent("i-1", "cpu=28");
    owners(3);
    for (int i = 0; i < 24; i++)
        session(requests[i / 8])->owner = (uint32_t)i / 8;
    run_at(0);
    /* 1 2 4 held; 2: 2 2 4; 3 (older): 3 2 4; 10: 3 4 4; 4: 4 4 4; 5 11 18: 5 6 8; 6: 6 6 8;
     * 7: 7 6 8; 12: 7 8 8; 8: 8 8 8; 13: 8 10 8; 19 wants 4 of the 2 that are left
     */
    assert_string_equal(placed_in_order(), "1 9 17 2 3 10 4 5 11 18 6 7 12 8 13");
    assert_int_equal(verdict_of(18), SCHED_NO_ROOM);
    for (size_t i = 0; i < world.result.count; i++)
        if (world.result.outcomes[i].verdict == SCHED_PLACED)
            held[world.result.outcomes[i].session / 8] += INT64_C(1)
                                                          << world.result.outcomes[i].session / 8;
    assert_int_equal(held[0], 8);
    assert_int_equal(held[1], 10);
    assert_int_equal(held[2], 8);
    end();
}

static void test_drf_single_owner(void **state)
{
    (void)state;
    begin(&sched_drf, &sched_concentrated);
    (void)agent("i-1", "cpu=28");
    owners(1);
    for (int i = 0; i < 5; i++)
        session("cpu=1")->owner = 0;
    run_at(0);
    assert_string_equal(placed_in_order(), "1 2 3 4 5");
    end();
}

/* ---- fair share ---- */

/* domain .5, project .9, user .1 | .5 .9 .7 | .6 .1 .1; and somebody unknown. */
static void test_fair_share_twenty(void **state)
{
    (void)state;
    begin(&sched_fair_share, &sched_concentrated);
    (void)agent("i-1", "cpu=18");
    world.owners[0] = (struct sched_owner){ NULL, .5, .9, .1 };
    world.owners[1] = (struct sched_owner){ NULL, .5, .9, .7 };
    world.owners[2] = (struct sched_owner){ NULL, .6, .1, .1 };
    owners(3);
    for (int i = 0; i < 20; i++)
        session("cpu=1")->owner = i % 4 == 3 ? UINT32_MAX : (uint32_t)i % 4;
    run_at(0);
    assert_string_equal(placed_in_order(), "3 7 11 15 19 2 6 10 14 18 1 5 9 13 17 4 8 12");
    end();
}

static void near(double is, double wanted)
{
    assert_row(is > wanted - 1e-5 && is < wanted + 1e-5, "%f, not %f", is, wanted);
}

static void test_fair_figures(void **state)
{
    const struct fair_day week = { 7, 1000 }, both[] = { { 7, 1000 }, { 0, 1000 } },
                          two = { 14, 1000 };
    const struct fair_slot cpu = { 8640000, 100, 1 },
                           with_none[] = { { 8640000, 100, 1 }, { 5, 0, 1000 } };

    (void)state;
    near(fair_decayed(&week, 1, 7), 500);
    near(fair_decayed(both, 2, 7), 1500);
    near(fair_decayed(&week, 1, 14), 707.106781);
    near(fair_decayed(&two, 1, 7), 250);
    near(fair_usage(&cpu, 1, 30), .0333333);
    near(fair_factor(fair_usage(&cpu, 1, 30), 1), .9771599);
    near(fair_factor(1, 1), .5);
    near(fair_factor(1, 2), .7071068);
    near(fair_usage(with_none, 2, 30), .0333333); /* a slot of nothing is not counted */
    near(fair_factor(1000, 1), 1.0 / 1024);       /* the exponent ends at -10 */
    near(fair_usage(NULL, 0, 30), 0);
    near(fair_default_weight("cuda.shares"), 10);
    near(fair_default_weight("mem"), .001);
    near(fair_default_weight("cpu"), 1);
}

/* ---- names ---- */

static void test_names(void **state)
{
    (void)state;
    assert_ptr_equal(sched_find_sequencer("fifo"), &sched_fifo);
    assert_ptr_equal(sched_find_sequencer("lifo"), &sched_lifo);
    assert_ptr_equal(sched_find_sequencer("drf"), &sched_drf);
    assert_ptr_equal(sched_find_sequencer("fair-share"), &sched_fair_share);
    assert_null(sched_find_sequencer("sjf"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fifo_twenty),
        cmocka_unit_test(test_skipping),
        cmocka_unit_test(test_skipping_worked_example),
        cmocka_unit_test(test_two_blockers),
        cmocka_unit_test(test_lifo_twenty),
        cmocka_unit_test(test_drf_shares),
        cmocka_unit_test(test_drf_dominance),
        cmocka_unit_test(test_drf_in_turn),
        cmocka_unit_test(test_drf_single_owner),
        cmocka_unit_test(test_fair_share_twenty),
        cmocka_unit_test(test_fair_figures),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
