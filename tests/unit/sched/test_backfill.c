/* SPDX-License-Identifier: Apache-2.0 */
/* Backfill and preemption: what is promised, and who is preempted. */
#include "world.h"

#include "sched/scheduler_internal.h"

/* ---- backfill ---- */

/* One agent of 8 cores; 6 are taken until 100. The first wants all 8: it gets
 * 100. Behind it: 2 cores for 90 s start at once, 2 cores for 110 s do not.
 */
static void test_backfill(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cpu=2");
    (void)runs("a", "cpu=6", 0, 100);
    session("cpu=8")->lifetime_usec = 50 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 110 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 90 * USEC_PER_SEC;
    run_at(10);
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(outcome_of(0)->starts_usec, 100 * USEC_PER_SEC);
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    assert_int_equal(outcome_of(1)->starts_usec, 150 * USEC_PER_SEC);
    assert_string_equal(places(), "- - a");
    assert_false(world.result.is_blocked);
    end();
}

/* Twenty sessions on one agent of 4 cores, a minute each, four of them of 4
 * cores: the times as one would draw them.
 */
static void test_backfill_twenty(void **state)
{
    /* at 0: 1..3 (one core each; the fourth core stays free for a minute: 5 may);
     * 4 wants all: 60. 5 at 0. 6-8 at 120 with 9; 10 wants all: 180 ...
     */
    static const int64_t want[20] = { 0,   0,   0,   60,  0,   120, 120, 120, 120, 180,
                                      240, 240, 240, 240, 300, 360, 360, 360, 420, 360 };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cpu=4");
    for (int i = 0; i < 20; i++)
        session(i == 3 || i == 9 || i == 14 || i == 18 ? "cpu=4" : "cpu=1")->lifetime_usec =
            60 * USEC_PER_SEC;
    run_at(0);
    for (size_t i = 0; i < 20; i++) {
        const struct sched_outcome *o = outcome_of(i);

        assert_row(o->verdict == (want[i] ? SCHED_NO_ROOM : SCHED_PLACED), "%zu", i);
        assert_row(o->starts_usec == want[i] * USEC_PER_SEC, "%zu: %ld", i,
                   (long)(o->starts_usec / USEC_PER_SEC));
    }
    end();
}

/* Only so many get a time; the others may start now, but where they are in nobody's way. */
static void test_backfill_depth(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    world.snap.options.reservations_max = 1;
    (void)agent("a", "cpu=4");
    (void)runs("a", "cpu=4", 0, 100);
    for (int i = 0; i < 4; i++)
        session(i == 0   ? "cpu=8"
                : i == 1 ? "cpu=5"
                         : "cpu=1")
            ->lifetime_usec = (i == 3 ? 50 : 500) * USEC_PER_SEC;
    run_at(0);
    assert_int_equal(outcome_of(0)->starts_usec, 100 * USEC_PER_SEC);
    assert_int_equal(outcome_of(1)->starts_usec, 0);
    assert_string_equal(places(), "- - - a");
    end();
}

/* A gang starts on all its agents at once; who is overdue takes as long again. */
static void test_backfill_gang_and_overdue(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cpu=0");
    (void)agent("b", "cpu=0");
    (void)runs("a", "cpu=4", 0, 100);
    (void)runs("b", "cpu=4", 0, 200);
    session("cpu=4")->lifetime_usec = 50 * USEC_PER_SEC;
    world.sessions[0].single_node = false;
    kernel("cpu=4");
    session("cpu=4")->lifetime_usec = 90 * USEC_PER_SEC; /* on a, before the gang */
    run_at(40);
    assert_int_equal(outcome_of(0)->starts_usec, 200 * USEC_PER_SEC);
    assert_int_equal(outcome_of(1)->starts_usec, 100 * USEC_PER_SEC);
    run_at(150); /* a's is 50 s late: expected at 201 s */
    assert_int_equal(outcome_of(0)->starts_usec, 201 * USEC_PER_SEC);
    end();
}

/* Two parts of a second each, of which each alone has room beside what runs for a year, or without
 * a known end: the search goes from change to change.
 */
