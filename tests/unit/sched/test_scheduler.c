/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduler that is kept, against snapshots, a ledger and a plain search. */
#include "world.h"

#include "sched/scheduler_internal.h"

/* ---- nothing is ever held twice ---- */

static void assert_within(const struct sched *s)
{
    for (size_t n = 0; n < s->cluster.node_count; n++) {
        const struct cluster_node *node = &s->cluster.nodes[n];
        int64_t devices = 0, gpu = -1;

        for (size_t c = 0; c < s->cluster.columns; c++) {
            assert_true(node->free[c] == SCHED_ABSENT || node->free[c] >= 0);
            if (strcmp(s->cluster.names[c], "cuda.shares") == 0)
                gpu = node->free[c];
        }
        for (uint32_t d = 0; d < node->device_count; d++) {
            assert_true(node->devices[d].free >= 0);
            assert_true(node->devices[d].free <= node->devices[d].capacity);
            devices += node->devices[d].free;
        }
        assert_true(node->device_count == 0 || devices == gpu);
    }
}

/* The agents as they are now, for a snapshot. */
static void copy_agents(const struct sched *s, struct slots *free, struct sched_agent *agents,
                        struct sched_device devices[][8])
{
    for (size_t n = 0; n < s->cluster.node_count; n++) {
        const struct cluster_node *node = &s->cluster.nodes[n];

        agents[n] = world.agents[n];
        slots_done(&free[n]);
        free[n] = (struct slots){ 0 };
        for (size_t c = 0; c < s->cluster.columns; c++)
            if (node->free[c] != SCHED_ABSENT)
                assert_int_equal(slots_set(&free[n], s->cluster.names[c], node->free[c]), 0);
        agents[n].free = &free[n];
        for (uint32_t d = 0; d < node->device_count; d++) {
            devices[n][d] = world.devices[n][d];
            devices[n][d].free = node->devices[d].free;
        }
        agents[n].devices = devices[n];
    }
}

static const char *const requests[] = { "cpu=1",
                                        "cpu=2 mem=10",
                                        "cpu=1 cuda.shares=0.3",
                                        "cpu=1 cuda.shares=0.7",
                                        "cpu=2 cuda.shares=1",
                                        "cpu=4 cuda.shares=2",
                                        "cpu=1 mem=40",
                                        "cpu=3 cuda.shares=0.5" };

static struct sched_session random_session(int64_t row)
{
    struct sched_session s = world.sessions[rand() % AQ_COUNT(requests)];

    s.row = row;
    s.priority = rand() % 3;
    s.owner = (uint32_t)rand() % 3;
    s.single_node = rand() % 4 != 0;
    s.kernel_count = 1;
    return s;
}

/* What a pass of the kept state places is what a pass over a snapshot of it
 * places: same sessions, same agents.
 */
static void assert_same_as_snapshot(const uint32_t *handles, size_t count,
                                    const struct sched_result *kept,
                                    const struct sched_snapshot *snap)
{
    struct sched_result fresh;
    size_t placed = 0, same = 0;

    assert_int_equal(sched_run(snap, &world.arena, &fresh, NULL), 0);
    for (size_t i = 0; i < fresh.count; i++) {
        if (fresh.outcomes[i].verdict != SCHED_PLACED)
            continue;
        placed++;
        assert_true(fresh.outcomes[i].session < count);
        for (size_t k = 0; k < kept->count; k++)
            if (kept->outcomes[k].verdict == SCHED_PLACED
                && kept->outcomes[k].session == handles[fresh.outcomes[i].session])
                same += kept->outcomes[k].agents[0] == fresh.outcomes[i].agents[0];
    }
    assert_int_equal(placed, same);
    for (size_t k = 0; k < kept->count; k++)
        placed -= kept->outcomes[k].verdict == SCHED_PLACED;
    assert_int_equal(placed, 0);
}

static void make_cluster(const struct sequencer_ops *sequencer, const struct selector_ops *selector)
{
    begin(sequencer, selector);
    (void)agent("a", "cpu=8 mem=64 cuda.shares=4");
    DEVICES("T4", 1, 1, 1, 1);
    (void)agent("b", "cpu=8 mem=64 cuda.shares=2");
    DEVICES("H100", 1, 1);
    (void)agent("c", "cpu=12 mem=32");
    (void)agent("d", "cpu=8 mem=64 cuda.shares=4");
    DEVICES("T4", 1, 1, 1, 1);
    for (size_t i = 0; i < AQ_COUNT(requests); i++)
        (void)session(requests[i]);
    world.snap.owner_count = 3;
}

