/* SPDX-License-Identifier: Apache-2.0 */
/* Worked examples of Backend.AI's schedulers that the other files do not hold,
 * and its defects, which are not to come back.
 *
 * Not here because they are others' to test: time limits of waiting, retries
 * given up, heartbeats, the gate of the database and the terminator (the
 * manager); checks of settings when they are written (its resource groups).
 * Not here because we decide otherwise: the selector "mof", which nobody may
 * configure; an unknown sequencer, which is refused and not taken for drf; an
 * agent's remaining amounts at the beginning of a pass as the measure of what
 * it does not need, where we count what is really left.
 *
 * Defects that are tested elsewhere: the largest session taken for a share and
 * one blocker behind another (test_queue_order.c), work that can never run
 * (test_backfill.c), what depends on work that failed (test_sched.c, the manager).
 */
#include "world.h"

static const char *const cpu_mem[] = { "cpu", "mem" };
static const char *const devices_first[] = { "cuda", "rocm", "tpu", "cpu", "mem" };
static const char *const custom_first[] = { "custom", "cpu", "mem" };
static const char *const in_full[] = { "cuda.shares", "custom.accelerator", "cpu", "mem" };
static const char *const cpu_first[] = { "cpu" };

static void prioritise(const char *const *priority, size_t count)
{
    world.snap.options.slot_priority = priority;
    world.snap.options.slot_priority_count = count;
}

/* ---- the fixture of 22.03: two agents, three that wait ---- */

static void fixture(const struct sequencer_ops *sequencer)
{
    begin(sequencer, &sched_legacy);
    prioritise(devices_first, AQ_COUNT(devices_first));
    (void)agent("i-001", "cpu=4 mem=4096 cuda.shares=4 rocm.devices=2");
    (void)agent("i-101", "cpu=3 mem=2560 cuda.shares=1 rocm.devices=8");
    world.snap.owner_count = 3;
    session("cpu=2 mem=1024 cuda.shares=0 rocm.devices=1")->owner = 0;
    session("cpu=1 mem=2048 cuda.shares=0.5 rocm.devices=0")->owner = 1;
    session("cpu=0.4 mem=512 cuda.shares=0 rocm.devices=0")->owner = 2;
    kernel("cpu=0.3 mem=256 cuda.shares=0 rocm.devices=0");
    kernel("cpu=0.3 mem=256 cuda.shares=0 rocm.devices=0");
}

static void assert_first(const struct sequencer_ops *sequencer, uint32_t session, const char *place)
{
    fixture(sequencer);
    world.owners[0].used = own("cpu=3 mem=1024 rocm.devices=1");
    world.owners[1].used = own("cpu=1 mem=2048 cuda.shares=0.5");
    world.owners[2].used = own("cpu=4 mem=4096");
    world.agents[0].capacity = own("cpu=2 mem=2048"); /* 4 and 4096 in the sum */
    world.agents[1].capacity = own("cpu=2 mem=2048");
    run_at(0);
    assert_int_equal(world.result.outcomes[0].session, session);
    assert_string_equal(place_of(session), place);
    end();
}

static void test_fixture(void **state)
{
    (void)state;
    assert_first(&sched_fifo, 0, "i-001");
    assert_first(&sched_lifo, 2, "i-001");
    assert_first(&sched_drf, 1, "i-001"); /* shares .75, .5, 1 */
}

/* Where no agent has what the first wants, the others by themselves. */
static void test_mixed_agents(void **state)
{
    static const char *const places_of[] = { "", "i-gpu", "i-cpu" };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        fixture(&sched_lifo);
        world.snap.agent_count = 0;
        (void)agent("i-gpu", "cpu=4 mem=4096 cuda.shares=4");
        (void)agent("i-cpu", "cpu=3 mem=2560 cuda.shares=0");
        world.sessions[0] = world.sessions[i];
        world.snap.session_count = 1;
        run_at(0);
        assert_string_equal(place_of(0), places_of[i]);
        end();
    }
}

/* ---- selectors ---- */