static void test_backfill_gang_beside_far_end(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        int64_t year = way ? 0 : 365 * 24 * 3600;

        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.backfill = true;
        (void)agent("a", "cpu=1");
        (void)runs("a", "cpu=1", 0, year);
        session("cpu=1")->lifetime_usec = USEC_PER_SEC;
        world.sessions[0].single_node = false;
        kernel("cpu=1");
        run_at(1);
        assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
        assert_int_equal(outcome_of(0)->starts_usec, year * USEC_PER_SEC);
        end();
    }
}

/* Whole devices in the future: two halves on different devices are no place. */
static void test_backfill_devices(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cuda.shares=1");
    DEVICES("T4", .5, .5);
    for (int i = 0; i < 2; i++) {
        static const struct sched_part parts[2] = { { 0, 500000 }, { 1, 500000 } };

        (void)runs("a", "cuda.shares=0.5", 0, 100 * (i + 1));
        world.places[i][0].parts = &parts[i];
        world.places[i][0].part_count = 1;
    }
    session("cuda.shares=1")->lifetime_usec = USEC_PER_SEC;
    session("cuda.shares=2")->lifetime_usec = USEC_PER_SEC;
    run_at(0);
    assert_int_equal(outcome_of(0)->starts_usec, 100 * USEC_PER_SEC);
    assert_int_equal(outcome_of(1)->starts_usec, 200 * USEC_PER_SEC);
    end();
}

/* The selector chooses the device beside reservations, too. */
static void test_backfill_chosen_device(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct sched_result result;
        struct sched *s;
        uint32_t handles[2];

        begin(&sched_fifo, way ? &sched_high_performance : &sched_bin_packing);
        world.snap.options.backfill = true;
        (void)agent("a", "cuda.shares=1.5");
        DEVICES("T4", .5, 1);
        session("cuda.shares=2")->lifetime_usec = USEC_PER_SEC;
        session("cuda.shares=0.25")->lifetime_usec = USEC_PER_SEC;
        s = sched_new(world.types, &world.snap.options);
        assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
        for (int i = 0; i < 2; i++)
            assert_int_equal(sched_add(s, &world.sessions[i], &handles[i], NULL), 0);
        sched_pass(s, 0, &world.arena, &result);
        assert_int_equal(result.outcomes[1].verdict, SCHED_PLACED);
        assert_int_equal(s->entries[handles[1]].holds[0].parts[0].device, way);
        sched_free(s);
        end();
    }
}

static void test_never(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cpu=4");
    (void)session("cpu=5");
    (void)session("cpu=4");
    run_at(0);
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(outcome_of(0)->starts_usec, 0); /* no time */
    assert_string_equal(places(), "- a");
    end();
}

/* Small ones keep coming; the time that the big one was told never moves back,
 * and it starts then. Exact lifetimes; many random loads.
 */
