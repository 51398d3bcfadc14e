/* SPDX-License-Identifier: Apache-2.0 */
/* Migrating clusters of several containers: as a whole or not at all. */
#include "migrations.h"

/* ---- one session that waits, of cpu=3, at 1000 s ---- */

static const struct {
    const char *why, *free[3]; /* of a, b, c */
    struct {
        const char *agent, *request;
        int64_t started;
        bool is_further;
    } running[5];
    const char *want;
} rows[] = {
    { "both leave",
      { "cpu=1", "cpu=1", "cpu=1" },
      { { "a", "cpu=1", 1, false }, { "a", "cpu=1", 0, true } },
      "1>b,c" },
    { "one has no place, so none goes",
      { "cpu=1", "cpu=1", "cpu=0" },
      { { "a", "cpu=1", 1, false }, { "a", "cpu=1", 0, true } },
      "" },
    { "what is on another agent stays there",
      { "cpu=1", "cpu=0", "cpu=2" },
      { { "a", "cpu=2", 1, false }, { "b", "cpu=2", 0, true } },
      "1>c,b" },
    { "also where it could go elsewhere",
      { "cpu=1", "cpu=0", "cpu=2" },
      { { "a", "cpu=1", 1, false }, { "a", "cpu=1", 0, true }, { "b", "cpu=1", 0, true } },
      "1>c,c,b" },
    { "to where its other container is",
      { "cpu=1", "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 1, false }, { "b", "cpu=1", 0, true } },
      "1>a,a" },
    { "the larger one chooses first",
      { "cpu=0", "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 1, false }, { "a", "cpu=2", 0, true } },
      "1>c,b" },
    { "a cluster is one session, two others are two",
      { "cpu=1", "cpu=1", "cpu=1" },
      { { "a", "cpu=1", 1, false },
        { "a", "cpu=1", 0, true },
        { "a", "cpu=1", 8, false },
        { "a", "cpu=1", 9, false } },
      "1>b,c" },
    { "one of one container that has run less",
      { "cpu=1", "cpu=1", "cpu=2" },
      { { "a", "cpu=1", 1, false }, { "a", "cpu=1", 0, true }, { "a", "cpu=2", 9, false } },
      "2>c" },
    { "the rest of the agent is not enough",
      { "cpu=1", "cpu=0", "cpu=2" },
      { { "a", "cpu=1", 1, false }, { "b", "cpu=2", 0, true } },
      "" },
    { "with one of one container",
      { "cpu=0", "cpu=2", "cpu=1" },
      { { "a", "cpu=2", 1, false }, { "c", "cpu=1", 0, true }, { "a", "cpu=1", 2, false } },
      "1>b,c 2>c" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        moving();
        for (int a = 0; a < 3; a++)
            (void)agent((const char *[]){ "a", "b", "c" }[a], rows[i].free[a]);
        for (size_t v = 0; v < 5 && rows[i].running[v].agent; v++)
            if (rows[i].running[v].is_further)
                runs_also(rows[i].running[v].agent, rows[i].running[v].request);
            else
                (void)movable(rows[i].running[v].agent, rows[i].running[v].request,
                              rows[i].running[v].started, 0);
        (void)session("cpu=3");
        run_at(1000);
        assert_row(strcmp(migrations_of(0), rows[i].want) == 0, "%s: %s", rows[i].why,
                   migrations_of(0));
        assert_row(verdict_of(0) == (*rows[i].want ? SCHED_PREEMPTING : SCHED_NO_ROOM), "%s",
                   rows[i].why);
        end();
    }
}

/* Containers that must be on one agent go to one. */
static void test_single_node(void **state)
{
    (void)state;
    for (int free = 1; free <= 2; free++) {
        moving();
        (void)agent("a", "cpu=1");
        (void)agent("b", free == 1 ? "cpu=1" : "cpu=2");
        (void)agent("c", "cpu=1");
        (void)movable("a", "cpu=1", 1, 0);
        runs_also("a", "cpu=1");
        world.running_sessions[0].single_node = true;
        (void)session("cpu=3");
        run_at(1000);
        assert_string_equal(migrations_of(0), free == 1 ? "" : "1>b,b");
        end();
    }
}

/* A cluster that waits: room is made for each of its containers, or for none. */
static void test_for_a_cluster(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        moving();
        (void)agent("a", "cpu=1");
        (void)agent("b", "cpu=1");
        (void)agent("c", way ? "cpu=1" : "cpu=2");
        (void)movable("a", "cpu=1", 1, 0);
        (void)movable("b", "cpu=1", 2, 0);
        session("cpu=2 mem=0")->single_node = false;
        kernel("cpu=2");
        world.kernels[world.kernel_count - 2] = own("cpu=2 mem=0");
        if (!way) { /* c has to take both */
            world.kernels[world.kernel_count - 2] = own("cpu=2 mem=1");
            world.kernels[world.kernel_count - 1] = own("cpu=2 mem=1");
            world.agents[0].free = own("cpu=1 mem=9");
            world.agents[1].free = own("cpu=1 mem=9");
        }
        run_at(1000);
        assert_string_equal(migrations_of(0), way ? "" : "2>c 1>c");
        end();
    }
}

/* ---- sixteen sessions that run, of 20 containers, and four that wait, by hand ---- */

static void make_day(void)
{
    moving();
    world.snap.options.retries_to_skip = 1; /* nobody holds up others */
    for (int i = 0; i < 4; i++)             /* free will be: a 1, b 4, c 1, d 1 */
        (void)agent((const char *[]){ "a", "b", "c", "d" }[i], "cpu=8");
    (void)movable("a", "cpu=2", 1, 0); /* 1 */
    runs_also("b", "cpu=2");
    (void)movable("a", "cpu=3", 2, 0); /* 2 */
    runs_also("c", "cpu=1");
    for (int i = 0; i < 10; i++) /* 3, 4 on a, 5, 6 on b, 7-12 on c: they stay */
        (void)runs(i < 2 ? "a" : i < 4 ? "b" : "c", "cpu=1", 10 + i, 0);
    (void)movable("d", "cpu=2", 31, 0); /* 13 */
    runs_also("d", "cpu=2");
    (void)movable("d", "cpu=1", 3, 0); /* 14 */
    (void)runs("d", "cpu=1", 33, 0);   /* 15, 16 */
    (void)runs("d", "cpu=1", 34, 0);
    for (int i = 0; i < 4; i++) {
        struct sched_session *s = session(
            (const char *[]){ "cpu=5", "cpu=4", "cpu=2", "cpu=1" }[i]);

        s->retries = 1;
        s->job_priority = 5;
    }
    keep_all();
}

static void test_day(void **state)
{
    (void)state;
    make_day();
    /* 5 cores: 13 leaves d with both containers, for which b has room. 4 cores: 2 could leave a,
     * but 3 cores are free nowhere else. 2 cores: 2 leaves c, for a; its other container stays on
     * a. 1 core: nobody who could go has a place.
     */
    assert_string_equal(pass_at(1000),
                        "1:moving@d (13>b,b) 2:no-room 3:moving@c (2>a,a) 4:no-room ");
    assert_string_equal(pass_at(1001), "");
    comes_back(12, 4);
    assert_string_equal(pass_at(1002), "1:placed@d 5:placed@b,b ");
    comes_back(1, 5);
    assert_string_equal(pass_at(1003), "3:placed@c 6:placed@a,a ");
    assert_string_equal(pass_at(1004), "");
    sched_free(kept);
    end();
}

/* The agent of one of its places closes: it waits as others do, with all of its containers. */
static void test_target_closes(void **state)
{
    (void)state;
    make_day();
    (void)pass_at(1000);
    world.agents[0].is_closed = true;
    assert_int_equal(sched_set_agent(kept, &world.agents[0], NULL), 0);
    comes_back(1, 5);
    assert_string_equal(pass_at(1003), "3:placed@c 6:no-room ");
    sched_free(kept);
    end();
}

/* A state that is new: who is moved, and whom room is made for, have their places by name. */
static void test_reserved_again(void **state)
{
    static const char *const to[] = { "a", "a" }, *const nowhere[] = { "d", "a" };

    (void)state;
    make_day();
    sched_mark_terminating(kept, running_handles[1]);
    assert_int_equal(sched_reserve(kept, &world.running_sessions[1], nowhere), -ENOENT);
    assert_int_equal(sched_reserve(kept, &world.running_sessions[1], to), 0);
    assert_int_equal(sched_reserve(kept, &world.running_sessions[1], to), -EEXIST);
    assert_int_equal(reserve(&world.sessions[2], "d"), -ENOENT); /* nobody leaves there */
    assert_int_equal(reserve(&world.sessions[2], "c"), 0);
    /* 3 has its place, and the 1 core that is free there is not for the last */
    assert_string_equal(pass_at(1000), "3:moving@c 1:moving@d (13>b,b) 2:no-room 4:no-room ");
    comes_back(1, 5);
    assert_string_equal(pass_at(1001), "3:placed@c 6:placed@a,a ");
    sched_free(kept);
    end();
}

/* ---- every small cluster of agents against a search of all ways ---- */

static const struct content {
    int free, running[2];
} contents[] = {
    { 0, { 0 } }, { 1, { 0 } }, { 2, { 0 } },    { 0, { 1 } },    { 1, { 1 } },
    { 0, { 2 } }, { 1, { 2 } }, { 0, { 1, 1 } }, { 1, { 2, 1 } },
};

/* Three agents, and a cluster with a container on each of two of them, or both on one. */
struct small {
    const struct content *in[3];
    int at[2], size[2];
};

/* Can all that leave agent n have a place on the others? */
static bool can_go(const struct small *s, int n, const int *leaving, int count)
{
    for (int way = 0; way < 1 << count; way++) {
        int left[2] = { s->in[(n + 1) % 3]->free, s->in[(n + 2) % 3]->free };

        for (int i = 0; i < count; i++)
            left[way >> i & 1] -= leaving[i];
        if (left[0] >= 0 && left[1] >= 0)
            return true;
    }
    return false;
}

/* With the sessions of 'set' (the third is the cluster) gone from agent n: the sessions, or -1. */
static int cost_of(const struct small *s, int n, int set, int wanted)
{
    int leaving[4], count = 0, free = s->in[n]->free, sessions = 0;

    for (int i = 0; i < 2; i++)
        if (set >> i & 1 && s->in[n]->running[i]) {
            free += leaving[count++] = s->in[n]->running[i];
            sessions++;
        }
    for (int k = 0; k < 2; k++)
        if (set >> 2 & 1 && s->at[k] == n)
            free += leaving[count++] = s->size[k];
    sessions += set >> 2 & 1;
    return free >= wanted && can_go(s, n, leaving, count) ? sessions : -1;
}

static void check_small(const struct small *s, int wanted)
{
    const struct sched_outcome *o;
    int want = -1;

    for (int n = 0; n < 3; n++)
        for (int set = 0; set < 8; set++) {
            int cost = cost_of(s, n, set, wanted);

            if (cost >= 0 && (want < 0 || cost < want))
                want = cost;
        }
    moving();
    for (int n = 0; n < 3; n++) {
        char text[16];

        (void)snprintf(text, sizeof(text), "cpu=%d", s->in[n]->free);
        (void)agent((const char *[]){ "a", "b", "c" }[n], text);
        for (int i = 0; i < 2 && s->in[n]->running[i]; i++) {
            (void)snprintf(text, sizeof(text), "cpu=%d", s->in[n]->running[i]);
            (void)movable(world.ids[n], text, 1 + i, 0);
        }
    }
    (void)movable(world.ids[s->at[0]], s->size[0] == 1 ? "cpu=1" : "cpu=2", 5, 0);
    runs_also(world.ids[s->at[1]], s->size[1] == 1 ? "cpu=1" : "cpu=2");
    (void)session((const char *[]){ "", "cpu=1", "cpu=2", "cpu=3", "cpu=4" }[wanted]);
    run_at(1000);
    o = outcome_of(0);
    assert_row(o->verdict
                       == (want < 0    ? SCHED_NO_ROOM
                           : want == 0 ? SCHED_PLACED
                                       : SCHED_PREEMPTING)
                   && (want <= 0 || o->victim_count == (size_t)want),
               "%td %td %td, cluster %d on %d and %d on %d, %d cores: %d wanted, %s of %zu",
               s->in[0] - contents, s->in[1] - contents, s->in[2] - contents, s->size[0], s->at[0],
               s->size[1], s->at[1], wanted, want, sched_verdict_name(o->verdict), o->victim_count);
    end();
}

static void test_every_small_cluster(void **state)
{
    static const int places[][2] = { { 0, 0 }, { 0, 1 }, { 0, 2 }, { 1, 2 }, { 2, 1 } };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(contents); i++)
        for (size_t j = 0; j <= i; j++)
            for (size_t k = 0; k <= j; k++)
                for (size_t way = 0; way < AQ_COUNT(places) * 2; way++)
                    for (int wanted = 2; wanted <= 4; wanted++)
                        check_small(&(struct small){ { &contents[i], &contents[j], &contents[k] },
                                                     { places[way / 2][0], places[way / 2][1] },
                                                     { 1, 1 + (int)way % 2 } },
                                    wanted);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_single_node),
        cmocka_unit_test(test_for_a_cluster),
        cmocka_unit_test(test_day),
        cmocka_unit_test(test_target_closes),
        cmocka_unit_test(test_reserved_again),
        cmocka_unit_test(test_every_small_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
