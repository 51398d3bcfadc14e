/* SPDX-License-Identifier: Apache-2.0 */
/* Twenty sessions and more for each validator, constraint and preemption mode, with
 * the outcome written down by hand.
 */
#include "world.h"

static void assert_nobody_blocks(void)
{
    assert_false(world.result.is_blocked);
}

/* ---- validators ---- */

/* Seven at most, two run: the first five of two thirds of 24; the others are nobody's. */
static void test_concurrency(void **state)
{
    (void)state;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("a", "cpu=64");
        world.accounts[0] = (struct sched_account){ .kind = (enum sched_account_kind)kind,
                                                    .name = "x",
                                                    .used = own(""),
                                                    .max_sessions = 7,
                                                    .sessions = 2 };
        world.snap.account_count = 1;
        for (int i = 0; i < 24; i++)
            session("cpu=1")->accounts[kind] = i % 3 == 2 ? SCHED_NO_ACCOUNT : 0;
        run_at(0);
        assert_string_equal(placed_in_order(), "1 2 3 4 5 6 7 9 12 15 18 21 24");
        assert_int_equal(verdict_of(7), SCHED_CONCURRENCY);
        assert_int_equal(outcome_of(7)->account, 0);
        assert_nobody_blocks();
        end();
    }
}

/* 11 cores, one used; 1, 2, 3, 1, 2, 3 ... are asked for: 9 are taken by the first
 * five, the sixth is too large, the seventh takes the last.
 */
static void test_quota(void **state)
{
    (void)state;
    for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("a", "cpu=64");
        world.accounts[0] = (struct sched_account){ .kind = (enum sched_account_kind)kind,
                                                    .name = "x",
                                                    .limits = own("cpu=11"),
                                                    .used = own("cpu=1") };
        world.snap.account_count = 1;
        for (int i = 0; i < 21; i++)
            session(i % 3 == 0 ? "cpu=1" : i % 3 == 1 ? "cpu=2" : "cpu=3")->accounts[kind] = 0;
        run_at(0);
        assert_string_equal(placed_in_order(), "1 2 3 4 5 7");
        assert_int_equal(verdict_of(5), SCHED_QUOTA);
        assert_int_equal(verdict_of(20), SCHED_QUOTA);
        assert_nobody_blocks();
        end();
    }
}

/* Session n may start at 10 (n - 1) seconds; the last two do not mind, they are interactive. */
static void test_reserved_starts(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=64");
    for (int i = 0; i < 20; i++) {
        session("cpu=1")->starts_usec = i * 10 * USEC_PER_SEC;
        if (i >= 18)
            world.sessions[i].type = SESSION_INTERACTIVE;
    }
    run_at(95);
    assert_string_equal(placed_in_order(), "1 2 3 4 5 6 7 8 9 10 19 20");
    assert_int_equal(verdict_of(10), SCHED_TOO_EARLY);
    run_at(100); /* the very instant will do */
    assert_string_equal(placed_in_order(), "1 2 3 4 5 6 7 8 9 10 11 19 20");
    assert_nobody_blocks();
    end();
}

/* In turn: nothing to wait for, waited for a success, still waiting, waited for a failure. */
static void test_dependencies(void **state)
{
    static const struct session_dependency on[4] = { { .ended = false },
                                                     { .ended = true, .result = RESULT_SUCCESS },
                                                     { .ended = false },
                                                     { .ended = true, .result = RESULT_FAILURE } };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=64");
    for (int i = 0; i < 20; i++) {
        session("cpu=1")->dependencies = &on[i % 4];
        world.sessions[i].dependency_count = i % 4 != 0;
    }
    run_at(0);
    assert_string_equal(placed_in_order(), "1 2 5 6 9 10 13 14 17 18");
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(verdict_of(i), i % 4 == 2   ? SCHED_DEPENDENCY
                                        : i % 4 == 3 ? SCHED_DOOMED
                                                     : SCHED_PLACED);
    assert_nobody_blocks();
    end();
}

/* ---- placement constraints ---- */