static void test_no_starvation(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 30; seed++) {
        struct {
            uint32_t handle;
            int64_t ends;
        } running[256];
        size_t running_count = 0;
        struct sched *s;
        struct sched_result result;
        int64_t promised = INT64_MAX, started = -1;
        uint32_t big = UINT32_MAX;
        int64_t ends_of[1024] = { 0 };

        srand(seed);
        begin(&sched_fifo, &sched_concentrated);
        world.snap.options.backfill = true;
        (void)agent("a", "cpu=4");
        (void)agent("b", "cpu=4");
        (void)session("cpu=4");
        (void)session("cpu=1");
        (void)session("cpu=2");
        s = sched_new(world.types, &world.snap.options);
        for (int i = 0; i < 2; i++)
            assert_int_equal(sched_set_agent(s, &world.agents[i], NULL), 0);
        for (int64_t now = 0, row = 1; now < 60 && started < 0; now++) {
            for (size_t i = 0; i < running_count;)
                if (running[i].ends == now) {
                    sched_drop(s, running[i].handle);
                    running[i] = running[--running_count];
                } else {
                    i++;
                }
            for (int k = 0; k < 2; k++, row++) {
                struct sched_session one = world.sessions[now == 8 && k == 0 ? 0 : 1 + rand() % 2];
                uint32_t handle;

                one.row = row;
                one.lifetime_usec = (now == 8 && k == 0 ? 10 : 1 + rand() % 6) * USEC_PER_SEC;
                assert_int_equal(sched_add(s, &one, &handle, NULL), 0);
                ends_of[handle] = one.lifetime_usec / USEC_PER_SEC;
                if (now == 8 && k == 0)
                    big = handle;
            }
            sched_pass(s, now * USEC_PER_SEC, &world.arena, &result);
            for (size_t i = 0; i < result.count; i++) {
                const struct sched_outcome *o = &result.outcomes[i];

                if (o->verdict == SCHED_PLACED) {
                    running[running_count].handle = o->session;
                    running[running_count++].ends = now + ends_of[o->session];
                    if (o->session == big)
                        started = now;
                } else if (o->session == big) {
                    assert_row(o->starts_usec <= promised, "seed %u", seed);
                    promised = o->starts_usec;
                }
            }
        }
        assert_row(started >= 0 && (promised == INT64_MAX || started * USEC_PER_SEC <= promised),
                   "seed %u: started at %ld", seed, (long)started);
        sched_free(s);
        end();
    }
}

/* ---- estimates ---- */

struct estimated {
    uint32_t handle;
    int64_t ends, promised; /* seconds; 0 = it waits; INT64_MAX = nothing yet */
};

static void take_placed(const struct sched_result *result, struct estimated *all, size_t count,
                        const int64_t *lifetimes, int64_t now, unsigned seed)
{
    for (size_t i = 0; i < result->count; i++)
        for (size_t k = 0; k < count; k++)
            if (result->outcomes[i].verdict == SCHED_PLACED && all[k].ends == 0
                && all[k].handle == result->outcomes[i].session) {
                assert_row(now <= all[k].promised, "seed %u: started at %ld, not %ld", seed,
                           (long)now, (long)all[k].promised);
                all[k].ends = now + lifetimes[k];
            }
}

static void take_estimates(struct sched *s, struct estimated *all, size_t count, int64_t now,
                           unsigned seed)
{
    struct sched_start_estimate *starts;
    int n = sched_estimate_starts(s, now * USEC_PER_SEC, SIZE_MAX, &world.arena, &starts);

    for (int i = 0; i < n; i++)
        for (size_t k = 0; k < count; k++)
            if (all[k].ends == 0 && all[k].handle == starts[i].handle) {
                int64_t at = starts[i].starts_usec / USEC_PER_SEC;

                assert_int_equal(starts[i].start, SCHED_START_AT);
                assert_row(at <= all[k].promised,
                           "seed %u, second %ld: session %zu at %ld, not %ld", seed, (long)now, k,
                           (long)at, (long)all[k].promised);
                all[k].promised = at;
            }
}

/* As new groups are: whatever comes later, nobody's estimated start moves later. */
static void test_estimates_hold(void **state)
{
    static const struct selector_ops *const selectors[] = { &sched_concentrated, &sched_dispersed };

    (void)state;
    for (unsigned seed = 1; seed <= 120; seed++) {
        AQ_CLEANUP(sched_freep) struct sched *s = NULL;
        struct estimated all[120];
        int64_t lifetimes[120];
        size_t count = 0;

        srand(seed);
        begin(&sched_fifo, selectors[seed % 2]);
        world.snap.options.backfill = true;
        world.snap.options.plans_to_start = seed % 4 < 2;
        agent("a", "cpu=4")->capacity = own("cpu=4");
        agent("b", "cpu=4")->capacity = own("cpu=4");
        for (int cpus = 1; cpus <= 4; cpus++)
            (void)session((const char *const[]){ "cpu=1", "cpu=2", "cpu=3", "cpu=4" }[cpus - 1]);
        s = sched_new(world.types, &world.snap.options);
        for (int i = 0; i < 2; i++)
            assert_int_equal(sched_set_agent(s, &world.agents[i], NULL), 0);
        for (int64_t now = 1; now <= 60; now++) {
            struct sched_result result;

            for (size_t k = 0; k < count; k++)
                if (all[k].ends == now)
                    sched_drop(s, all[k].handle);
            for (int k = rand() % 3; k > 0 && count < AQ_COUNT(all); k--, count++) {
                struct sched_session one = world.sessions[rand() % 4];

                lifetimes[count] = 1 + rand() % 8;
                one.row = (int64_t)count + 1;
                one.lifetime_usec = lifetimes[count] * USEC_PER_SEC;
                all[count] = (struct estimated){ .promised = INT64_MAX };
                assert_int_equal(sched_add(s, &one, &all[count].handle, NULL), 0);
            }
            sched_pass(s, now * USEC_PER_SEC, &world.arena, &result);
            take_placed(&result, all, count, lifetimes, now, seed);
            take_estimates(s, all, count, now, seed);
        }
        end();
    }
}

