/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every pass: by enumeration of small clusters against a search
 * of all assignments, and on random large ones.
 */
#include "world.h"

#include "alloc/alloc_map.h"

/* ---- every small cluster ---- */

struct kind {
    int count, cpus[2]; /* kernels */
};

static const struct kind kinds[] = { { 1, { 1, 0 } }, { 1, { 2, 0 } }, { 1, { 3, 0 } },
                                     { 2, { 1, 1 } }, { 2, { 1, 2 } }, { 2, { 2, 1 } },
                                     { 2, { 2, 2 } }, { 2, { 1, 3 } } };

/* Is there any assignment of the kernels? */
static bool can_be(const int free[2], const struct kind *k)
{
    for (int way = 0; way < 1 << k->count; way++) {
        int left[2] = { free[0], free[1] };

        for (int i = 0; i < k->count; i++)
            left[way >> i & 1] -= k->cpus[i];
        if (left[0] >= 0 && left[1] >= 0)
            return true;
    }
    return false;
}

static void make(const int cpus[2], const size_t queue[3], bool is_passing)
{
    char text[16];

    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = is_passing;
    for (int a = 0; a < 2; a++) {
        (void)snprintf(text, sizeof(text), "cpu=%d", cpus[a]);
        (void)agent(a ? "b" : "a", text);
    }
    for (int s = 0; s < 3; s++) {
        const struct kind *k = &kinds[queue[s]];

        (void)snprintf(text, sizeof(text), "cpu=%d", k->cpus[0]);
        session(text)->single_node = k->count == 1;
        world.sessions[s].retries = 1;
        if (k->count == 2) {
            (void)snprintf(text, sizeof(text), "cpu=%d", k->cpus[1]);
            kernel(text);
        }
    }
}

/* Each in order starts exactly if some assignment of all its kernels exists
 * after those before it; where nobody may pass, none behind the first that
 * does not start.
 */
static void check(const int cpus[2], const size_t queue[3], bool is_passing)
{
    int free[2] = { cpus[0], cpus[1] };
    bool is_blocked = false;

    make(cpus, queue, is_passing);
    run_at(0);
    for (size_t s = 0; s < 3; s++) {
        const struct kind *k = &kinds[queue[s]];
        const struct sched_outcome *o = outcome_of(s);
        bool wanted = !is_blocked && can_be(free, k);

        assert_row((verdict_of(s) == SCHED_PLACED) == wanted, "%d %d: %zu %zu %zu, session %zu",
                   cpus[0], cpus[1], queue[0], queue[1], queue[2], s);
        for (int i = 0; wanted && i < k->count; i++)
            free[o->agents[i]] -= k->cpus[i];
        assert_true(free[0] >= 0 && free[1] >= 0);
        is_blocked = is_blocked || (!wanted && !is_passing);
    }
    end();
}

static void test_every_small_cluster(void **state)
{
    (void)state;
    for (int a = 0; a <= 4; a++)
        for (int b = 0; b <= 4; b++)
            for (size_t q = 0; q < AQ_COUNT(kinds) * AQ_COUNT(kinds) * AQ_COUNT(kinds); q++)
                check((int[]){ a, b },
                      (size_t[]){ q % AQ_COUNT(kinds), q / AQ_COUNT(kinds) % AQ_COUNT(kinds),
                                  q / AQ_COUNT(kinds) / AQ_COUNT(kinds) },
                      q % 2);
}

/* ---- random queues ---- */

#define ROUNDS 60

static void random_queue(const struct sequencer_ops *sequencer, const struct selector_ops *selector)
{
    static const char *const requests[] = { "cpu=1", "cpu=2 cuda.shares=0.3",
                                            "cpu=1 cuda.shares=0.6", "cpu=2 cuda.shares=1",
                                            "cpu=4 cuda.shares=2" };

    begin(sequencer, selector);
    for (int a = 0; a < 4; a++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "i-%d", a);
        (void)agent(id, "cpu=8 cuda.shares=2");
        DEVICES("T4", 1, 1);
    }
    world.snap.owner_count = 4;
    for (int s = 0; s < 40; s++) {
        session(requests[rand() % 5])->owner = (uint32_t)rand() % 4;
        world.sessions[s].single_node = rand() % 3 != 0;
        world.sessions[s].may_split = rand() % 4 == 0;
        for (int k = rand() % 3; k > 0; k--)
            kernel(requests[rand() % 5]);
    }
}