/* All ask for b, which takes six; every second one would go elsewhere. */
static void test_designated(void **state)
{
    static const char *const b[] = { "b" };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 1; /* nobody holds up others */
    (void)agent("a", "cpu=16");
    (void)agent("b", "cpu=6");
    for (int i = 0; i < 20; i++) {
        session("cpu=1")->designated = b;
        world.sessions[i].designated_count = 1;
        world.sessions[i].designated_strict = i % 2 == 0;
        world.sessions[i].retries = 1;
    }
    run_at(0);
    assert_string_equal(places(), "b b b b b b - a - a - a - a - a - a - a");
    end();
}

/* Of each five the middle three ask for b or d; turns are taken there, too. */
static void test_turns_among_the_wished_for(void **state)
{
    static const char *const designated[] = { "b", "d" };

    (void)state;
    begin(&sched_fifo, &sched_round_robin);
    for (char id[] = "a"; id[0] <= 'd'; id[0]++)
        (void)agent(id, "cpu=16");
    for (int i = 0; i < 20; i++) {
        session("cpu=1")->designated = designated;
        world.sessions[i].designated_count = i % 5 == 0 || i % 5 == 4 ? 0 : 2;
        world.sessions[i].designated_strict = true;
    }
    run_at(0);
    assert_string_equal(places(), "a b d b c d b d b c d b d b c d b d b c");
    end();
}

static void test_groups(void **state)
{
    static const struct {
        enum sched_grouping grouping;
        const char *places;
    } rows[] = {
        { SCHED_SPREAD, "a b c a b c a b c a b c a b c a b c a b" },
        { SCHED_PACK, "a a a a a a a a b b b b b b b b c c c c" },
    };

    (void)state;
    for (size_t r = 0; r < AQ_COUNT(rows); r++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("a", "cpu=8");
        (void)agent("b", "cpu=8");
        (void)agent("c", "cpu=8");
        for (int i = 0; i < 20; i++) {
            session("cpu=1")->group = "replicas";
            world.sessions[i].grouping = rows[r].grouping;
        }
        run_at(0);
        assert_string_equal(places(), rows[r].places);
        end();
    }
}

/* ---- preemption ---- */

/* Twenty run, the first ten with a core each, the others with two; all as
 * important but 11 to 13, which matter more. Somebody needs eight cores.
 */
static void test_preemption_modes(void **state)
{
    static const struct {
        enum sched_victims order;
        const char *victims;
    } rows[] = {
        { SCHED_OLDEST, "1 2 3 4 5 6 7 8" },
        { SCHED_NEWEST, "20 19 18 17" },
        { SCHED_FEWEST, "14 15 16 17" },
        { SCHED_SMALLEST, "1 2 3 4 5 6 7 8" },
    };

    (void)state;
    for (size_t r = 0; r < AQ_COUNT(rows); r++) {
        char text[128] = "";

        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.preemption = (struct sched_preemption){ .enabled = true,
                                                                   .order = rows[r].order };
        (void)agent("a", "cpu=0");
        for (int i = 0; i < 20; i++) {
            struct sched_session *v = runs("a", i < 10 ? "cpu=1" : "cpu=2", i, 0);

            v->is_preemptible = true;
            v->job_priority = i >= 10 && i < 13 ? 2 : 1;
        }
        session("cpu=8")->job_priority = 5;
        run_at(1000);
        assert_int_equal(verdict_of(0), SCHED_PREEMPTING);
        for (size_t i = 0; i < outcome_of(0)->victim_count; i++)
            (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u", i ? " " : "",
                           outcome_of(0)->victims[i] + 1);
        assert_row(strcmp(text, rows[r].victims) == 0, "%zu: %s", r, text);
        end();
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_concurrency),     cmocka_unit_test(test_quota),
        cmocka_unit_test(test_reserved_starts), cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_designated),      cmocka_unit_test(test_turns_among_the_wished_for),
        cmocka_unit_test(test_groups),          cmocka_unit_test(test_preemption_modes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
