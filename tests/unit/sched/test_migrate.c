/* SPDX-License-Identifier: Apache-2.0 */
/* Migration: sessions that are movable start elsewhere so that one that waits can start,
 * never without a place held for it, and as few as will do.
 */
#include "migrations.h"

/* ---- one session that waits, of cpu=3 and job priority 5, at 1000 s ---- */

static const struct {
    const char *why, *free[3]; /* of a, b, c */
    struct {
        const char *agent, *request;
        int64_t started;
        int priority;
    } running[4];
    const char *want, *agent;
} rows[] = {
    { "one is enough", { "cpu=1", "cpu=2", "cpu=0" }, { { "a", "cpu=2", 1, 0 } }, "1>b", "a" },
    { "nowhere to go", { "cpu=1", "cpu=1", "cpu=0" }, { { "a", "cpu=2", 1, 0 } }, "", "" },
    { "its own agent is no other",
      { "cpu=2", "cpu=0", "cpu=0" },
      { { "a", "cpu=2", 1, 0 } },
      "",
      "" },
    { "the youngest, who loses least",
      { "cpu=1", "cpu=2", "cpu=0" },
      { { "a", "cpu=2", 1, 0 }, { "a", "cpu=2", 9, 0 }, { "a", "cpu=2", 5, 0 } },
      "2>b",
      "a" },
    { "the less important, though older",
      { "cpu=1", "cpu=2", "cpu=0" },
      { { "a", "cpu=2", 9, 4 }, { "a", "cpu=2", 1, 3 } },
      "2>b",
      "a" },
    { "one rather than two",
      { "cpu=1", "cpu=2", "cpu=0" },
      { { "a", "cpu=1", 8, 0 }, { "a", "cpu=1", 9, 0 }, { "a", "cpu=2", 1, 0 } },
      "3>b",
      "a" },
    { "two to one agent",
      { "cpu=1", "cpu=2", "cpu=0" },
      { { "a", "cpu=1", 8, 0 }, { "a", "cpu=1", 9, 0 } },
      "2>b 1>b",
      "a" },
    { "two to two agents",
      { "cpu=1", "cpu=1", "cpu=1" },
      { { "a", "cpu=1", 8, 0 }, { "a", "cpu=1", 9, 0 } },
      "2>b 1>c",
      "a" },
    { "the larger chooses first",
      { "cpu=0", "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 9, 0 }, { "a", "cpu=2", 8, 0 } },
      "2>b 1>c",
      "a" },
    { "where they have run least",
      { "cpu=2", "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 1, 0 }, { "b", "cpu=1", 2, 0 } },
      "2>c",
      "b" },
    { "the fuller of two that will do",
      { "cpu=1", "cpu=2", "cpu=2 mem=5" },
      { { "a", "cpu=2", 1, 0 } },
      "1>b",
      "a" },
    { "as important may be moved",
      { "cpu=1", "cpu=2", "cpu=0" },
      { { "a", "cpu=2", 1, 5 } },
      "1>b",
      "a" },
    { "more important may not", { "cpu=1", "cpu=2", "cpu=0" }, { { "a", "cpu=2", 1, 6 } }, "", "" },
    { "three are as many as it may be",
      { "cpu=0", "cpu=3", "cpu=0" },
      { { "a", "cpu=1", 1, 0 }, { "a", "cpu=1", 2, 0 }, { "a", "cpu=1", 3, 0 } },
      "",
      "" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        moving();
        for (int a = 0; a < 3; a++)
            (void)agent((const char *[]){ "a", "b", "c" }[a], rows[i].free[a]);
        for (size_t v = 0; v < 4 && rows[i].running[v].agent; v++)
            (void)movable(rows[i].running[v].agent, rows[i].running[v].request,
                          rows[i].running[v].started, rows[i].running[v].priority);
        session("cpu=3")->job_priority = 5;
        run_at(1000);
        if (i + 1 == AQ_COUNT(rows)) { /* b has room for it: nobody is moved */
            assert_string_equal(place_of(0), "b");
            end();
            continue;
        }
        assert_row(strcmp(migrations_of(0), rows[i].want) == 0, "%s: %s", rows[i].why,
                   migrations_of(0));
        assert_row(verdict_of(0) == (*rows[i].want ? SCHED_PREEMPTING : SCHED_NO_ROOM), "%s",
                   rows[i].why);
        if (*rows[i].want)
            assert_string_equal(world.agents[outcome_of(0)->agents[0]].id, rows[i].agent);
        end();
    }
}

/* Who is not moved: not asked, too young, somebody else's, a gang; and where nobody is. */
static void test_protected(void **state)
{
    (void)state;
    for (int way = 0; way < 7; way++) {
        struct sched_session *v, *s;

        moving();
        world.snap.options.preemption.min_runtime_usec = way == 1 ? 2000 * USEC_PER_SEC : 0;
        (void)agent("a", "cpu=0");
        (void)agent("b", "cpu=1");
        v = movable("a", "cpu=1", 2000, 0);
        s = session("cpu=2");
        world.agents[0].free = own("cpu=1");
        v->is_movable = way != 0;
        v->scope = way == 2 ? "ann" : NULL;
        s->scope = way == 2 ? "bob" : NULL;
        world.snap.options.preemption.moves = way != 3;
        if (way == 4) /* the second container has no place */
            runs_also("a", "cpu=1");
        v->job_priority = way == 5;
        run_at(3000);
        assert_row(verdict_of(0) == (way == 6 ? SCHED_PREEMPTING : SCHED_NO_ROOM), "%d", way);
        end();
    }
}

/* Migration comes before preemption, and preemption where migration does not help. */
static void test_before_displacing(void **state)
{
    (void)state;
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        moving();
        world.snap.options.preemption.enabled = true;
        (void)agent("a", "cpu=0");
        (void)agent("b", elsewhere ? "cpu=1" : "cpu=0");
        movable("a", "cpu=1", 1, 0)->is_preemptible = true;
        session(elsewhere ? "cpu=1 mem=0" : "cpu=1")->job_priority = 5;
        world.agents[0].free = own("cpu=0 mem=9");
        if (elsewhere)
            world.kernels[world.kernel_count - 1] = own("cpu=1 mem=1"); /* b has no memory */
        run_at(1000);
        assert_int_equal(verdict_of(0), SCHED_PREEMPTING);
        assert_true(!outcome_of(0)->targets == !elsewhere);
        end();
    }
}

/* Half of each card is free on a; what has the other half of one goes to b. */
static void test_devices(void **state)
{
    static const struct sched_part first = { 0, AMOUNT_ONE / 2 }, second = { 1, AMOUNT_ONE / 2 };

    (void)state;
    moving();
    (void)agent("a", "cuda.shares=1");
    DEVICES(NULL, 0.5, 0.5);
    (void)agent("b", "cuda.shares=0.5");
    DEVICES(NULL, 0.5);
    (void)movable("a", "cuda.shares=0.5", 1, 0);
    world.places[0][0].parts = &first;
    world.places[0][0].part_count = 1;
    (void)movable("a", "cuda.shares=0.5", 2, 0);
    world.places[1][0].parts = &second;
    world.places[1][0].part_count = 1;
    (void)session("cuda.shares=1");
    run_at(1000);
    assert_string_equal(migrations_of(0), "2>b");
    end();
}

/* ---- twenty-one that run and four that wait, by hand ---- */

static void make_day(void)
{
    static const struct {
        const char *agent;
        int count, cpu, started;
        bool stays;
    } day[] = {
        { "a", 7, 1, 1, false },  /* 1-7 */
        { "b", 3, 2, 11, false }, /* 8-10 */
        { "c", 1, 5, 21, true },  /* 11 */
        { "d", 8, 1, 31, true },  /* 12-19 */
        { "e", 2, 4, 41, false }, /* 20, 21 */
    };

    moving();
    world.snap.options.retries_to_skip = 1; /* nobody holds up others */
    for (size_t i = 0; i < AQ_COUNT(day); i++) {
        (void)agent(day[i].agent, "cpu=8");
        for (int k = 0; k < day[i].count; k++) {
            char text[16];

            (void)snprintf(text, sizeof(text), "cpu=%d", day[i].cpu);
            movable(day[i].agent, text, day[i].started + k, 0)->is_movable = !day[i].stays;
        }
    }
    world.running_sessions[19].job_priority = 9;
    for (int i = 0; i < 4; i++) {
        struct sched_session *s = session(
            (const char *[]){ "cpu=4", "cpu=3", "cpu=2", "cpu=1" }[i]);

        s->job_priority = 5;
        s->retries = 1;
    }
    keep_all();
}

static void test_day(void **state)
{
    (void)state;
    make_day();
    /* free: a 1, b 2, c 3, d 0, e 0. 4 cores: the youngest of b goes to c. 3 cores: a has two that
     * could go, but only c has one core left, e has one of 4 with nowhere to go. 2 cores: the
     * youngest of a to c. 1 core: nobody has a place left to go to.
     */
    assert_string_equal(pass_at(1000), "1:moving@b (10>c) 2:no-room 3:moving@a (7>c) 4:no-room ");
    assert_string_equal(pass_at(1001), "");
    comes_back(9, 4);
    /* it has its place at once, and leaves its own to the one that it made room for */
    assert_string_equal(pass_at(1002), "1:placed@b 5:placed@c ");
    comes_back(6, 5);
    assert_string_equal(pass_at(1003), "3:placed@a 6:placed@c ");
    assert_string_equal(pass_at(1004), "");
    sched_free(kept);
    end();
}

/* Who is moved ends for good meanwhile: its place is for others. */
static void test_one_that_does_not_come_back(void **state)
{
    (void)state;
    make_day();
    (void)pass_at(1000);
    sched_drop(kept, running_handles[9]);
    sched_unreserve(kept, world.running_sessions[9].row);
    sched_unreserve(kept, world.running_sessions[9].row);
    assert_string_equal(pass_at(1001), "1:placed@b 4:placed@c ");
    sched_free(kept);
    end();
}

/* Its new agent closes: it waits as others do. */
static void test_target_closes(void **state)
{
    (void)state;
    make_day();
    (void)pass_at(1000);
    world.agents[2].is_closed = true;
    assert_int_equal(sched_set_agent(kept, &world.agents[2], NULL), 0);
    comes_back(9, 4);
    assert_string_equal(pass_at(1001), "1:placed@b 5:no-room ");
    sched_free(kept);
    end();
}

/* A manager that restarts knows where they were to go. */
static void test_reserved_again(void **state)
{
    (void)state;
    make_day();
    sched_drop(kept, running_handles[9]);
    assert_int_equal(reserve(&world.running_sessions[9], "c"), 0);
    assert_int_equal(reserve(&world.running_sessions[9], "c"), -EEXIST);
    assert_int_equal(reserve(&world.running_sessions[8], "d"), -ENOENT); /* no room */
    assert_int_equal(reserve(&world.running_sessions[8], "x"), -ENOENT);
    /* b has 4 cores free now, c one, which the last that waits takes */
    assert_string_equal(pass_at(1000), "1:placed@b 2:no-room 3:moving@a (7>c) 4:no-room ");
    wait_as(4, &world.running_sessions[9]);
    assert_string_equal(pass_at(1001), "5:placed@c ");
    sched_free(kept);
    end();
}

/* ---- every small cluster against a search of all ways ---- */

static const struct content {
    int free, running[3];
} contents[] = {
    { 0, { 0 } },    { 1, { 0 } },       { 2, { 0 } },    { 0, { 1 } },    { 1, { 1 } },
    { 0, { 2 } },    { 1, { 2 } },       { 0, { 1, 1 } }, { 1, { 1, 1 } }, { 0, { 2, 1 } },
    { 1, { 2, 1 } }, { 0, { 1, 1, 1 } }, { 0, { 3 } },    { 2, { 3 } },    { 0, { 2, 2 } },
};

/* Can all of 'movers' of agent n go to the others? */
static bool can_go(const struct content *const in[3], int n, const int *movers, int count)
{
    for (int way = 0; way < 1 << count; way++) {
        int left[2] = { in[(n + 1) % 3]->free, in[(n + 2) % 3]->free };

        for (int i = 0; i < count; i++)
            left[way >> i & 1] -= movers[i];
        if (left[0] >= 0 && left[1] >= 0)
            return true;
    }
    return false;
}

/* The fewest that have to move for 'wanted' cores somewhere; -1 = it cannot be. */
static int fewest(const struct content *const in[3], int wanted)
{
    int best = -1;

    for (int n = 0; n < 3; n++)
        for (int set = 0; set < 8; set++) {
            int movers[3], count = 0, free = in[n]->free;

            for (int i = 0; i < 3; i++)
                if (set >> i & 1) {
                    free += in[n]->running[i];
                    movers[count++] = in[n]->running[i];
                }
            if (free >= wanted && (best < 0 || count < best) && can_go(in, n, movers, count))
                best = count;
        }
    return best;
}

static void check_small(const struct content *const in[3], int wanted)
{
    int want = fewest(in, wanted);
    const struct sched_outcome *o;
    char text[16];

    moving();
    for (int n = 0; n < 3; n++) {
        (void)snprintf(text, sizeof(text), "cpu=%d", in[n]->free);
        (void)agent((const char *[]){ "a", "b", "c" }[n], text);
        for (int i = 0; i < 3 && in[n]->running[i]; i++) {
            (void)snprintf(text, sizeof(text), "cpu=%d", in[n]->running[i]);
            (void)movable(world.ids[n], text, 1 + i, 0);
        }
    }
    (void)snprintf(text, sizeof(text), "cpu=%d", wanted);
    (void)session(text);
    run_at(1000);
    o = outcome_of(0);
    assert_row(o->verdict
                       == (want < 0    ? SCHED_NO_ROOM
                           : want == 0 ? SCHED_PLACED
                                       : SCHED_PREEMPTING)
                   && (want <= 0 || o->victim_count == (size_t)want),
               "%td %td %td, %d cores: %d wanted, %s of %zu", in[0] - contents, in[1] - contents,
               in[2] - contents, wanted, want, sched_verdict_name(o->verdict), o->victim_count);
    end();
}

static void test_every_small_cluster(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(contents); i++)
        for (size_t j = 0; j <= i; j++)
            for (size_t k = 0; k <= j; k++)
                for (int wanted = 1; wanted <= 5; wanted++)
                    check_small((const struct content *const[3]){ &contents[i], &contents[j],
                                                                  &contents[k] },
                                wanted);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_protected),
        cmocka_unit_test(test_before_displacing),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_day),
        cmocka_unit_test(test_one_that_does_not_come_back),
        cmocka_unit_test(test_target_closes),
        cmocka_unit_test(test_reserved_again),
        cmocka_unit_test(test_every_small_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
