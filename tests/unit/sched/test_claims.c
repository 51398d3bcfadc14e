/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions whose start depends on ends that are not known: they delay nobody, until resources are
 * kept for them.
 */
#include "world.h"

#include "sched/scheduler_internal.h"

#define MAX_WAIT 3600

static struct sched *sched;
static struct sched_result result;

static void begin_claims(const char *const *agents, size_t count)
{
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
                                         "k", "l", "m", "n", "o", "p", "q", "r", "s", "t" };

    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    world.snap.options.max_wait_usec = MAX_WAIT * USEC_PER_SEC;
    for (size_t i = 0; i < count; i++)
        agent(names[i], agents[i])->capacity = own(agents[i]);
    sched = sched_new(world.types, &world.snap.options);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(sched_set_agent(sched, &world.agents[i], NULL), 0);
}

static void end_claims(void)
{
    sched_free(sched);
    end();
}

/* One more that waits; lifetime in seconds, 0 = without. Returns its handle. */
static uint32_t add(const char *request, int64_t lifetime)
{
    struct sched_session *s = session(request);
    uint32_t handle;

    s->lifetime_usec = lifetime * USEC_PER_SEC;
    assert_int_equal(sched_add(sched, s, &handle, NULL), 0);
    return handle;
}

static void pass_at(int64_t sec)
{
    sched_pass(sched, sec * USEC_PER_SEC, &world.arena, &result);
}

static bool is_running(uint32_t handle)
{
    return sched->entries[handle].status == ENTRY_PLACED;
}

static struct sched_start_estimate estimate_of(uint32_t handle, int64_t sec)
{
    struct sched_start_estimate *all;
    int count = sched_estimate_starts(sched, sec * USEC_PER_SEC, SIZE_MAX, &world.arena, &all);

    for (int i = 0; i < count; i++)
        if (all[i].handle == handle)
            return all[i];
    fail_msg("session %u does not wait", handle);
    return all[0];
}

/* Two cores: one is held without a limit, the next session needs both, a small one comes. It
 * starts at once. After an hour the core that becomes free is kept, also from sessions that have a
 * limit, and the large one starts when the other is free.
 */
static void test_large_request(void **state)
{
    uint32_t holds, head, small, later, limited;

    (void)state;
    begin_claims((const char *const[]){ "cpu=2" }, 1);
    holds = add("cpu=1", 0);
    pass_at(10);
    head = add("cpu=2", 0);
    small = add("cpu=1", 0);
    pass_at(20);
    assert_true(is_running(holds) && is_running(small) && !is_running(head));
    assert_int_equal(estimate_of(head, 20).start, SCHED_START_OPEN);
    assert_false(estimate_of(head, 20).is_due);

    sched_drop(sched, small);
    later = add("cpu=1", 0);
    limited = add("cpu=1", 60);
    pass_at(20 + MAX_WAIT);
    assert_true(!is_running(head) && !is_running(later) && !is_running(limited));
    assert_true(estimate_of(head, 20 + MAX_WAIT).has_claim);
    assert_int_equal(estimate_of(later, 20 + MAX_WAIT).promised, head);
    assert_int_equal(estimate_of(head, 20 + MAX_WAIT).promised, SCHED_NO_SESSION);

    sched_drop(sched, holds);
    pass_at(30 + MAX_WAIT);
    assert_true(is_running(head) && !is_running(later));
    sched_drop(sched, head);
    pass_at(40 + MAX_WAIT);
    assert_true(is_running(later) && is_running(limited));
    end_claims();
}

/* Two parts, of which there is room for one: each try finds room for the other when the first has
 * ended, and that ends with the session. It has no time, and the pass comes to an end.
 */
static void test_two_parts(void **state)
{
    uint32_t holds, both;
    struct sched_session *s;

    (void)state;
    begin_claims((const char *const[]){ "cpu=4" }, 1);
    holds = add("cpu=2", 0);
    pass_at(10);
    s = session("cpu=2");
    kernel("cpu=2");
    s->single_node = false;
    s->lifetime_usec = 20 * USEC_PER_SEC;
    assert_int_equal(sched_add(sched, s, &both, NULL), 0);
    pass_at(20);
    assert_false(is_running(both));
    assert_int_equal(estimate_of(both, 20).start, SCHED_START_OPEN);
    sched_drop(sched, holds);
    pass_at(30);
    assert_true(is_running(both));
    end_claims();
}