/* A pass that nothing could start in tells no times, and looks at one session only. */
static void test_nothing_has_room(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = world.snap.options.plans_to_start = true;
    (void)agent("a", "cpu=1");
    runs("a", "cpu=3", 0, 60);
    session("cpu=4")->lifetime_usec = 10 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 10 * USEC_PER_SEC;
    run_at(0);
    assert_int_equal(world.result.count, 1);
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_false(world.result.is_blocked);
    session("cpu=1")->lifetime_usec = 10 * USEC_PER_SEC; /* starts before both */
    session("cpu=1")->lifetime_usec = 10 * USEC_PER_SEC;
    run_at(0);
    assert_string_equal(places(), "- - a -");
    assert_int_equal(outcome_of(0)->starts_usec, 60 * USEC_PER_SEC);
    end();
}

static void assert_same_outcomes(const struct sched_result *a, const struct sched_result *b,
                                 unsigned seed)
{
    assert_row(a->count == b->count, "seed %u", seed);
    for (size_t i = 0; i < a->count; i++)
        assert_row(a->outcomes[i].session == b->outcomes[i].session
                       && a->outcomes[i].verdict == b->outcomes[i].verdict
                       && a->outcomes[i].starts_usec == b->outcomes[i].starts_usec,
                   "seed %u, outcome %zu", seed, i);
}

/* What a pass remembers of the last search for sessions that have room changes nothing: beside a
 * scheduler that forgets it. Some sessions may not start yet, some come in hundreds.
 */
static void test_searches_are_remembered(void **state)
{
    static const struct sequencer_ops *const sequencers[] = { &sched_fifo, &sched_lifo,
                                                              &sched_drf };

    (void)state;
    for (unsigned seed = 1; seed <= 60; seed++) {
        struct sched *s[2] = { NULL };
        uint32_t handles[1000];
        size_t count = 0, remembered = 0;

        srand(seed);
        begin(sequencers[seed % 3], &sched_concentrated);
        world.snap.options.backfill = world.snap.options.plans_to_start = true;
        agent("a", "cpu=4")->capacity = own("cpu=4");
        for (int cpus = 1; cpus <= 4; cpus++)
            (void)session((const char *const[]){ "cpu=1", "cpu=2", "cpu=3", "cpu=4" }[cpus - 1]);
        for (int i = 0; i < 2; i++) {
            s[i] = sched_new(world.types, &world.snap.options);
            assert_int_equal(sched_set_agent(s[i], &world.agents[0], NULL), 0);
        }
        for (int64_t now = 1; now <= 60; now++) {
            size_t more = seed % 6 == 0 && rand() % 20 == 0 ? 2 * ROOM_SEARCH_MAX
                                                            : (size_t)rand() % 3;
            struct sched_result result[2];

            for (; more > 0 && count < AQ_COUNT(handles); more--, count++) {
                struct sched_session one = world.sessions[rand() % 4];

                one.row = (int64_t)count + 1;
                one.priority = rand() % 2;
                one.lifetime_usec = (1 + rand() % 8) * USEC_PER_SEC;
                one.starts_usec = rand() % 4 ? 0 : (now + rand() % 8) * USEC_PER_SEC;
                for (int i = 0; i < 2; i++)
                    assert_int_equal(sched_add(s[i], &one, &handles[count], NULL), 0);
            }
            remembered += s[0]->search.version == s[0]->cluster.free_version;
            s[1]->search = (struct room_search){ 0 };
            for (int i = 0; i < 2; i++)
                sched_pass(s[i], now * USEC_PER_SEC, &world.arena, &result[i]);
            assert_same_outcomes(&result[0], &result[1], seed);
            for (size_t i = 0; i < result[0].count; i++)
                if (result[0].outcomes[i].verdict == SCHED_PLACED && rand() % 3)
                    for (int k = 0; k < 2; k++)
                        sched_drop(s[k], result[0].outcomes[i].session);
        }
        assert_row(remembered > 0, "seed %u", seed);
        for (int i = 0; i < 2; i++)
            sched_free(s[i]);
        end();
    }
}

