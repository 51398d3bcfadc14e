/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler against tables: order, reserved starts, dependencies, limits, clusters. */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"

/* ---- order and blocking ---- */

static void test_blocking(void **state)
{
    (void)state;
    /* One that fits and one that does not. */
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-001", "cpu=4 mem=8192");
    (void)session("cpu=1 mem=1024");
    (void)session("cpu=8 mem=16384");
    (void)session("cpu=1 mem=1024");
    run();
    assert_string_equal(place_of(0), "i-001");
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(2), SCHED_BEHIND);
    end();

    /* It holds up lower priorities too. */
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-001", "cpu=4 mem=8192");
    session("cpu=8 mem=16384")->priority = 10;
    session("cpu=1 mem=1024")->priority = 1;
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(1), SCHED_BEHIND);
    end();

    /* A full agent by number of kernels is no room either. */
    begin(&sched_fifo, &sched_concentrated);
    agent("busy", "cpu=4 mem=8192")->kernels_max = 10;
    world.agents[0].kernels = 10;
    (void)session("cpu=1 mem=1024");
    (void)session("cpu=1 mem=1024");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(world.result.count, 1);
    world.agents[0].kernels = 9;
    run();
    assert_string_equal(place_of(0), "busy");
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    end();

    /* No agent at all: every session is told so, none is held up by another. */
    begin(&sched_fifo, &sched_concentrated);
    (void)session("cpu=1");
    (void)session("cpu=1");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_AGENT);
    assert_int_equal(verdict_of(1), SCHED_NO_AGENT);
    assert_false(world.result.is_blocked);
    end();
}

/* What something else than room speaks against does not hold up others. */
static void test_not_blocking(void **state)
{
    static const struct session_dependency waits = { .ended = false };
    const struct slots *limits, *used;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-001", "cpu=8 mem=16384");
    limits = own("cpu=2");
    used = own("cpu=2");
    world.accounts[0] = (struct sched_account){ .name = "u", .limits = limits, .used = used };
    world.snap.account_count = 1;
    session("cpu=1")->architecture = "aarch64";
    session("cpu=1")->starts_usec = 100;
    (void)session("cpu=1");
    world.sessions[2].dependencies = &waits;
    world.sessions[2].dependency_count = 1;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=1")->priority = 1;
    world.snap.now_usec = 99;
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_AGENT);
    assert_int_equal(verdict_of(1), SCHED_TOO_EARLY);
    assert_int_equal(verdict_of(2), SCHED_DEPENDENCY);
    assert_int_equal(verdict_of(3), SCHED_QUOTA);
    assert_int_equal(world.result.outcomes[3].account, 0);
    assert_string_equal(place_of(4), "i-001");
    end();
}

/* ---- reserved starts ---- */

static void test_reserved(void **state)
{
    static const struct {
        enum session_type type;
        const char *starts;
        bool pass;
    } rows[] = {
        { SESSION_BATCH, "2020-06-29T00:00:01Z", false },
        { SESSION_BATCH, "2020-06-28T23:59:59Z", true },
        { SESSION_BATCH, "2020-06-29T00:00:00-01:00", false },
        { SESSION_BATCH, "2020-06-29T00:00:00-11:00", false },
        { SESSION_BATCH, "2020-06-29T00:00:00+01:00", true },
        { SESSION_BATCH, "2020-06-29T00:00:00+11:00", true },
        { SESSION_BATCH, NULL, true },
        { SESSION_INTERACTIVE, "2020-06-29T00:00:01Z", true },
        { SESSION_BATCH, "2020-06-29T00:00:00Z", true }, /* the same instant */
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-001", "cpu=8");
        session("cpu=1")->type = rows[i].type;
        if (rows[i].starts)
            assert_int_equal(clock_parse_date(rows[i].starts, &world.sessions[0].starts_usec), 0);
        assert_int_equal(clock_parse_date("2020-06-29T00:00:00Z", &world.snap.now_usec), 0);
        run();
        assert_row(verdict_of(0) == (rows[i].pass ? SCHED_PLACED : SCHED_TOO_EARLY), "%s",
                   rows[i].starts ? rows[i].starts : "none");
        end();
    }
}

/* ---- dependencies ---- */

