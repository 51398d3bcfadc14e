/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of running sessions, one by one: lost ones start before the queue, those beyond a minimum
 * behind it, and these give way to sessions that wait.
 */
#include "world.h"

#include "sched/scheduler_internal.h"

/* ---- growth ---- */

/* A kernel of the session with that row. */
static struct sched_session *waits_kernel(enum sched_unit unit, int64_t row, uint32_t rank,
                                          const char *request)
{
    struct sched_session *s = session(request);

    s->unit = unit;
    s->row = row;
    s->rank = rank;
    return s;
}

static void test_optional_kernels_come_last_and_required_first(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=3");
    waits_kernel(SCHED_OPTIONAL_KERNEL, 1, 2, "cpu=1")->priority = 100; /* the n-th of places() */
    waits_kernel(SCHED_OPTIONAL_KERNEL, 1, 3, "cpu=1")->priority = 100;
    session("cpu=1");
    waits_kernel(SCHED_REQUIRED_KERNEL, 7, 1, "cpu=1");
    run();
    assert_string_equal(placed_in_order(), "4 3 1");
    end();
}

static void test_nothing_grows_behind_one_that_holds_up_the_queue(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=2");
    session("cpu=3");
    world.agents[0].capacity = own("cpu=4");
    waits_kernel(SCHED_OPTIONAL_KERNEL, 9, 2, "cpu=1");
    run();
    assert_string_equal(placed_in_order(), "");
    end();
}

static void test_growth_delays_no_start_time(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    agent("a", "cpu=2")->capacity = own("cpu=4");
    runs("a", "cpu=2", 0, 100);
    session("cpu=3")->lifetime_usec = 100 * USEC_PER_SEC; /* at 100 s */
    waits_kernel(SCHED_OPTIONAL_KERNEL, 9, 2, "cpu=1")->lifetime_usec =
        1000 * USEC_PER_SEC; /* beside it */
    waits_kernel(SCHED_OPTIONAL_KERNEL, 9, 3, "cpu=1")->lifetime_usec =
        1000 * USEC_PER_SEC; /* no longer */
    waits_kernel(SCHED_OPTIONAL_KERNEL, 9, 4, "cpu=1")->lifetime_usec =
        50 * USEC_PER_SEC; /* gone by then */
    run();
    assert_string_equal(placed_in_order(), "2 4");
    end();
}