/* Place in the devices of the agents by hand what was placed: no part may be missing. */
static void assert_capacity(void)
{
    int64_t cpus[4] = { 0 }, shares[4] = { 0 }, chosen[4][2] = { { 0 } };

    for (size_t i = 0; i < world.result.count; i++) {
        const struct sched_outcome *o = &world.result.outcomes[i];
        const struct sched_session *s = &world.sessions[o->session];

        for (size_t k = 0; o->verdict == SCHED_PLACED && k < s->kernel_count; k++) {
            assert_true(o->agents[k] < 4); /* whole: every kernel is somewhere */
            assert_true(!s->single_node || o->agents[k] == o->agents[0]);
            cpus[o->agents[k]] += slots_get(s->kernels[k], "cpu");
            shares[o->agents[k]] += slots_get(s->kernels[k], "cuda.shares");
            if (o->chosen[k].count)
                chosen[o->agents[k]][o->chosen[k].parts[0].device] += slots_get(s->kernels[k],
                                                                                "cuda.shares");
        }
    }
    for (int a = 0; a < 4; a++) {
        assert_true(cpus[a] <= 8 * AMOUNT_ONE && shares[a] <= 2 * AMOUNT_ONE);
        assert_true(chosen[a][0] <= AMOUNT_ONE && chosen[a][1] <= AMOUNT_ONE);
    }
}

static void test_capacity_and_strict_order(void **state)
{
    static const struct selector_ops *const selectors[] = {
        &sched_concentrated, &sched_dispersed,        &sched_round_robin,
        &sched_bin_packing,  &sched_high_performance, &sched_fragmentation
    };

    (void)state;
    srand(7);
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t next = 0;

        random_queue(round % 2 ? &sched_fifo : &sched_lifo,
                     selectors[(size_t)round % AQ_COUNT(selectors)]);
        run_at(0);
        assert_capacity();
        /* nobody overtakes: who started are the first, without a gap */
        for (size_t i = 0; i < world.result.count; i++) {
            const struct sched_outcome *o = &world.result.outcomes[i];

            assert_int_equal(o->session, round % 2 ? next : 39 - next);
            assert_true(o->verdict == SCHED_PLACED || i + 1 == world.result.count);
            next++;
        }
        end();
    }
}

/* As long as there is resources for the next one, no two owners that both want
 * more are further apart than one session.
 */
static void test_drf_equal(void **state)
{
    (void)state;
    srand(11);
    for (int round = 0; round < ROUNDS; round++) {
        int held[4] = { 0 }, largest = 0, least = INT32_MAX, most = 0;

        begin(&sched_drf, &sched_concentrated);
        (void)agent("a", "cpu=60");
        world.snap.owner_count = 4;
        for (int s = 0; s < 60; s++) { /* each wants more than its part */
            char text[16];
            int cpus = 1 + rand() % 4;

            (void)snprintf(text, sizeof(text), "cpu=%d", s < 56 ? cpus : 40);
            session(text)->owner = (uint32_t)s % 4;
            largest = s < 56 ? AQ_MAX(largest, cpus) : largest;
        }
        run_at(0);
        for (size_t i = 0; i < world.result.count; i++) {
            const struct sched_outcome *o = &world.result.outcomes[i];
            const struct sched_session *s = &world.sessions[o->session];

            if (o->verdict == SCHED_PLACED)
                held[s->owner] += (int)(slots_get(s->kernels[0], "cpu") / AMOUNT_ONE);
        }
        for (int i = 0; i < 4; i++) {
            least = AQ_MIN(least, held[i]);
            most = AQ_MAX(most, held[i]);
        }
        assert_true(world.result.is_blocked);
        assert_row(most - least <= largest, "round %d: %d to %d", round, least, most);
        end();
    }
}