static void test_dependencies(void **state)
{
    static const struct {
        struct session_dependency a, b;
        enum sched_verdict want;
    } rows[] = {
        { { .ended = true, .result = RESULT_SUCCESS },
          { .ended = true, .result = RESULT_SUCCESS },
          SCHED_PLACED },
        { { .ended = true, .result = RESULT_SUCCESS }, { .ended = false }, SCHED_DEPENDENCY },
        { { .ended = false }, { .ended = true, .result = RESULT_FAILURE }, SCHED_DOOMED },
        { { .ended = true, .result = RESULT_UNDEFINED }, { .ended = false }, SCHED_DOOMED },
        { { .condition = DEPENDENCY_FAILURE, .ended = true, .result = RESULT_UNDEFINED },
          { .condition = DEPENDENCY_END, .ended = true, .result = RESULT_FAILURE },
          SCHED_PLACED },
        { { .condition = DEPENDENCY_FAILURE, .ended = true, .result = RESULT_SUCCESS },
          { .condition = DEPENDENCY_END },
          SCHED_DOOMED },
        { { .condition = DEPENDENCY_START, .has_run = true },
          { .condition = DEPENDENCY_START, .ended = true },
          SCHED_PLACED },
        { { .condition = DEPENDENCY_START }, { .condition = DEPENDENCY_END }, SCHED_DEPENDENCY },
        { { .condition = DEPENDENCY_FAILURE, .has_run = true },
          { .condition = DEPENDENCY_END, .has_run = true },
          SCHED_DEPENDENCY },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct session_dependency both[] = { rows[i].a, rows[i].b };

        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-001", "cpu=8");
        (void)session("cpu=1");
        world.sessions[0].dependencies = both;
        world.sessions[0].dependency_count = 2;
        run();
        assert_row(verdict_of(0) == rows[i].want, "%zu", i);
        end();
    }
}

/* ---- limits ---- */

static void test_limits(void **state)
{
    static const struct {
        const char *name, *limits, *used, *request;
        bool missing_is_zero;
        int64_t max_sessions, sessions;
        enum sched_verdict want;
    } rows[] = {
        { "4 + 3 held, 4 more, limit 10", "cpu=10", "cpu=7", "cpu=4", false, 0, 0, SCHED_QUOTA },
        { "just fits", "cpu=10", "cpu=7", "cpu=3", false, 0, 0, SCHED_PLACED },
        { "3 of 3 sessions", NULL, "", "cpu=1", false, 3, 3, SCHED_CONCURRENCY },
        { "2 of 3 sessions", NULL, "", "cpu=1", false, 3, 2, SCHED_PLACED },
        { "0 is no limit", NULL, "", "cpu=1", false, 0, 30, SCHED_PLACED },
        { "unnamed is unlimited", "cpu=4", "", "cpu=1 mem=1024", false, 0, 0, SCHED_PLACED },
        { "unnamed is nothing", "cpu=4", "", "cpu=1 mem=1024", true, 0, 0, SCHED_QUOTA },
        { "what is not wanted is not over", "cuda.shares=2", "", "cpu=1", false, 0, 0,
          SCHED_PLACED },
        { "infinite", "cpu=inf", "cpu=7", "cpu=4", false, 0, 0, SCHED_PLACED },
        { "over already, and wants more", "cpu=4", "cpu=6", "cpu=1", false, 0, 0, SCHED_QUOTA },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
            begin(&sched_fifo, &sched_concentrated);
            (void)agent("i-001", "cpu=16 mem=65536 cuda.shares=4");
            world.accounts[0] = (struct sched_account){ .kind = kind,
                                                        .name = "x",
                                                        .limits = rows[i].limits
                                                                      ? own(rows[i].limits)
                                                                      : NULL,
                                                        .used = own(rows[i].used),
                                                        .missing_is_zero = rows[i].missing_is_zero,
                                                        .max_sessions = rows[i].max_sessions,
                                                        .sessions = rows[i].sessions };
            world.snap.account_count = 1;
            session(rows[i].request)->accounts[kind] = 0;
            run();
            assert_row(verdict_of(0) == rows[i].want, "%s: %s", rows[i].name,
                       sched_verdict_name(verdict_of(0)));
            end();
        }
}

/* Placements of one pass count against the limits of the next in it. */
static void test_limits_within_a_pass(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-001", "cpu=16");
    world.accounts[0] = (struct sched_account){
        .name = "x", .limits = own("cpu=4"), .used = own(""), .max_sessions = 2
    };
    world.snap.account_count = 1;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=4")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=3")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    run();
    assert_int_equal(verdict_of(0), SCHED_PLACED);
    assert_int_equal(verdict_of(1), SCHED_QUOTA);
    assert_int_equal(verdict_of(2), SCHED_PLACED);
    assert_int_equal(verdict_of(3), SCHED_CONCURRENCY);
    end();
}