static const struct {
    const char *name;
    const struct selector_ops *selector;
    const char *const *priority;
    size_t priority_count;
    const char *request, *agents[3][2], *place;
} selections[] = {
    { "legacy keeps work without GPU off GPU nodes",
      &sched_legacy,
      cpu_mem,
      2,
      "cpu=2 mem=4096 cuda.shares=0",
      { { "gpu", "cpu=4 mem=8192 cuda.shares=4" }, { "no-gpu", "cpu=4 mem=8192" } },
      "no-gpu" },
    { "also where the other is fuller",
      &sched_concentrated,
      cpu_mem,
      2,
      "cpu=1 mem=1073741824 cuda.shares=0",
      { { "g", "cpu=2 mem=4294967296 cuda.shares=4" }, { "h", "cpu=8 mem=4294967296" } },
      "h" },
    { "a GPU slot named in full, packed",
      &sched_concentrated,
      in_full,
      4,
      "cpu=1 mem=2048 cuda.shares=0.5",
      { { "low-gpu", "cpu=14 mem=28672 cuda.shares=1" },
        { "high-gpu", "cpu=2 mem=4096 cuda.shares=3" } },
      "low-gpu" },
    { "a GPU slot named in full, legacy",
      &sched_legacy,
      in_full,
      4,
      "cpu=1 mem=2048 cuda.shares=0.5",
      { { "low-gpu", "cpu=14 mem=28672 cuda.shares=1" },
        { "high-gpu", "cpu=2 mem=4096 cuda.shares=3" } },
      "high-gpu" },
    { "any device named in full",
      &sched_legacy,
      in_full,
      4,
      "cpu=1 mem=1024 custom.accelerator=1",
      { { "poor", "cpu=16 mem=32768 custom.accelerator=1" },
        { "rich", "cpu=4 mem=8192 custom.accelerator=8" } },
      "rich" },
    { "two kinds that are not wanted are more than one",
      &sched_concentrated,
      cpu_mem,
      2,
      "cpu=1 mem=1024 cuda.shares=0 tpu.device=0",
      { { "a-both", "cpu=4 mem=4096 cuda.shares=4 tpu.device=2" },
        { "b-one", "cpu=8 mem=8192 cuda.shares=0 tpu.device=2" } },
      "b-one" },
    { "none where all is used up",
      &sched_concentrated,
      cpu_mem,
      2,
      "cpu=1 mem=1024 cuda.shares=0 tpu.device=0",
      { { "a-one", "cpu=4 mem=4096 cuda.shares=4 tpu.device=0" },
        { "b-none", "cpu=8 mem=8192 cuda.shares=0 tpu.device=0" } },
      "b-none" },
    { "what the list lacks goes by name: cuda.shares before mem",
      &sched_concentrated,
      cpu_first,
      1,
      "cpu=1 mem=1024 tpu.device=1 cuda.shares=1",
      { { "a", "cpu=8 mem=4096 cuda.shares=4 tpu.device=1" },
        { "b", "cpu=8 mem=8192 cuda.shares=2 tpu.device=2" } },
      "b" },
    { "what the list lacks goes by name: mem before tpu",
      &sched_concentrated,
      cpu_first,
      1,
      "cpu=1 mem=1024 tpu.device=1 cuda.shares=1",
      { { "a", "cpu=8 mem=8192 cuda.shares=2 tpu.device=1" },
        { "b", "cpu=8 mem=4096 cuda.shares=2 tpu.device=2" } },
      "b" },

    { "the card that nobody uses is counted third",
      &sched_legacy,
      cpu_mem,
      2,
      "cpu=1 mem=2048 cuda.shares=0",
      { { "partly", "cpu=8 mem=16384 cuda.shares=2" },
        { "unused", "cpu=8 mem=16384 cuda.shares=4" } },
      "unused" },
    { "any device by its name",
      &sched_legacy,
      custom_first,
      3,
      "cpu=1 mem=1024 custom.accelerator=1",
      { { "poor", "cpu=16 mem=32768 custom.accelerator=1" },
        { "rich", "cpu=4 mem=8192 custom.accelerator=8" } },
      "rich" },
    { "legacy takes the most that is left",
      &sched_legacy,
      cpu_mem,
      2,
      "cpu=1 mem=1024",
      { { "low", "cpu=2 mem=4096" }, { "high", "cpu=12 mem=24576" } },
      "high" },
    { "GPUs count before CPU without being named in full",
      &sched_concentrated,
      devices_first,
      5,
      "cpu=1 mem=1024 cuda.shares=1",
      { { "a", "cpu=2 mem=2048 cuda.shares=4" }, { "b", "cpu=8 mem=8192 cuda.shares=1" } },
      "b" },
};

static void test_selections(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(selections); i++) {
        begin(&sched_fifo, selections[i].selector);
        prioritise(selections[i].priority, selections[i].priority_count);
        for (size_t a = 0; a < 3 && selections[i].agents[a][0]; a++)
            (void)agent(selections[i].agents[a][0], selections[i].agents[a][1]);
        (void)session(selections[i].request);
        run_at(0);
        assert_row(strcmp(place_of(0), selections[i].place) == 0, "%s: %s", selections[i].name,
                   place_of(0));
        end();
    }
}