/* One millisecond before the hour is over nothing is kept; with 0 never. */
static void test_bound(void **state)
{
    (void)state;
    for (int way = 0; way < 2; way++) {
        int64_t usec = (MAX_WAIT + 20) * USEC_PER_SEC;
        uint32_t small;

        begin_claims((const char *const[]){ "cpu=2" }, 1);
        if (way)
            sched->options.max_wait_usec = 0;
        (void)add("cpu=1", 0);
        (void)add("cpu=2", 0);
        pass_at(20);
        small = add("cpu=1", 0);
        sched_pass(sched, way ? usec : usec - 1000, &world.arena, &result);
        assert_true(is_running(small));
        end_claims();
    }
}

/* What has waited before the scheduler was made counts. */
static void test_wait_before(void **state)
{
    struct sched_session *s;
    uint32_t head, small;

    (void)state;
    begin_claims((const char *const[]){ "cpu=2" }, 1);
    (void)add("cpu=1", 0);
    pass_at(7000);
    s = session("cpu=2");
    s->eligible_usec = 3000 * USEC_PER_SEC;
    assert_int_equal(sched_add(sched, s, &head, NULL), 0);
    small = add("cpu=1", 0);
    pass_at(7000);
    assert_false(is_running(head) || is_running(small));
    end_claims();
}

/* Of four agents one is kept: where the youngest sessions run. The others take what comes. It
 * stays the same when another becomes as good, and is chosen again when it leaves.
 */
static void test_choice(void **state)
{
    uint32_t old[4], head, small[3];

    (void)state;
    begin_claims((const char *const[]){ "cpu=4", "cpu=4", "cpu=4", "cpu=4" }, 4);
    for (int i = 0; i < 4; i++) {
        old[i] = add("cpu=3", 0);
        pass_at(10 + 100 * (i == 2 ? 9 : i)); /* on c the latest */
    }
    head = add("cpu=4", 0);
    pass_at(1000);
    for (int i = 0; i < 3; i++)
        small[i] = add("cpu=1", 0);
    pass_at(1000 + MAX_WAIT);
    assert_int_equal(sched->entries[head].claim->holds[0].node, 2);
    for (int i = 0; i < 3; i++)
        assert_true(is_running(small[i]));
    sched_drop(sched, small[0]);
    sched_drop(sched, old[0]);
    sched_drop(sched, small[1]);
    (void)add("cpu=1", 0);
    pass_at(2000 + MAX_WAIT);
    assert_int_equal(sched->entries[head].status, ENTRY_PLACED); /* another came free first */
    assert_int_not_equal(sched->entries[head].holds[0].node, 2);
    end_claims();
}

static void test_agent_leaves(void **state)
{
    struct sched_agent closed;
    uint32_t head;

    (void)state;
    begin_claims((const char *const[]){ "cpu=2", "cpu=2" }, 2);
    (void)add("cpu=1", 0);
    pass_at(5);
    (void)add("cpu=2", 0);
    pass_at(10);
    head = add("cpu=2", 0);
    pass_at(20);
    pass_at(20 + MAX_WAIT);
    assert_int_equal(sched->entries[head].claim->holds[0].node, 1);
    closed = world.agents[1];
    closed.is_closed = true;
    assert_int_equal(sched_set_agent(sched, &closed, NULL), 0);
    pass_at(30 + MAX_WAIT);
    assert_int_equal(sched->entries[head].claim->holds[0].node, 0);
    sched_drop(sched, head);
    end_claims();
}

/* One agent in ten is kept idle, or one. */
static void test_number_of_claims(void **state)
{
    (void)state;
    for (int count = 1; count <= 20; count += 19) {
        const char *agents[20];
        uint32_t small[20];
        int started = 0;

        for (int i = 0; i < count; i++)
            agents[i] = "cpu=2";
        begin_claims(agents, (size_t)count);
        sched->options.selector.ops = &sched_dispersed;
        for (int i = 0; i < count; i++)
            (void)add("cpu=1", 0);
        pass_at(10);
        for (int i = 0; i < 5; i++)
            (void)add("cpu=2", 0);
        pass_at(20);
        for (int i = 0; i < count; i++)
            small[i] = add("cpu=1", 0);
        pass_at(20 + MAX_WAIT);
        for (int i = 0; i < count; i++)
            started += is_running(small[i]);
        assert_int_equal(started, count == 1 ? 0 : 18);
        end_claims();
    }
}