/* ---- clusters ---- */

static void test_clusters(void **state)
{
    (void)state;
    /* On one node the sum must fit. */
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("low", "cpu=1 mem=2048");
    (void)agent("med", "cpu=4 mem=8192");
    (void)agent("high", "cpu=14 mem=28672");
    (void)session("cpu=4 mem=8192");
    kernel("cpu=2 mem=4096");
    run();
    assert_string_equal(place_of(0), "high");
    assert_int_equal(world.result.outcomes[0].agents[1], 2);
    end();

    /* On several each kernel by itself, all or none. */
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=2");
    (void)agent("b", "cpu=2");
    session("cpu=2")->single_node = false;
    kernel("cpu=2");
    run();
    assert_int_equal(verdict_of(0), SCHED_PLACED);
    assert_int_not_equal(world.result.outcomes[0].agents[0], world.result.outcomes[0].agents[1]);
    kernel("cpu=1");
    (void)session("cpu=2");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(1), SCHED_BEHIND);
    end();
}

static void test_failed_agent(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=1");
    (void)agent("b", "cpu=8");
    session("cpu=1")->failed_agent = "a";
    run();
    assert_string_equal(place_of(0), "b");
    world.sessions[0].failed_agent = "b"; /* now the other, which is best anyway */
    run();
    assert_string_equal(place_of(0), "a");
    world.snap.agent_count = 1; /* nowhere else: back to it */
    world.sessions[0].failed_agent = "a";
    run();
    assert_string_equal(place_of(0), "a");
    end();
}

/* ---- the worked example: sequential arrivals on mixed nodes ---- */

static void test_mixed_nodes(void **state)
{
    static const char *const requests[] = { "cpu=2 mem=1024 cuda.shares=0 rocm.devices=1",
                                            "cpu=1 mem=2048 cuda.shares=0.5 rocm.devices=0",
                                            "cpu=1 mem=1024 cuda.shares=0 rocm.devices=0" };
    static const char *const want[] = { "", "i-gpu", "i-cpu" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(requests); i++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("i-gpu", "cpu=4 mem=4096 cuda.shares=4");
        (void)agent("i-cpu", "cpu=3 mem=2560 cuda.shares=0");
        (void)session(requests[i]);
        run();
        assert_row(strcmp(place_of(0), want[i]) == 0, "p%zu: %s", i, place_of(0));
        end();
    }
}

/* The same snapshot gives the same outcome, and none over what is free: many
 * random snapshots, each run twice and added up.
 */
static void test_random(void **state)
{
    unsigned seed = 42;

    (void)state;
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 300; round++) {
        struct sched_result first;
        int64_t held[AGENTS_MAX] = { 0 };
        char text[64], ids[AGENTS_MAX][16];

        begin(&sched_fifo, round % 2 ? &sched_dispersed : &sched_concentrated);
        for (int a = 0; a < 1 + rand() % AGENTS_MAX; a++) {
            (void)snprintf(ids[a], sizeof(ids[a]), "i-%d", a);
            (void)snprintf(text, sizeof(text), "cpu=%d", rand() % 5);
            (void)agent(ids[a], text);
        }
        for (int s = 0; s < SESSIONS_MAX; s++) {
            (void)snprintf(text, sizeof(text), "cpu=%d", 1 + rand() % 3);
            session(text)->single_node = rand() % 2;
            if (rand() % 2)
                kernel("cpu=1");
        }
        run();
        first = world.result;
        run();
        assert_int_equal(first.count, world.result.count);
        for (size_t i = 0; i < first.count; i++) {
            const struct sched_outcome *o = &first.outcomes[i], *p = &world.result.outcomes[i];
            const struct sched_session *s = &world.sessions[o->session];

            assert_int_equal(o->verdict, p->verdict);
            for (size_t k = 0; o->verdict == SCHED_PLACED && k < s->kernel_count; k++) {
                assert_int_equal(o->agents[k], p->agents[k]);
                held[o->agents[k]] += slots_get(s->kernels[k], "cpu");
            }
        }
        for (size_t a = 0; a < world.snap.agent_count; a++)
            assert_row(held[a] <= slots_get(world.agents[a].free, "cpu"), "round %d", round);
        end();
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocking),    cmocka_unit_test(test_not_blocking),
        cmocka_unit_test(test_reserved),    cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_limits_within_a_pass),
        cmocka_unit_test(test_clusters),    cmocka_unit_test(test_failed_agent),
        cmocka_unit_test(test_mixed_nodes), cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