/* ---- plans ---- */

static struct sched *planner;

/* The state of the world; here agents say what they have in all. */
static void begin_plan(void)
{
    uint32_t handle;

    planner = sched_new(world.types, &world.snap.options);
    for (size_t i = 0; i < world.snap.agent_count; i++)
        assert_int_equal(sched_set_agent(planner, &world.agents[i], NULL), 0);
    for (size_t i = 0; i < world.snap.running_count; i++)
        assert_int_equal(sched_add_running(planner, &world.running[i], &handle, NULL), 0);
    for (size_t i = 0; i < world.snap.session_count; i++)
        assert_int_equal(sched_add(planner, &world.sessions[i], &handle, NULL), 0);
}

/* "2@60 1@100 3?": rows in order, with the second of the start or why there is none. */
static const char *plan_at(int64_t sec, size_t max)
{
    static const char signs[] = { [SCHED_START_OPEN] = '?',
                                  [SCHED_START_BEHIND] = '<',
                                  [SCHED_START_RULED_OUT] = '!',
                                  [SCHED_START_NOT_ESTIMATED] = '.' };
    static char text[512];
    struct sched_start_estimate *planned;
    int count = sched_estimate_starts(planner, sec * USEC_PER_SEC, max, &world.arena, &planned),
        at = 0;

    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        int row = (int)(planned[i].handle - world.snap.running_count) + 1;

        if (planned[i].start == SCHED_START_AT)
            at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%d@%d", i ? " " : "", row,
                           (int)(planned[i].starts_usec / USEC_PER_SEC));
        else
            at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%d%c", i ? " " : "", row,
                           signs[planned[i].start]);
    }
    return text;
}

static void end_plan(void)
{
    sched_free(planner);
    end();
}

/* 8 cores, 6 of them until 100. In strict order nobody starts before who is first. */
static void plan_queue(bool backfill)
{
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = backfill;
    (void)agent("a", "cpu=8");
    (void)runs("a", "cpu=6", 0, 100);
    session("cpu=8")->lifetime_usec = 50 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 90 * USEC_PER_SEC;
    session("cpu=8")->lifetime_usec = 50 * USEC_PER_SEC;
    session("cpu=1"); /* with no end */
    session("cpu=8");
    session("cpu=8");
    session("cpu=2")->priority = 50;
    begin_plan();
}

static void test_plan(void **state)
{
    (void)state;
    plan_queue(false);
    assert_string_equal(plan_at(10, 99), "7@10 1? 2< 3< 4< 5< 6<");
    end_plan();
    plan_queue(true);
    assert_string_equal(plan_at(10, 99), "7@10 1? 2@100 3? 4@100 5? 6?");
    assert_string_equal(plan_at(10, 2), "7@10 1? 2. 3. 4. 5. 6.");
    end_plan();
}