static void test_kernels_count_for_amounts_and_not_as_sessions(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=8");
    world.accounts[world.snap.account_count++] = (struct sched_account){ .kind = SCHED_KEYPAIR,
                                                                         .name = "k",
                                                                         .limits = own("cpu=3"),
                                                                         .used = own("cpu=1"),
                                                                         .max_sessions = 1,
                                                                         .sessions = 1 };
    for (uint32_t rank = 2; rank < 5; rank++)
        waits_kernel(SCHED_OPTIONAL_KERNEL, 9, rank, "cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    run();
    assert_string_equal(placed_in_order(), "1 2");
    assert_int_equal(verdict_of(2), SCHED_QUOTA);
    end();
}

static void test_a_kernel_joins_near_the_others_and_within_reach(void **state)
{
    static const struct sched_pair cut = { "c", "b" };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=1 mem=9")->topology = "far";
    agent("b", "cpu=1")->topology = "near/1";
    agent("c", "cpu=1")->topology = "near/2";
    agent("d", "cpu=1 mem=9")->topology = "near/2";
    for (size_t i = 0; i < 4; i++)
        world.agents[i].network = "net";
    world.snap.unreachable = &cut;
    world.snap.unreachable_count = 1;
    runs("c", "cpu=1", 1, 0)->row = 9;
    for (uint32_t rank = 2; rank < 6; rank++) {
        struct sched_session *s = waits_kernel(SCHED_OPTIONAL_KERNEL, 9, rank, "cpu=1");

        s->single_node = false;
        s->needs_network = true;
    }
    run();
    assert_string_equal(places(), "c d a -");
    end();
}

/* ---- giving way ---- */

/* An optional kernel that runs. */
static struct sched_session *runs_kernel(const char *agent_id, int64_t row, uint32_t rank,
                                         const char *request)
{
    struct sched_session *s = runs(agent_id, request, 1, 0);

    s->unit = SCHED_OPTIONAL_KERNEL;
    s->row = row;
    s->rank = rank;
    return s;
}

/* "r2 r3": ranks of the victims of the n-th session, "s" for a session. */
static const char *victims_of(size_t n)
{
    static char text[64];
    const struct sched_outcome *out = outcome_of(n);

    text[0] = '\0';
    for (size_t i = 0; i < out->victim_count; i++) {
        const struct sched_session *v = world.running[out->victims[i]].session;

        if (v->unit == SCHED_OPTIONAL_KERNEL)
            (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sr%u", i ? " " : "",
                           (unsigned)v->rank);
        else
            strcat(text, i ? " s" : "s");
    }
    return text;
}

static void test_optional_kernels_give_way_to_any_session(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=0")->capacity = own("cpu=4");
    agent("b", "cpu=0")->capacity = own("cpu=4");
    runs("a", "cpu=2", 1, 0)->is_preemptible = true;
    runs_kernel("a", 9, 2, "cpu=1");
    runs_kernel("b", 9, 4, "cpu=1");
    runs_kernel("b", 9, 3, "cpu=1");
    session("cpu=1")->priority = 0; /* without preemption, of a lower priority */
    run();
    assert_int_equal(verdict_of(0), SCHED_PREEMPTING);
    assert_string_equal(victims_of(0), "r4"); /* the highest rank */
    end();
}

static void test_sessions_are_preempted_only_where_kernels_are_not_enough(void **state)
{
    static const struct {
        const char *want, *victims;
    } rows[] = { { "cpu=2", "r3 r2" }, { "cpu=3", "r3 s" }, { "cpu=5", "" } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.preemption.enabled = true;
        agent("a", "cpu=0")->capacity = own("cpu=5");
        runs("a", "cpu=2", 1, 0)->is_preemptible = true;
        runs_kernel("a", 9, 2, "cpu=1");
        runs_kernel("a", 9, 3, "cpu=1");
        session(rows[i].want)->job_priority = 5;
        run_at(10);
        assert_string_equal(victims_of(0), rows[i].victims);
        end();
    }
}

static void test_optional_kernels_give_way_to_no_optional_one(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("a", "cpu=0")->capacity = own("cpu=4");
    runs_kernel("a", 9, 2, "cpu=1");
    waits_kernel(SCHED_OPTIONAL_KERNEL, 8, 2, "cpu=1");
    waits_kernel(SCHED_REQUIRED_KERNEL, 7, 1, "cpu=1");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(1), SCHED_PREEMPTING);
    end();
}

/* ---- kept between passes ---- */

static void test_a_kernel_that_gave_way_comes_back_behind_the_session(void **state)
{
    struct sched_session elastic, other;
    struct sched_place place = { .agent_id = "a" };
    struct sched_running running = { .session = &elastic, .places = &place, .started_usec = 1 };
    struct sched_result result;
    uint32_t kernel, waiting;
    struct sched *s;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    elastic = make_session(1, "cpu=1");
    other = make_session(2, "cpu=1");
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(s, agent("a", "cpu=1"), NULL), 0);
    elastic.unit = SCHED_OPTIONAL_KERNEL;
    elastic.rank = 2;
    assert_int_equal(sched_add_running(s, &running, &kernel, NULL), 0);
    assert_int_equal(s->optional, 1);
    assert_int_equal(sched_add(s, &other, &waiting, NULL), 0);
    sched_pass(s, 10, &world.arena, &result);
    assert_int_equal(result.count, 1);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PREEMPTING);
    assert_int_equal(result.outcomes[0].victims[0], kernel);
    sched_drop(s, kernel); /* it has ended, and waits again */
    assert_int_equal(sched_add_what_if(s, &elastic, &kernel, NULL), 0);
    sched_pass(s, 11, &world.arena, &result);
    assert_int_equal(result.outcomes[0].session, waiting);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    sched_drop(s, waiting);
    sched_pass(s, 12, &world.arena, &result);
    assert_int_equal(result.outcomes[0].session, kernel);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    sched_free(s);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optional_kernels_come_last_and_required_first),
        cmocka_unit_test(test_nothing_grows_behind_one_that_holds_up_the_queue),
        cmocka_unit_test(test_growth_delays_no_start_time),
        cmocka_unit_test(test_kernels_count_for_amounts_and_not_as_sessions),
        cmocka_unit_test(test_a_kernel_joins_near_the_others_and_within_reach),
        cmocka_unit_test(test_optional_kernels_give_way_to_any_session),
        cmocka_unit_test(test_sessions_are_preempted_only_where_kernels_are_not_enough),
        cmocka_unit_test(test_optional_kernels_give_way_to_no_optional_one),
        cmocka_unit_test(test_a_kernel_that_gave_way_comes_back_behind_the_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
