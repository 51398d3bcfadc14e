/* SPDX-License-Identifier: Apache-2.0 */
/* Migration beside backfill: a session that was told a time keeps it. */
#include "migrations.h"

/* ---- sessions that wait, at 1000 s ---- */

struct run {
    const char *agent, *request;
    int64_t started, lifetime;
    enum { STAYS, MOVES, FURTHER, PREEMPTIBLE } kind;
};

static const struct {
    const char *why, *capacity[3]; /* of a, b, c */
    struct run running[3];
    struct {
        const char *request;
        int64_t lifetime;
        int job_priority;
    } waiting[3];
    const char *want;
} rows[] = {
    { "nobody has a time",
      { "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 1, 10000, MOVES } },
      { { "cpu=2", 100, 5 } },
      "1:moving@a (1>b) " },
    { "its new place is promised before it would have ended there",
      { "cpu=2", "cpu=3" },
      { { "a", "cpu=1", 1, 10000, MOVES }, { "b", "cpu=2", 1, 1999, STAYS } },
      { { "cpu=3", 100, 5 }, { "cpu=2", 100, 5 } },
      "1:no-room,2000 2:no-room,2100 " },
    { "it will have ended by then, beginning over",
      { "cpu=2", "cpu=3" },
      { { "a", "cpu=1", 900, 1000, MOVES }, { "b", "cpu=2", 1, 1999, STAYS } },
      { { "cpu=3", 100, 5 }, { "cpu=2", 100, 5 } },
      "1:no-room,2000 2:moving@a (1>b) " },
    { "who would start is in the way of one before it",
      { "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 900, 600, MOVES } },
      { { "cpu=2", 100, 0 }, { "cpu=2", 501, 5 } },
      "1:no-room,1500 2:no-room,1600 " },
    { "it has gone when that one starts",
      { "cpu=2", "cpu=1" },
      { { "a", "cpu=1", 900, 600, MOVES } },
      { { "cpu=2", 100, 0 }, { "cpu=2", 500, 5 } },
      "1:no-room,1500 2:moving@a (1>b) " },
    { "a cluster: what would stay is in the way, as it begins over",
      { "cpu=2 tpu.device=1", "cpu=1", "cpu=2 mem=1" },
      { { "a", "cpu=1", 900, 600, MOVES }, { "c", "cpu=1", 0, 0, FURTHER } },
      { { "cpu=2 mem=1", 100, 0 }, { "cpu=2 tpu.device=1", 100, 5 } },
      "1:no-room,1500 2:no-room,1500 " },
    { "a cluster, and nobody waits for that agent",
      { "cpu=2 tpu.device=1", "cpu=1", "cpu=2 mem=1" },
      { { "a", "cpu=1", 900, 600, MOVES }, { "c", "cpu=1", 0, 0, FURTHER } },
      { { "cpu=2 tpu.device=1", 100, 5 } },
      "1:moving@a (1>b,c) " },
    { "one behind it finds what is left, not what is held",
      { "cpu=3", "cpu=1" },
      { { "a", "cpu=2", 1, 9999, MOVES }, { "b", "cpu=1", 1, 1099, STAYS } },
      { { "cpu=4", 100, 5 }, { "cpu=1", 100, 5 }, { "cpu=1", 100, 5 } },
      "1:no-room 2:placed@a 3:no-room,1100 " },
    { "a preemptor has its place in the plans, too",
      { "cpu=2" },
      { { "a", "cpu=1", 1, 9999, PREEMPTIBLE } },
      { { "cpu=9", 100, 5 }, { "cpu=2", 100, 5 }, { "cpu=1", 10, 5 } },
      "1:no-room 2:moving@a (1) 3:no-room,1100 " },
};

static void begin_backfill(void)
{
    moving();
    world.snap.options.backfill = true;
}

static void add_running(const struct run *run)
{
    struct sched_session *s;

    if (run->kind == FURTHER) {
        runs_also(run->agent, run->request);
        return;
    }
    s = runs(run->agent, run->request, run->started, run->lifetime);
    s->is_movable = run->kind == MOVES;
    s->is_preemptible = run->kind == PREEMPTIBLE;
    s->job_priority = run->kind == MOVES ? 5 : 0;
}

static void add_waiting(const char *request, int64_t lifetime, int job_priority)
{
    struct sched_session *s = session(request);

    s->lifetime_usec = lifetime * USEC_PER_SEC;
    s->job_priority = job_priority;
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *said;

        begin_backfill();
        world.snap.options.preemption.enabled = rows[i].running[0].kind == PREEMPTIBLE;
        for (int a = 0; a < 3 && rows[i].capacity[a]; a++)
            (void)agent((const char *[]){ "a", "b", "c" }[a], rows[i].capacity[a]);
        for (int v = 0; v < 3 && rows[i].running[v].agent; v++)
            add_running(&rows[i].running[v]);
        for (int w = 0; w < 3 && rows[i].waiting[w].request; w++)
            add_waiting(rows[i].waiting[w].request, rows[i].waiting[w].lifetime,
                        rows[i].waiting[w].job_priority);
        keep_all();
        said = pass_at(1000);
        assert_row(strcmp(said, rows[i].want) == 0, "%s: %s", rows[i].why, said);
        sched_free(kept);
        end();
    }
}

/* ---- twenty-one that run and four that wait, by hand ---- */

static void make_day(void)
{
    static const struct {
        const char *agent, *request;
        int count, started;
        bool stays;
    } day[] = {
        { "a", "cpu=1", 7, 1, false },  /* 1-7 */
        { "b", "cpu=2", 3, 11, false }, /* 8-10 */
        { "c", "cpu=5", 1, 21, true },  /* 11 */
        { "d", "cpu=1", 8, 31, true },  /* 12-19 */
        { "e", "cpu=4", 2, 41, false }, /* 20, 21 */
    };

    begin_backfill();
    for (size_t i = 0; i < AQ_COUNT(day); i++) {
        (void)agent(day[i].agent, "cpu=8");
        for (int k = 0; k < day[i].count; k++)
            add_running(&(struct run){ day[i].agent, day[i].request, day[i].started + k, 5000,
                                       day[i].stays ? STAYS : MOVES });
    }
    world.running_sessions[19].job_priority = 9;
    for (int i = 0; i < 4; i++)
        add_waiting((const char *[]){ "cpu=4", "cpu=3", "cpu=2", "cpu=1" }[i], 100, 5);
    keep_all();
}

static void test_day(void **state)
{
    (void)state;
    make_day();
    /* free: a 1, b 2, c 3, d 0, e 0. 4 cores: the youngest of b goes to c. 3 cores: nowhere, but
     * on b when the first has ended. 2 cores: the youngest of a to c. 1 core: when one of these
     * has ended. They begin when the others have gone, so they end later, too.
     */
    assert_string_equal(pass_at(1000),
                        "1:moving@b (10>c) 2:no-room,1100 3:moving@a (7>c) 4:no-room,1100 ");
    assert_string_equal(pass_at(1001), "");
    comes_back(9, 4);
    assert_string_equal(pass_at(1002), "1:placed@b 5:placed@c 2:no-room,1102 ");
    comes_back(6, 5);
    assert_string_equal(pass_at(1003), "3:placed@a 6:placed@c 4:no-room,1102 ");
    sched_drop(kept, waiting_handles[0]);
    assert_string_equal(pass_at(1102), "2:placed@b 4:placed@b ");
    sched_free(kept);
    end();
}

/* ---- every small cluster: who is before the one that room is made for loses no time ---- */

struct small {
    struct run running[3];
    int first, second; /* cores of the two that wait */
    int64_t lifetime;  /* of the second */
};

static const char *const cores[] = { "", "cpu=1", "cpu=2", "cpu=3" };

/* The time that the first was told in the pass, in seconds; 0 = none. */
static int64_t pass_small(uint32_t *ret_victim, size_t *ret_victims)
{
    struct sched_result result;
    int64_t at = INT64_MIN;

    *ret_victims = 0;
    sched_pass(kept, 1000 * USEC_PER_SEC, &world.arena, &result);
    for (size_t i = 0; i < result.count; i++) {
        const struct sched_outcome *o = &result.outcomes[i];

        if (o->session == waiting_handles[0])
            at = o->verdict == SCHED_PLACED ? 1000 : o->starts_usec / USEC_PER_SEC;
        if (o->victim_count) {
            *ret_victims = o->victim_count;
            memcpy(ret_victim, o->victims, o->victim_count * sizeof(*ret_victim));
        }
    }
    return at;
}

static int64_t keep_small(const struct small *s, bool moves, uint32_t *ret_victim,
                          size_t *ret_victims)
{
    begin_backfill();
    world.snap.options.preemption.moves = moves;
    (void)agent("a", "cpu=3");
    (void)agent("b", "cpu=3");
    for (int i = 0; i < 3; i++)
        if (s->running[i].agent)
            add_running(&s->running[i]);
    add_waiting(cores[s->first], 100, 0);
    add_waiting(cores[s->second], s->lifetime, 5);
    keep_all();
    return pass_small(ret_victim, ret_victims);
}

/* How many were moved. */
static size_t check_small(const struct small *s, const char *text)
{
    uint32_t victims[4];
    size_t count, moved;
    int64_t alone = keep_small(s, false, victims, &count), told, again;

    sched_free(kept);
    end();
    told = keep_small(s, true, victims, &moved);
    assert_row(told == alone, "%s: %lld without moves, %lld with", text, (long long)alone,
               (long long)told);
    for (size_t i = 0; i < moved; i++)
        comes_back(number_of(running_handles, victims[i]), 2 + i);
    again = pass_small(victims, &count);
    assert_row(again == INT64_MIN || again <= alone, "%s: %lld without moves, then %lld", text,
               (long long)alone, (long long)again);
    sched_free(kept);
    end();
    return moved;
}

static const struct run *choices(size_t n)
{
    static const struct run all[] = {
        { NULL, NULL, 0, 0, STAYS },        { "a", "cpu=1", 900, 600, MOVES },
        { "a", "cpu=1", 901, 2000, MOVES }, { "a", "cpu=2", 902, 600, MOVES },
        { "a", "cpu=2", 903, 2000, STAYS }, { "b", "cpu=1", 904, 600, STAYS },
        { "b", "cpu=1", 905, 2000, MOVES }, { "b", "cpu=2", 906, 600, MOVES },
        { "b", "cpu=2", 907, 2000, STAYS },
    };

    return n < AQ_COUNT(all) ? &all[n] : NULL;
}

static bool is_full(const struct small *s)
{
    int used[2] = { 0, 0 };

    for (int i = 0; i < 3; i++)
        if (s->running[i].agent)
            used[s->running[i].agent[0] == 'b'] += s->running[i].request[4] - '0';
    return used[0] > 3 || used[1] > 3;
}

static void test_every_small_cluster(void **state)
{
    size_t moved = 0;
    char text[64];

    (void)state;
    for (size_t i = 0; choices(i); i++)
        for (size_t j = 0; j <= i; j++)
            for (size_t k = 0; k <= j; k++)
                for (int way = 0; way < 8; way++) {
                    struct small s = { { *choices(i), *choices(j), *choices(k) },
                                       2 + way % 2,
                                       2 + way / 2 % 2,
                                       way / 4 ? 2000 : 300 };

                    (void)snprintf(text, sizeof(text), "%zu %zu %zu, %d", i, j, k, way);
                    moved += is_full(&s) ? 0 : check_small(&s, text);
                }
    assert_true(moved > 20); /* it is not that nobody ever is */
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_day),
        cmocka_unit_test(test_every_small_cluster),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