/* A claim that leads to nothing passes to the next session that is due, and comes back. */
static void test_claims_take_turns(void **state)
{
    uint32_t heads[2];

    (void)state;
    begin_claims((const char *const[]){ "cpu=2" }, 1);
    (void)add("cpu=1", 0);
    pass_at(10);
    for (int i = 0; i < 2; i++)
        heads[i] = add("cpu=2", 0);
    pass_at(20);
    for (int turn = 1; turn <= 6; turn++) {
        int64_t now = 20 + turn * MAX_WAIT;

        pass_at(now);
        pass_at(now + MAX_WAIT / 2);
        for (int i = 0; i < 2; i++)
            assert_row(estimate_of(heads[i], now + MAX_WAIT / 2).has_claim == (i == (turn + 1) % 2),
                       "turn %d, head %d", turn, i);
    }
    end_claims();
}

/* A part of a card is kept on one card; the other one takes what comes. */
static void test_devices(void **state)
{
    uint32_t first, head, small, large;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.backfill = true;
    world.snap.options.max_wait_usec = MAX_WAIT * USEC_PER_SEC;
    (void)agent("a", "cuda.shares=2");
    DEVICES("T4", 1, 1);
    sched = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(sched, &world.agents[0], NULL), 0);
    first = add("cuda.shares=0.5", 0);
    pass_at(10);
    (void)add("cuda.shares=0.6", 0);
    pass_at(20);
    head = add("cuda.shares=0.8", 0);
    pass_at(30);
    pass_at(30 + MAX_WAIT);
    assert_int_equal(sched->entries[head].claim->holds[0].part_count, 1);
    small = add("cuda.shares=0.4", 0); /* each card has as much; the younger's is kept */
    large = add("cuda.shares=0.3", 0);
    pass_at(40 + MAX_WAIT);
    assert_true(is_running(small) && !is_running(large) && !is_running(head));
    sched_drop(sched, first);
    end_claims();
}

/* Small ones without a limit keep coming: the large one starts within the bound and the longest
 * run of what it waits for. Many random loads, of one and two agents.
 */
static void test_no_starvation(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 40; seed++) {
        struct {
            uint32_t handle;
            int64_t ends;
        } running[64];
        size_t running_count = 0;
        uint32_t big = UINT32_MAX;
        int64_t started = -1;

        srand(seed);
        begin_claims((const char *const[]){ "cpu=4", "cpu=4" }, 1 + seed % 2);
        (void)session("cpu=1");
        for (int64_t now = 1; now < 400 && started < 0; now++) {
            struct sched_session one = world.sessions[0];
            uint32_t handle;

            for (size_t i = 0; i < running_count;)
                if (running[i].ends == now) {
                    sched_drop(sched, running[i].handle);
                    running[i] = running[--running_count];
                } else {
                    i++;
                }
            for (int k = 0; k < 2; k++) {
                one.row = 10 * now + k;
                assert_int_equal(sched_add(sched, &one, &handle, NULL), 0);
            }
            if (now == 20) {
                sched->options.max_wait_usec = 100 * USEC_PER_SEC;
                big = add("cpu=4", 0);
            }
            pass_at(now);
            for (size_t i = 0; i < result.count; i++) {
                const struct sched_outcome *o = &result.outcomes[i];

                if (o->verdict == SCHED_PLACED && o->session == big)
                    started = now;
                else if (o->verdict == SCHED_PLACED) {
                    running[running_count].handle = o->session;
                    running[running_count++].ends = now + 1 + rand() % 30;
                }
            }
        }
        assert_row(started >= 0 && started <= 20 + 100 + 30, "seed %u: started at %ld", seed,
                   (long)started);
        end_claims();
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_parts),
        cmocka_unit_test(test_large_request),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_wait_before),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_agent_leaves),
        cmocka_unit_test(test_devices),
        cmocka_unit_test(test_claims_take_turns),
        cmocka_unit_test(test_number_of_claims),
        cmocka_unit_test(test_no_starvation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