static void test_same_again(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        begin(&sched_fifo, &sched_concentrated);
        (void)agent("c", "cpu=4 mem=8192");
        (void)agent("b", "cpu=4 mem=8192");
        (void)agent("a", "cpu=4 mem=8192");
        (void)session("cpu=1 mem=1024");
        run_at(0);
        assert_string_equal(place_of(0), "a");
        end();
    }
}

/* Other groups are others; a gang that came to nothing is no member. */
static void test_groups(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 1;
    (void)agent("a", "cpu=4");
    (void)agent("b", "cpu=5");
    for (int i = 0; i < 3; i++) {
        session(i == 0 ? "cpu=3" : "cpu=1")->group = i == 1 ? "others" : "ours";
        world.sessions[i].grouping = SCHED_SPREAD;
        world.sessions[i].grouping_strict = true;
        world.sessions[i].retries = 1;
        if (i == 0) { /* three on two agents */
            world.sessions[0].single_node = false;
            kernel("cpu=3");
            kernel("cpu=3");
        }
    }
    run_at(0);
    assert_string_equal(places(), "- a a");
    end();
}

/* A full agent by number of kernels is passed over; alone, that is what is said. */
static void test_kernels_max(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    agent("busy", "cpu=4 mem=8192")->kernels_max = 10;
    world.agents[0].kernels = 10;
    agent("free", "cpu=8 mem=16384")->kernels_max = 10;
    world.agents[1].kernels = 5;
    (void)session("cpu=1 mem=1024");
    run_at(0);
    assert_string_equal(places(), "free");
    world.snap.agent_count = 1;
    assert_int_equal(sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL), SCHED_NO_ROOM);
    assert_non_null(strstr(text.data, "containers: 1 missing on busy"));
    assert_null(strstr(text.data, "cpu: missing"));
    assert_null(strstr(text.data, "mem: missing"));
    end();
}

static void test_architecture(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("x86", "cpu=1");
    agent("arm", "cpu=8")->architecture = "aarch64";
    session("cpu=1")->architecture = "aarch64";
    run_at(0);
    assert_string_equal(places(), "arm");
    end();
}

/* Where one session failed is nothing to another. */
static void test_failed_agent_of_another(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=4");
    (void)agent("b", "cpu=8");
    session("cpu=1")->failed_agent = "a";
    (void)session("cpu=1");
    run_at(0);
    assert_string_equal(places(), "b a");
    end();
}

/* ---- order and limits ---- */

static void test_bands(void **state)
{
    static const int priorities[] = { 1, 10, 5 };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=4");
    for (int i = 0; i < 3; i++)
        session("cpu=1")->priority = priorities[i];
    run_at(0);
    assert_string_equal(placed_in_order(), "2 3 1");
    end();
}

/* Of 100 cpus the heavy one holds 30 and 20, so .5; the light one 10, so .1. */
static void test_drf_heavy_and_light(void **state)
{
    (void)state;
    begin(&sched_drf, &sched_concentrated);
    agent("a", "cpu=40 mem=102400")->capacity = own("cpu=100 mem=102400");
    world.owners[0].used = own("cpu=50");
    world.owners[1].used = own("cpu=10");
    world.snap.owner_count = 2;
    session("cpu=1")->owner = 0;
    session("cpu=1")->owner = 1;
    run_at(0);
    assert_string_equal(placed_in_order(), "2 1");
    end();
}

/* A group that says nothing of a slot leaves it to its domain. */
static void test_limit_of_the_domain(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=8 cuda.shares=8");
    world.accounts[0] = (struct sched_account){
        .kind = SCHED_PROJECT, .name = "g", .limits = own(""), .used = own("cuda.shares=2")
    };
    world.accounts[1] = (struct sched_account){ .kind = SCHED_DOMAIN,
                                                .name = "d",
                                                .limits = own("cuda.shares=2"),
                                                .used = own("cuda.shares=2") };
    world.snap.account_count = 2;
    for (int i = 0; i < 2; i++) {
        struct sched_session *s = session(i ? "cpu=1" : "cpu=1 cuda.shares=0.5");

        s->accounts[SCHED_PROJECT] = 0;
        s->accounts[SCHED_DOMAIN] = 1;
    }
    run_at(0);
    assert_int_equal(verdict_of(0), SCHED_QUOTA);
    assert_int_equal(outcome_of(0)->account, 1);
    assert_string_equal(places(), "- a");
    end();
}

/* Nothing of a slot is no lack of a limit. */
static void test_limit_of_nothing(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=8");
    world.accounts[0] = (struct sched_account){ .name = "k",
                                                .limits = own("cpu=0"),
                                                .used = own("") };
    world.snap.account_count = 1;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    run_at(0);
    assert_int_equal(verdict_of(0), SCHED_QUOTA);
    end();
}