/* Ends are known: everyone has a time, and the queue's order holds. */
static void test_plan_of_ends(void **state)
{
    struct sched_result result;

    (void)state;
    begin(&sched_lifo, &sched_concentrated);
    (void)agent("a", "cpu=8");
    (void)runs("a", "cpu=6", 0, 100);
    for (int i = 0; i < 4; i++)
        session(i % 2 ? "cpu=8" : "cpu=2")->lifetime_usec = 50 * USEC_PER_SEC;
    world.sessions[2].starts_usec = 1000 * USEC_PER_SEC;
    begin_plan();
    assert_string_equal(plan_at(10, 99), "4@100 3! 2@150 1@200");
    assert_string_equal(plan_at(110, 99), "4@121 3! 2@171 1@221"); /* late by 10: 11 more */
    sched_pass(planner, 110 * USEC_PER_SEC, &world.arena, &result);
    assert_int_equal(result.count, 1); /* nothing was held by planning */
    assert_int_equal(result.outcomes[0].verdict, SCHED_NO_ROOM);
    end_plan();
}

/* ---- preemption ---- */

static struct sched_session *victim(const char *agent_id, const char *request, int64_t started,
                                    int job_priority)
{
    struct sched_session *s = runs(agent_id, request, started, 0);

    s->is_preemptible = true;
    s->job_priority = job_priority;
    return s;
}

static void preempting(enum sched_victims order)
{
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.preemption = (struct sched_preemption){ .enabled = true, .order = order };
}

/* "1 3": the victims of a session, by number. */
static const char *victims_of(size_t n)
{
    static char text[256];
    const struct sched_outcome *o = outcome_of(n);
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; o && i < o->victim_count; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", i ? " " : "",
                                o->victims[i] + 1);
    return text;
}

static const struct {
    const char *name;
    enum sched_victims order;
    struct {
        const char *agent, *request;
        int64_t started;
        int priority;
    } victims[4];
    const char *request, *want, *agent;
} preemptions[] = {
    { "the oldest",
      SCHED_OLDEST,
      { { "a", "cpu=2", 2020, 1 }, { "a", "cpu=2", 2024, 1 } },
      "cpu=2",
      "1",
      "a" },
    { "the newest",
      SCHED_NEWEST,
      { { "a", "cpu=2", 2020, 1 }, { "a", "cpu=2", 2024, 1 } },
      "cpu=2",
      "2",
      "a" },
    { "the least important first",
      SCHED_OLDEST,
      { { "a", "cpu=2", 2020, 3 }, { "a", "cpu=2", 2024, 1 } },
      "cpu=2",
      "2",
      "a" },
    { "as important: nobody", SCHED_OLDEST, { { "a", "cpu=2", 2020, 5 } }, "cpu=2", "", "" },
    { "not enough", SCHED_OLDEST, { { "a", "cpu=1", 2020, 1 } }, "cpu=4", "", "" },
    { "both",
      SCHED_OLDEST,
      { { "a", "cpu=2", 2020, 1 }, { "a", "cpu=2", 2024, 1 } },
      "cpu=4",
      "1 2",
      "a" },
    { "where fewest go",
      SCHED_FEWEST,
      { { "a", "cpu=1", 2020, 1 }, { "a", "cpu=1", 2021, 1 }, { "b", "cpu=2", 2022, 1 } },
      "cpu=2",
      "3",
      "b" },
    { "the smallest",
      SCHED_SMALLEST,
      { { "a", "cpu=4", 2020, 1 }, { "a", "cpu=1", 2021, 1 }, { "a", "cpu=1", 2022, 1 } },
      "cpu=2",
      "2 3",
      "a" },
    { "the largest, for few",
      SCHED_FEWEST,
      { { "a", "cpu=1", 2020, 1 }, { "a", "cpu=1", 2021, 1 }, { "a", "cpu=4", 2022, 1 } },
      "cpu=2",
      "3",
      "a" },
    { "who is not needed stays",
      SCHED_OLDEST,
      { { "a", "cpu=2", 2020, 0 }, { "a", "cpu=6", 2021, 1 } },
      "cpu=4",
      "2",
      "a" },
    { "who has nothing of it stays",
      SCHED_OLDEST,
      { { "a", "mem=2", 2020, 0 }, { "a", "cpu=4", 2021, 1 } },
      "cpu=4",
      "2",
      "a" },
};