/* The order in which agents and sessions are listed does not matter. */
static void test_same_decisions(void **state)
{
    (void)state;
    srand(13);
    for (int round = 0; round < ROUNDS; round++) {
        char first[1024];

        random_queue(&sched_fifo, &sched_concentrated);
        run_at(0);
        (void)snprintf(first, sizeof(first), "%s", places());
        for (int i = 0; i < 2; i++) {
            struct sched_agent swap = world.agents[i];

            world.agents[i] = world.agents[3 - i];
            world.agents[3 - i] = swap;
        }
        run_at(0);
        assert_string_equal(places(), first);
        end();
    }
}

/* ---- as the agent divides ---- */

#define DEVICES_OF_ONE 5

/* A node's map with so much free of each device. */
static struct alloc_map *make_map(const int64_t *free, size_t count, const int64_t *quanta)
{
    static const char *const ids[DEVICES_OF_ONE] = { "0", "1", "2", "3", "4" };
    const char *slot = slot_name_intern("cuda.shares", 11);
    const struct alloc_slot slots[] = { { .name = slot, .quantum = quanta[0] } };
    struct alloc_device devices[DEVICES_OF_ONE];
    struct alloc_config config = { slots, 1, devices, count, NULL, NULL, ALLOC_INTERLEAVED };
    struct alloc_map *map = NULL;

    for (size_t d = 0; d < count; d++)
        devices[d] = (struct alloc_device){ ids[d], slot, AMOUNT_ONE, -1, quanta[d] };
    assert_int_equal(alloc_map_new(&config, &map, NULL), 0);
    for (size_t d = 0; d < count; d++) {
        struct alloc_grant held = { 0 };

        assert_int_equal(
            alloc_grant_add(&held, slot, SLOT_COUNT, ids[d], 1, AMOUNT_ONE - free[d], NULL), 0);
        assert_int_equal(alloc_map_apply(map, &held, NULL), 0);
        alloc_grant_done(&held);
    }
    return map;
}

/* What may be split has room exactly where the agent's map gives it something; what may not has
 * room only where the map gives it equal parts.
 */
static void test_agrees_with_the_agent(void **state)
{
    (void)state;
    srand(14);
    for (int round = 0; round < 3000; round++) {
        size_t count = 1 + (size_t)rand() % DEVICES_OF_ONE;
        int64_t free[DEVICES_OF_ONE], quanta[DEVICES_OF_ONE], sum = 0;
        int64_t unit = rand() % 3 ? AMOUNT_ONE / 10 : AMOUNT_ONE / 20;
        bool may_split = rand() % 2, fits;
        struct alloc_grant grant = { 0 };
        struct alloc_request wanted = { .forbid_fragmentation = !may_split };
        struct alloc_map *map;
        char text[64];
        int r;

        begin(&sched_fifo, &sched_concentrated);
        for (size_t d = 0; d < count; d++) {
            quanta[d] = rand() % 5 ? unit : AMOUNT_ONE / 4;
            free[d] = rand() % 5 * (AMOUNT_ONE / 4) / quanta[d] * quanta[d];
            if (rand() % 2)
                free[d] = rand() % (int)(AMOUNT_ONE / quanta[d] + 1) * quanta[d];
            sum += free[d];
        }
        (void)snprintf(text, sizeof(text), "cuda.shares=%.6f", (double)sum / AMOUNT_ONE);
        (void)agent("i-1", text);
        devices("T4", count, (double[DEVICES_OF_ONE]){ 0 });
        for (size_t d = 0; d < count; d++) {
            world.devices[0][d].free = free[d];
            world.devices[0][d].quantum = quanta[d];
        }
        (void)snprintf(text, sizeof(text), "cuda.shares=%.6f", (1 + rand() % 60) * 0.05);
        session(text)->may_split = may_split;
        wanted.slots = world.sessions[0].kernels[0];
        run_at(0);
        fits = place_of(0)[0] != '\0';
        map = make_map(free, count, quanta);
        r = alloc_map_allocate(map, &wanted, &grant, NULL);
        assert_row(may_split ? fits == (r == 0) : !fits || r == 0, "round %d: %s, %d and %d", round,
                   text, fits, r);
        alloc_grant_done(&grant);
        alloc_map_free(map);
        end();
    }
}

