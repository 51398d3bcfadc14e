/* SPDX-License-Identifier: Apache-2.0 */
/* Which agent a selector takes, against a table. */
#include "world.h"

/* ---- selectors ---- */

static const char *const cpu_mem[] = { "cpu", "mem" };
static const char *const mem_cpu[] = { "mem", "cpu" };
static const char *const cuda_cpu_mem[] = { "cuda", "cpu", "mem" };

/* What agents have left, in the order given; which of them is chosen. */
static const struct {
    const char *name;
    const char *const *priority;
    size_t priority_count;
    const char *request;
    const char *agents[4][2];
    const char *concentrated, *dispersed;
} selections[] = {
    { "low, medium, high",
      cpu_mem,
      2,
      "cpu=1 mem=2048",
      { { "low", "cpu=2 mem=4096" },
        { "medium", "cpu=4 mem=8192" },
        { "high", "cpu=6 mem=12288" } },
      "low",
      "high" },
    { "a full one is passed over",
      cpu_mem,
      2,
      "cpu=1 mem=2048",
      { { "low", "cpu=0 mem=0" }, { "medium", "cpu=4 mem=8192" }, { "high", "cpu=6 mem=12288" } },
      "medium",
      "high" },
    { "work without GPU stays off GPU nodes",
      cpu_mem,
      2,
      "cpu=2 mem=4096 cuda.shares=0",
      { { "gpu", "cpu=4 mem=8192 cuda.shares=4" }, { "cpu-only", "cpu=4 mem=8192" } },
      "cpu-only",
      "cpu-only" },
    { "also when the GPU node is fuller",
      cpu_mem,
      2,
      "cpu=1 mem=1024",
      { { "g", "cpu=2 mem=4096 cuda.shares=4" }, { "h", "cpu=8 mem=16384" } },
      "h",
      "h" },
    { "memory first",
      mem_cpu,
      2,
      "cpu=1 mem=1024",
      { { "a", "cpu=14 mem=2048" }, { "b", "cpu=2 mem=12288" } },
      "a",
      "b" },
    { "cpu first",
      cpu_mem,
      2,
      "cpu=1 mem=1024",
      { { "a", "cpu=14 mem=2048" }, { "b", "cpu=2 mem=12288" } },
      "b",
      "a" },
    { "busy and free GPU nodes",
      cpu_mem,
      2,
      "cpu=2 mem=4096 cuda.shares=1",
      { { "busy", "cpu=8 mem=16384 cuda.shares=2" }, { "free", "cpu=12 mem=24576 cuda.shares=6" } },
      "busy",
      "free" },
    { "GPUs first, by device name",
      cuda_cpu_mem,
      3,
      "cpu=1 mem=2048 cuda.shares=0.5",
      { { "low-gpu", "cpu=14 mem=28672 cuda.shares=1" },
        { "high-gpu", "cpu=2 mem=4096 cuda.shares=3" } },
      "low-gpu",
      "high-gpu" },
    { "the fewest idle accelerators",
      cpu_mem,
      2,
      "cpu=4 mem=8192 cuda.shares=0 tpu.device=0",
      { { "gpu-agent", "cpu=8 mem=16384 cuda.shares=4" },
        { "tpu-agent", "cpu=12 mem=24576 tpu.device=3" },
        { "cpu-agent", "cpu=16 mem=32768" } },
      "cpu-agent",
      "cpu-agent" },
    { "a used-up accelerator is not idle",
      cpu_mem,
      2,
      "cpu=1 mem=1024",
      { { "used-up", "cpu=2 mem=2048 cuda.shares=0" }, { "plain", "cpu=4 mem=4096" } },
      "used-up",
      "plain" },
    { "two agents",
      cpu_mem,
      2,
      "cpu=1 mem=1024",
      { { "agent-1", "cpu=1 mem=2048" }, { "agent-2", "cpu=7 mem=14336" } },
      "agent-1",
      "agent-2" },
    { "ties go by id",
      cpu_mem,
      2,
      "cpu=1 mem=1024",
      { { "zebra", "cpu=4 mem=8192" },
        { "alpha", "cpu=4 mem=8192" },
        { "beta", "cpu=4 mem=8192" } },
      "alpha",
      "alpha" },
    { "without a priority list, by name",
      NULL,
      0,
      "cpu=1 mem=1024",
      { { "a", "cpu=4 mem=8192" }, { "b", "cpu=2 mem=16384" } },
      "b",
      "a" },
    { "nothing has that slot",
      cpu_mem,
      2,
      "cpu=1 rocm.device=1",
      { { "a", "cpu=4 mem=8192" } },
      "",
      "" },
    { "a fraction short",
      cpu_mem,
      2,
      "cpu=1 cuda.shares=0.500001",
      { { "a", "cpu=4 cuda.shares=0.5" } },
      "",
      "" },
};

static void test_selection(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(selections); i++)
        for (int way = 0; way < 2; way++) {
            begin(&sched_fifo, way ? &sched_dispersed : &sched_concentrated);
            world.snap.options.slot_priority = selections[i].priority;
            world.snap.options.slot_priority_count = selections[i].priority_count;
            for (size_t a = 0; a < 4 && selections[i].agents[a][0]; a++)
                (void)agent(selections[i].agents[a][0], selections[i].agents[a][1]);
            (void)session(selections[i].request);
            run();
            assert_row(
                strcmp(place_of(0), way ? selections[i].dispersed : selections[i].concentrated)
                    == 0,
                "%s: %s", selections[i].name, place_of(0));
            end();
        }
}

/* Within one pass the second sees what the first took. */
static void test_within_a_pass(void **state)
{
    (void)state;
    begin(&sched_fifo, &sched_concentrated);
    (void)agent("low", "cpu=2 mem=4096");
    (void)agent("medium", "cpu=4 mem=8192");
    (void)session("cpu=2 mem=4096");
    (void)session("cpu=1 mem=2048");
    run();
    assert_string_equal(place_of(0), "low");
    assert_string_equal(place_of(1), "medium");
    end();

    begin(&sched_fifo, &sched_concentrated);
    (void)agent("i-001", "cpu=4 mem=8192");
    (void)session("cpu=3 mem=6144");
    (void)session("cpu=3 mem=6144");
    run();
    assert_string_equal(place_of(0), "i-001");
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    assert_true(world.result.is_blocked);
    end();
}

static void test_names(void **state)
{
    (void)state;
    assert_ptr_equal(sched_find_sequencer("fifo"), &sched_fifo);
    assert_null(sched_find_sequencer("nonsense"));
    assert_ptr_equal(sched_find_selector("concentrated"), &sched_concentrated);
    assert_ptr_equal(sched_find_selector("dispersed"), &sched_dispersed);
    assert_null(sched_find_selector(""));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selection),
        cmocka_unit_test(test_within_a_pass),
        cmocka_unit_test(test_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