static void test_preemption(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(preemptions); i++) {
        preempting(preemptions[i].order);
        (void)agent("a", "cpu=0 mem=0");
        (void)agent("b", "cpu=0 mem=0");
        for (size_t v = 0; v < 4 && preemptions[i].victims[v].agent; v++)
            (void)victim(preemptions[i].victims[v].agent, preemptions[i].victims[v].request,
                         preemptions[i].victims[v].started, preemptions[i].victims[v].priority);
        session(preemptions[i].request)->job_priority = 5;
        run_at(3000);
        assert_row(strcmp(victims_of(0), preemptions[i].want) == 0, "%s: %s", preemptions[i].name,
                   victims_of(0));
        assert_row(verdict_of(0) == (*preemptions[i].want ? SCHED_PREEMPTING : SCHED_NO_ROOM), "%s",
                   preemptions[i].name);
        if (*preemptions[i].want)
            assert_row(strcmp(world.agents[outcome_of(0)->agents[0]].id, preemptions[i].agent) == 0,
                       "%s", preemptions[i].name);
        end();
    }
}

/* A clock set back: what runs "began" in an hour. Its end counts as promised, it is too young
 * to be preempted, and nothing is promised for the past.
 */
static void test_clock_set_back(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    (void)agent("a", "cpu=2");
    (void)runs("a", "cpu=6", 3600, 100);
    session("cpu=8")->lifetime_usec = 50 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 3600 * USEC_PER_SEC;
    session("cpu=2")->lifetime_usec = 3800 * USEC_PER_SEC;
    run_at(10);
    assert_int_equal(outcome_of(0)->starts_usec, 3700 * USEC_PER_SEC);
    assert_string_equal(places(), "- a -");
    assert_int_equal(outcome_of(2)->starts_usec, 3750 * USEC_PER_SEC);
    end();

    preempting(SCHED_OLDEST);
    world.snap.options.preemption.min_runtime_usec = USEC_PER_SEC;
    (void)agent("a", "cpu=0");
    (void)victim("a", "cpu=2", 3600, 1);
    session("cpu=2")->job_priority = 5;
    run_at(10);
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    end();
}

/* Who may not be preempted: not asked, too young, of another scope; and who may not preempt. */
static void test_protected(void **state)
{
    (void)state;
    for (int way = 0; way < 5; way++) {
        struct sched_session *v, *s;

        preempting(SCHED_OLDEST);
        world.snap.options.preemption.min_runtime_usec = way == 1 ? 2000 * USEC_PER_SEC : 0;
        (void)agent("a", "cpu=0");
        v = victim("a", "cpu=2", 2000, 1);
        s = session("cpu=2");
        s->job_priority = 5;
        v->is_preemptible = way != 0;
        v->scope = way == 2 ? "ann" : NULL;
        s->scope = way == 2 ? "bob" : NULL;
        s->type = way == 3 ? SESSION_SYSTEM : SESSION_BATCH;
        world.snap.options.preemption.enabled = way != 4;
        run_at(3000);
        assert_row(verdict_of(0) == SCHED_NO_ROOM, "%d", way);
        end();
    }
}

/* A gang takes one victim once; a victim on two agents makes room on both. */
static void test_preemption_of_gangs(void **state)
{
    (void)state;
    preempting(SCHED_OLDEST);
    (void)agent("a", "cpu=0");
    (void)victim("a", "cpu=8", 2020, 1);
    session("cpu=2")->job_priority = 5;
    world.sessions[0].single_node = false;
    kernel("cpu=2");
    run_at(3000);
    assert_string_equal(victims_of(0), "1");
    end();

    preempting(SCHED_OLDEST); /* 2 cores are not enough for both */
    (void)agent("a", "cpu=0");
    (void)victim("a", "cpu=2", 2020, 1);
    session("cpu=2")->job_priority = 5;
    world.sessions[0].single_node = false;
    kernel("cpu=2");
    run_at(3000);
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    end();

    preempting(SCHED_OLDEST); /* {a: 2, b: 2}; a is full, b has 2 left */
    (void)agent("a", "cpu=0");
    (void)agent("b", "cpu=2");
    world.running_sessions[0] = *victim("a", "cpu=2", 2020, 1);
    world.kernels[world.kernel_count++] = own("cpu=2");
    world.running_sessions[0].single_node = false;
    world.running_sessions[0].kernel_count = 2;
    world.places[0][1] = (struct sched_place){ .agent_id = "b" };
    session("cpu=4")->job_priority = 5;
    world.sessions[0].single_node = false;
    kernel("cpu=2");
    run_at(3000);
    assert_string_equal(victims_of(0), "1");
    assert_int_equal(outcome_of(0)->agents[0], 1);
    assert_int_equal(outcome_of(0)->agents[1], 0);
    end();
}