/* Random events: sessions come and end, agents are drained and come back. */
static void run_events(unsigned seed, const struct sequencer_ops *sequencer,
                       const struct selector_ops *selector)
{
    struct sched_session waiting[64];
    uint32_t handles[64], running[256];
    size_t waiting_count = 0, running_count = 0;
    struct slots free[4] = { { 0 } };
    struct sched_agent agents[4];
    struct sched_device copies[4][8];
    struct sched_owner owner_now[3] = { { 0 } };
    struct slots used[3] = { { 0 } };
    struct sched *s;

    srand(seed);
    make_cluster(sequencer, selector);
    s = sched_new(world.types, &world.snap.options);
    for (int i = 0; i < 4; i++)
        assert_int_equal(sched_set_agent(s, &world.agents[i], NULL), 0);
    for (uint32_t i = 0; i < 3; i++)
        sched_set_owner(s, i, &world.owners[i]);
    for (int64_t row = 1; row < 60; row++) {
        struct sched_result result;
        struct sched_snapshot snap = world.snap;

        for (int k = rand() % 3; k > 0 && waiting_count < 60; k--, waiting_count++) {
            waiting[waiting_count] = random_session(row * 10 + k);
            assert_int_equal(sched_add(s, &waiting[waiting_count], &handles[waiting_count], NULL),
                             0);
        }
        for (int k = rand() % 3; k > 0 && running_count; k--) {
            size_t i = (size_t)rand() % running_count;

            sched_drop(s, running[i]);
            running[i] = running[--running_count];
        }
        copy_agents(s, free, agents, copies);
        for (uint32_t i = 0; i < 3; i++) {
            slots_done(&used[i]);
            used[i] = (struct slots){ 0 };
            for (size_t c = 0; c < s->cluster.columns; c++)
                assert_int_equal(slots_set(&used[i], s->cluster.names[c], s->owners[i].used[c]), 0);
            owner_now[i] = (struct sched_owner){ .used = &used[i] };
        }
        for (int i = 0; i < 4; i++)
            agents[i].capacity = world.agents[i].free;
        snap.types = world.types;
        snap.agents = agents;
        snap.owners = owner_now;
        snap.sessions = waiting;
        snap.session_count = waiting_count;
        sched_pass(s, 0, &world.arena, &result);
        assert_within(s);
        assert_same_as_snapshot(handles, waiting_count, &result, &snap);
        for (size_t i = 0; i < result.count; i++)
            for (size_t w = 0; w < waiting_count; w++)
                if (handles[w] == result.outcomes[i].session
                    && result.outcomes[i].verdict == SCHED_PLACED) {
                    running[running_count++] = handles[w];
                    waiting[w] = waiting[--waiting_count];
                    handles[w] = handles[waiting_count];
                    break;
                }
        arena_clear(&world.arena, 1 << 16);
    }
    for (size_t i = 0; i < running_count; i++)
        sched_drop(s, running[i]);
    for (size_t i = 0; i < waiting_count; i++)
        sched_drop(s, handles[i]);
    for (size_t n = 0; n < 4; n++) /* all is given back */
        for (uint32_t d = 0; d < s->cluster.nodes[n].device_count; d++)
            assert_int_equal(s->cluster.nodes[n].devices[d].free, AMOUNT_ONE);
    for (int i = 0; i < 4; i++)
        slots_done(&free[i]);
    for (int i = 0; i < 3; i++)
        slots_done(&used[i]);
    sched_free(s);
    end();
}

static void test_events(void **state)
{
    static const struct sequencer_ops *const sequencers[] = { &sched_fifo, &sched_lifo, &sched_drf,
                                                              &sched_fair_share };
    static const struct selector_ops *const selectors[] = { &sched_concentrated, &sched_dispersed,
                                                            &sched_bin_packing,
                                                            &sched_high_performance };

    (void)state;
    for (unsigned seed = 1; seed <= 12; seed++)
        for (size_t q = 0; q < AQ_COUNT(sequencers); q++)
            for (size_t l = 0; l < AQ_COUNT(selectors); l++)
                run_events(seed, sequencers[q], selectors[l]);
}

/* ---- against a plain search ---- */

struct plain {
    int64_t cpu, mem;
};