/* ---- what is chosen, in the agent's map ---- */

#define HELD_MAX 24

struct held {
    bool is_used;
    uint32_t handle;
    struct alloc_grant grant;
};

/* The agent does as it is told, or chooses where nobody did. */
static void give(struct alloc_map *map, const struct sched_outcome *o, struct held *held)
{
    const char *ids[] = { "0", "1", "2", "3", "4" }, *slot = slot_name_intern("cuda.shares", 11);
    const struct slots *wanted = world.sessions[0].kernels[0];
    AQ_CLEANUP(alloc_grant_donep) struct alloc_grant chosen = { 0 };
    const struct alloc_request request = { .slots = wanted, .chosen = &chosen };
    struct aq_error err = { 0 };

    assert_int_equal(o->chosen[0].count, 1); /* no more is asked for than a device has */
    assert_int_equal(alloc_grant_add(&chosen, slot, SLOT_COUNT, ids[o->chosen[0].parts[0].device],
                                     1, slots_get(wanted, "cuda.shares"), NULL),
                     0);
    *held = (struct held){ .is_used = true, .handle = o->session };
    assert_row(alloc_map_allocate(map, &request, &held->grant, &err) == 0, "%s", err.text);
}

/* Sessions come and go; whatever a selector chooses, its agent has it, and both go on from the same. */
static void run_one_agent(const struct selector_ops *selector, bool backfill)
{
    static const int64_t free[] = { AMOUNT_ONE, AMOUNT_ONE, AMOUNT_ONE, AMOUNT_ONE, AMOUNT_ONE };
    static const int64_t quanta[] = { 100000, 100000, 100000, 100000, 100000 };
    struct held held[HELD_MAX] = { { 0 } };
    struct alloc_map *map = make_map(free, DEVICES_OF_ONE, quanta);
    struct sched *s;

    begin(&sched_fifo, selector);
    world.snap.options.backfill = backfill;
    (void)agent("a", "cuda.shares=5");
    DEVICES("T4", 1, 1, 1, 1, 1);
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    for (int64_t step = 0; step < 200; step++) {
        struct held *h = &held[rand() % HELD_MAX];
        struct sched_result result;
        char text[32];
        uint32_t handle;

        if (h->is_used) {
            sched_drop(s, h->handle);
            assert_int_equal(alloc_map_release(map, &h->grant, NULL), 0);
            alloc_grant_done(&h->grant);
            h->is_used = false;
            continue;
        }
        (void)snprintf(text, sizeof(text), "cuda.shares=0.%d", 1 + rand() % 9);
        world.snap.session_count = 0;
        session(text)->row = step;
        world.sessions[0].lifetime_usec = (1 + rand() % 50) * USEC_PER_SEC;
        assert_int_equal(sched_add(s, &world.sessions[0], &handle, NULL), 0);
        sched_pass(s, step * USEC_PER_SEC, &world.arena, &result);
        if (result.count == 1 && result.outcomes[0].verdict == SCHED_PLACED)
            give(map, &result.outcomes[0], h);
        else
            sched_drop(s, handle);
    }
    for (size_t i = 0; i < HELD_MAX; i++)
        alloc_grant_done(&held[i].grant);
    alloc_map_free(map);
    sched_free(s);
    end();
}

static void test_the_agent_has_what_is_chosen(void **state)
{
    (void)state;
    srand(15);
    for (int round = 0; round < 20; round++) {
        run_one_agent(&sched_bin_packing, round % 2);
        run_one_agent(&sched_high_performance, round % 2);
        run_one_agent(&sched_fragmentation, round % 2);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_small_cluster),
        cmocka_unit_test(test_capacity_and_strict_order),
        cmocka_unit_test(test_drf_equal),
        cmocka_unit_test(test_same_decisions),
        cmocka_unit_test(test_agrees_with_the_agent),
        cmocka_unit_test(test_the_agent_has_what_is_chosen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