/* Twenty victims and three that preempt them: each victim goes once, the
 * places are kept for those who made them go, and they start when all is gone.
 */
static void test_preemption_twenty(void **state)
{
    struct sched *s;
    struct sched_result result;
    uint32_t victims[20], handles[4], count = 0;

    (void)state;
    preempting(SCHED_OLDEST);
    (void)agent("a", "cpu=20");
    (void)session("cpu=8");
    for (int i = 0; i < 20; i++)
        (void)victim("a", "cpu=1", i, i % 2);
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(sched_add_running(s, &world.running[i], &victims[i], NULL), 0);
    for (int i = 0; i < 3; i++) {
        struct sched_session one = world.sessions[0];

        one.row = i + 1;
        one.job_priority = 5;
        assert_int_equal(sched_add(s, &one, &handles[i], NULL), 0);
    }
    sched_pass(s, 1000 * USEC_PER_SEC, &world.arena, &result);
    assert_int_equal(result.count, 3);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PREEMPTING);
    assert_int_equal(result.outcomes[0].victim_count, 8); /* 0 2 4 6 8 10 12 14 */
    assert_int_equal(result.outcomes[1].verdict, SCHED_PREEMPTING);
    assert_int_equal(result.outcomes[1].victim_count, 8);        /* 16 18, then 1 3 5 7 9 11 */
    assert_int_equal(result.outcomes[2].verdict, SCHED_NO_ROOM); /* 4 are left */
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(result.outcomes[0].victims[i], victims[2 * i]);
        assert_int_equal(result.outcomes[1].victims[i],
                         victims[i < 2 ? 16 + 2 * i : 2 * (i - 2) + 1]);
    }
    for (uint32_t i = 0; i < 20; i++) {
        struct sched_session late = world.sessions[0];

        if (i % 2 && i > 11)
            continue;
        sched_drop(s, victims[i]);
        late.row = 100 + i; /* waits behind all the time, and never takes their place */
        if (i == 0)
            assert_int_equal(sched_add(s, &late, &handles[3], NULL), 0);
        sched_pass(s, 1001 * USEC_PER_SEC, &world.arena, &result);
        for (size_t o = 0; o < result.count; o++)
            if (result.outcomes[o].verdict == SCHED_PLACED) {
                assert_true(result.outcomes[o].session == handles[0]
                            || result.outcomes[o].session == handles[1]);
                count++;
            }
    }
    assert_int_equal(count, 2);
    sched_free(s);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_backfill),
        cmocka_unit_test(test_backfill_twenty),
        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_plan_of_ends),
        cmocka_unit_test(test_backfill_depth),
        cmocka_unit_test(test_backfill_gang_and_overdue),
        cmocka_unit_test(test_backfill_gang_beside_far_end),
        cmocka_unit_test(test_backfill_devices),
        cmocka_unit_test(test_backfill_chosen_device),
        cmocka_unit_test(test_never),
        cmocka_unit_test(test_no_starvation),
        cmocka_unit_test(test_estimates_hold),
        cmocka_unit_test(test_nothing_has_room),
        cmocka_unit_test(test_searches_are_remembered),
        cmocka_unit_test(test_preemption),
        cmocka_unit_test(test_clock_set_back),
        cmocka_unit_test(test_protected),
        cmocka_unit_test(test_preemption_of_gangs),
        cmocka_unit_test(test_preemption_twenty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