/* The agent that "concentrated" means, found by trying all. */
static int plain_choice(const struct plain *agents, size_t count, const struct plain *want)
{
    int best = -1;

    for (size_t i = 0; i < count; i++) {
        if (agents[i].cpu < want->cpu || agents[i].mem < want->mem)
            continue;
        if (best < 0 || agents[i].cpu < agents[best].cpu
            || (agents[i].cpu == agents[best].cpu && agents[i].mem < agents[best].mem))
            best = (int)i;
    }
    return best;
}

static void test_oracle(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= 400; seed++) {
        struct plain agents[4], wants[24];
        size_t count = 1 + seed % 4;
        bool is_blocked = false;

        srand(seed);
        begin(&sched_fifo, &sched_concentrated);
        for (size_t i = 0; i < count; i++) {
            char id[16], text[64];

            agents[i] = (struct plain){ 1 + rand() % 12, 1 + rand() % 12 };
            (void)snprintf(id, sizeof(id), "i-%zu", i);
            (void)snprintf(text, sizeof(text), "cpu=%d mem=%d", (int)agents[i].cpu,
                           (int)agents[i].mem);
            (void)agent(id, text);
        }
        for (int i = 0; i < 24; i++) {
            char text[64];

            wants[i] = (struct plain){ 1 + rand() % 4, 1 + rand() % 4 };
            (void)snprintf(text, sizeof(text), "cpu=%d mem=%d", (int)wants[i].cpu,
                           (int)wants[i].mem);
            session(text)->priority = i < 12 ? 5 : 1;
        }
        run_at(0);
        for (size_t i = 0; i < 24; i++) {
            int choice = is_blocked ? -1 : plain_choice(agents, count, &wants[i]);

            assert_row(strcmp(place_of(i), choice < 0 ? "" : world.agents[choice].id) == 0,
                       "seed %u, session %zu: %s", seed, i, place_of(i));
            is_blocked = choice < 0;
            if (choice >= 0) {
                agents[choice].cpu -= wants[i].cpu;
                agents[choice].mem -= wants[i].mem;
            }
        }
        end();
    }
}

/* ---- single calls ---- */

static void test_agent_returns(void **state)
{
    struct sched *s;
    struct sched_result result;
    struct sched_start_estimate *planned;
    uint32_t handle, more;
    struct aq_error err = { 0 };
    struct sched_session second;

    (void)state;
    make_cluster(&sched_fifo, &sched_concentrated);
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    assert_int_equal(sched_add(s, &world.sessions[5], &handle, NULL), 0);
    assert_int_equal(sched_add(s, &world.sessions[5], &more, &err), -17);
    assert_int_equal(sched_estimate_starts(s, 0, 9, &world.arena, &planned), 1);
    assert_int_equal(planned[0].handle, handle);
    sched_pass(s, 0, &world.arena, &result);
    assert_int_equal(sched_estimate_starts(s, 0, 9, &world.arena, &planned), 0);
    world.agents[0].is_closed = true; /* drained: what it holds stays held */
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    second = world.sessions[4];
    second.row = 99;
    assert_int_equal(sched_add(s, &second, &more, NULL), 0);
    sched_pass(s, 0, &world.arena, &result);
    assert_int_equal(result.outcomes[0].verdict, SCHED_NO_AGENT);
    world.agents[0].is_closed = false;
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    assert_int_equal(s->cluster.nodes[0].free[0], 4 * AMOUNT_ONE); /* 8 cpus less 4 */
    sched_pass(s, 0, &world.arena, &result);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    sched_drop(s, handle);
    sched_drop(s, more);
    assert_int_equal(s->cluster.nodes[0].free[0], 8 * AMOUNT_ONE);
    sched_free(s);
    end();
}

/* Ten thousand different requests: the idle ones are forgotten. */
static void test_requests_are_forgotten(void **state)
{
    struct sched *s;

    (void)state;
    make_cluster(&sched_fifo, &sched_concentrated);
    s = sched_new(world.types, &world.snap.options);
    for (int i = 1; i <= 10000; i++) {
        struct slots wanted = { 0 };
        const struct slots *kernel = &wanted;
        struct sched_session one = world.sessions[0];
        uint32_t handle;

        assert_int_equal(slots_set(&wanted, "cpu", i), 0);
        one.kernels = &kernel;
        assert_int_equal(sched_add(s, &one, &handle, NULL), 0);
        sched_drop(s, handle);
        slots_done(&wanted);
    }
    assert_true(s->cluster.request_count < 2000);
    sched_free(s);
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_oracle),
        cmocka_unit_test(test_agent_returns),
        cmocka_unit_test(test_requests_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