/* Priorities first, then the latest. */
static void test_lifo_in_bands(void **state)
{
    static const int priorities[] = { 1, 1, 9, 9 };

    (void)state;
    begin(&sched_lifo, &sched_concentrated);
    (void)agent("a", "cpu=4");
    for (int i = 0; i < 4; i++)
        session("cpu=1")->priority = priorities[i];
    run_at(0);
    assert_string_equal(placed_in_order(), "4 3 2 1");
    end();
}

/* ---- what a short agent lacks ---- */

static void test_shortfall_of_the_designated(void **state)
{
    static const char *const small[] = { "small" }, *const gone[] = { "gone" };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    begin(&sched_fifo, &sched_dispersed);
    (void)agent("small", "cpu=2 mem=4096");
    (void)agent("large", "cpu=16 mem=65536");
    session("cpu=4 mem=8192")->designated = small;
    world.sessions[0].designated_count = 1;
    world.sessions[0].designated_strict = true;
    world.snap.types = world.types;
    assert_int_equal(sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL), SCHED_NO_ROOM);
    assert_non_null(strstr(text.data, "no agents passed the 'resource' filter"));
    assert_non_null(strstr(text.data, "cpu: 2 missing on small"));
    world.sessions[0].designated = gone;
    assert_int_equal(sched_explain(&world.snap, 0, &world.arena, &text, NULL, NULL),
                     SCHED_NO_CAPACITY);
    assert_non_null(strstr(text.data, "no agents passed the 'designated' filter"));
    end();
}

/* ---- defects ---- */

/* A designated agent is never given more than it has left in the same pass. */
static void test_designated_is_not_overcommitted(void **state)
{
    static const char *const a[] = { "a" };

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 1;
    (void)agent("a", "cpu=4");
    for (int i = 0; i < 20; i++) {
        session("cpu=3")->designated = a;
        world.sessions[i].designated_count = 1;
        world.sessions[i].designated_strict = true;
        world.sessions[i].retries = 1;
    }
    run_at(0);
    assert_string_equal(placed_in_order(), "1");
    end();
}

/* The second kernel of a gang finds no room: the session counts it, and from
 * the third pass on others go first.
 */
static void test_retries_of_gangs(void **state)
{
    struct sched *s;
    struct sched_result result;
    uint32_t gang, other;

    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    world.snap.options.retries_to_skip = 2;
    (void)agent("a", "cpu=4");
    session("cpu=1")->single_node = false;
    kernel("cpu=8");
    (void)session("cpu=4");
    s = sched_new(world.types, &world.snap.options);
    assert_int_equal(sched_set_agent(s, &world.agents[0], NULL), 0);
    assert_int_equal(sched_add(s, &world.sessions[0], &gang, NULL), 0);
    assert_int_equal(sched_add(s, &world.sessions[1], &other, NULL), 0);
    for (int pass = 1; pass <= 3; pass++) {
        sched_pass(s, 0, &world.arena, &result);
        assert_int_equal(result.is_blocked, pass < 3);
    }
    assert_int_equal(result.count, 1);
    assert_int_equal(result.outcomes[0].session, other);
    assert_int_equal(result.outcomes[0].verdict, SCHED_PLACED);
    sched_free(s);
    end();
}

/* The order is that of creation, however they are listed. */
static void test_order_is_by_creation(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("a", "cpu=20");
    for (int i = 0; i < 20; i++)
        session("cpu=1")->row = (i * 7) % 20; /* listed 0 7 14 1 8 ... */
    run_at(0);
    assert_string_equal(placed_in_order(), "1 4 7 10 13 16 19 2 5 8 11 14 17 20 3 6 9 12 15 18");
    end();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixture),
        cmocka_unit_test(test_mixed_agents),
        cmocka_unit_test(test_selections),
        cmocka_unit_test(test_same_again),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_kernels_max),
        cmocka_unit_test(test_architecture),
        cmocka_unit_test(test_failed_agent_of_another),
        cmocka_unit_test(test_bands),
        cmocka_unit_test(test_drf_heavy_and_light),
        cmocka_unit_test(test_limit_of_the_domain),
        cmocka_unit_test(test_limit_of_nothing),
        cmocka_unit_test(test_lifo_in_bands),
        cmocka_unit_test(test_shortfall_of_the_designated),
        cmocka_unit_test(test_designated_is_not_overcommitted),
        cmocka_unit_test(test_retries_of_gangs),
        cmocka_unit_test(test_order_is_by_creation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
