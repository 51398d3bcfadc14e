/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler against tables: placements, order, refusals, explanations.
 *
 * Slots are written "cpu=4 mem=4096 cuda.shares=0.5"; mem in bytes.
 */
#include "testing.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "sched/cluster.h"
#include "sched/sched.h"

#define AGENTS_MAX 8
#define SESSIONS_MAX 8

static struct slots parse(const char *text)
{
    struct slots slots = { 0 };
    char copy[256], *rest = NULL;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        const char *name;
        int64_t amount;

        *value++ = '\0';
        name = slot_name_intern(word, strlen(word));
        assert_non_null(name);
        assert_int_equal(slot_amount_parse(value, strlen(value), slot_type_guess(word), true, name,
                                           &amount, NULL),
                         0);
        assert_int_equal(slots_set(&slots, name, amount), 0);
    }
    return slots;
}

/* ---- a snapshot under construction ---- */

struct bench {
    struct arena arena;
    struct slot_types *types;
    struct sched_snapshot snap;
    struct sched_agent agents[AGENTS_MAX];
    struct sched_session sessions[SESSIONS_MAX];
    struct sched_account accounts[4];
    struct slots owned[64];
    size_t owned_count;
    const struct slots *kernels[64];
    size_t kernel_count;
    struct sched_result result;
};

static struct bench bench;

static const struct slots *own(const char *text)
{
    struct slots *slots = &bench.owned[bench.owned_count++];

    assert_true(bench.owned_count < AQ_COUNT(bench.owned));
    *slots = parse(text);
    for (size_t i = 0; i < slots->count; i++) {
        struct slot_types *merged = slot_types_merge(bench.types, slots->items[i].name,
                                                     slot_type_guess(slots->items[i].name), NULL);

        assert_non_null(merged);
        slot_types_unref(bench.types);
        bench.types = merged;
    }
    return slots;
}

static void begin(const struct selector_ops *selector)
{
    bench = (struct bench){ .types = slot_types_new() };
    bench.snap = (struct sched_snapshot){ .options = { .sequencer = &sched_fifo,
                                                       .selector = { .ops = selector } },
                                          .agents = bench.agents,
                                          .sessions = bench.sessions,
                                          .accounts = bench.accounts };
}

static void end(void)
{
    for (size_t i = 0; i < bench.owned_count; i++)
        slots_done(&bench.owned[i]);
    slot_types_unref(bench.types);
    arena_done(&bench.arena);
}

static struct sched_agent *agent(const char *id, const char *free)
{
    struct sched_agent *a = &bench.agents[bench.snap.agent_count++];

    *a = (struct sched_agent){ .id = id, .architecture = "x86_64", .free = own(free) };
    return a;
}

static struct sched_session *session(const char *request)
{
    struct sched_session *s = &bench.sessions[bench.snap.session_count];

    bench.kernels[bench.kernel_count] = own(request);
    *s = (struct sched_session){ .id = { { (uint8_t)(bench.snap.session_count + 1) } },
                                 .row = (int64_t)++bench.snap.session_count,
                                 .type = SESSION_BATCH,
                                 .priority = 10,
                                 .single_node = true,
                                 .kernels = &bench.kernels[bench.kernel_count++],
                                 .kernel_count = 1,
                                 .accounts = SCHED_NO_ACCOUNTS };
    return s;
}

/* One more kernel of the session added last. */
static void kernel(const char *request)
{
    bench.kernels[bench.kernel_count++] = own(request);
    bench.sessions[bench.snap.session_count - 1].kernel_count++;
}

static void run(void)
{
    bench.snap.types = bench.types;
    assert_int_equal(sched_run(&bench.snap, &bench.arena, &bench.result, NULL), 0);
}

/* Where the n-th session's first kernel went; "" = it was not placed. */
static const char *place_of(size_t n)
{
    for (size_t i = 0; i < bench.result.count; i++)
        if (bench.result.outcomes[i].session == n)
            return bench.result.outcomes[i].verdict == SCHED_PLACED
                       ? bench.agents[bench.result.outcomes[i].agents[0]].id
                       : "";
    return "";
}

static enum sched_verdict verdict_of(size_t n)
{
    for (size_t i = 0; i < bench.result.count; i++)
        if (bench.result.outcomes[i].session == n)
            return bench.result.outcomes[i].verdict;
    return SCHED_BEHIND;
}

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
            begin(way ? &sched_dispersed : &sched_concentrated);
            bench.snap.options.slot_priority = selections[i].priority;
            bench.snap.options.slot_priority_count = selections[i].priority_count;
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
    begin(&sched_concentrated);
    (void)agent("low", "cpu=2 mem=4096");
    (void)agent("medium", "cpu=4 mem=8192");
    (void)session("cpu=2 mem=4096");
    (void)session("cpu=1 mem=2048");
    run();
    assert_string_equal(place_of(0), "low");
    assert_string_equal(place_of(1), "medium");
    end();

    begin(&sched_concentrated);
    (void)agent("i-001", "cpu=4 mem=8192");
    (void)session("cpu=3 mem=6144");
    (void)session("cpu=3 mem=6144");
    run();
    assert_string_equal(place_of(0), "i-001");
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    assert_true(bench.result.is_blocked);
    end();
}

/* ---- order and blocking ---- */

static void test_blocking(void **state)
{
    (void)state;
    /* One that fits and one that does not. */
    begin(&sched_concentrated);
    (void)agent("i-001", "cpu=4 mem=8192");
    (void)session("cpu=1 mem=1024");
    (void)session("cpu=8 mem=16384");
    (void)session("cpu=1 mem=1024");
    run();
    assert_string_equal(place_of(0), "i-001");
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(2), SCHED_BEHIND);
    end();

    /* It holds up lower priorities too. */
    begin(&sched_concentrated);
    (void)agent("i-001", "cpu=4 mem=8192");
    session("cpu=8 mem=16384")->priority = 10;
    session("cpu=1 mem=1024")->priority = 1;
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(1), SCHED_BEHIND);
    end();

    /* A full agent by number of kernels is no room either. */
    begin(&sched_concentrated);
    agent("busy", "cpu=4 mem=8192")->kernels_max = 10;
    bench.agents[0].kernels = 10;
    (void)session("cpu=1 mem=1024");
    (void)session("cpu=1 mem=1024");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(bench.result.count, 1);
    bench.agents[0].kernels = 9;
    run();
    assert_string_equal(place_of(0), "busy");
    assert_int_equal(verdict_of(1), SCHED_NO_ROOM);
    end();

    /* No agent at all: every session is told so, none is held up by another. */
    begin(&sched_concentrated);
    (void)session("cpu=1");
    (void)session("cpu=1");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_AGENT);
    assert_int_equal(verdict_of(1), SCHED_NO_AGENT);
    assert_false(bench.result.is_blocked);
    end();
}

/* What something else than room speaks against does not hold up others. */
static void test_not_blocking(void **state)
{
    static const struct session_dependency waits = { .ended = false };
    const struct slots *limits, *used;

    (void)state;
    begin(&sched_concentrated);
    (void)agent("i-001", "cpu=8 mem=16384");
    limits = own("cpu=2");
    used = own("cpu=2");
    bench.accounts[0] = (struct sched_account){ .name = "u", .limits = limits, .used = used };
    bench.snap.account_count = 1;
    session("cpu=1")->architecture = "aarch64";
    session("cpu=1")->starts_usec = 100;
    (void)session("cpu=1");
    bench.sessions[2].dependencies = &waits;
    bench.sessions[2].dependency_count = 1;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=1")->priority = 1;
    bench.snap.now_usec = 99;
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_AGENT);
    assert_int_equal(verdict_of(1), SCHED_TOO_EARLY);
    assert_int_equal(verdict_of(2), SCHED_DEPENDENCY);
    assert_int_equal(verdict_of(3), SCHED_QUOTA);
    assert_int_equal(bench.result.outcomes[3].account, 0);
    assert_string_equal(place_of(4), "i-001");
    end();
}

/* ---- reserved starts ---- */

static void test_reserved(void **state)
{
    static const struct {
        enum session_type type;
        const char *starts;
        bool pass;
    } rows[] = {
        { SESSION_BATCH, "2020-06-29T00:00:01Z", false },
        { SESSION_BATCH, "2020-06-28T23:59:59Z", true },
        { SESSION_BATCH, "2020-06-29T00:00:00-01:00", false },
        { SESSION_BATCH, "2020-06-29T00:00:00-11:00", false },
        { SESSION_BATCH, "2020-06-29T00:00:00+01:00", true },
        { SESSION_BATCH, "2020-06-29T00:00:00+11:00", true },
        { SESSION_BATCH, NULL, true },
        { SESSION_INTERACTIVE, "2020-06-29T00:00:01Z", true },
        { SESSION_BATCH, "2020-06-29T00:00:00Z", true }, /* the same instant */
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        begin(&sched_concentrated);
        (void)agent("i-001", "cpu=8");
        session("cpu=1")->type = rows[i].type;
        if (rows[i].starts)
            assert_int_equal(clock_parse_date(rows[i].starts, &bench.sessions[0].starts_usec), 0);
        assert_int_equal(clock_parse_date("2020-06-29T00:00:00Z", &bench.snap.now_usec), 0);
        run();
        assert_row(verdict_of(0) == (rows[i].pass ? SCHED_PLACED : SCHED_TOO_EARLY), "%s",
                   rows[i].starts ? rows[i].starts : "none");
        end();
    }
}

/* ---- dependencies ---- */

static void test_dependencies(void **state)
{
    static const struct {
        struct session_dependency a, b;
        enum sched_verdict want;
    } rows[] = {
        { { .ended = true, .result = RESULT_SUCCESS },
          { .ended = true, .result = RESULT_SUCCESS },
          SCHED_PLACED },
        { { .ended = true, .result = RESULT_SUCCESS }, { .ended = false }, SCHED_DEPENDENCY },
        { { .ended = false }, { .ended = true, .result = RESULT_FAILURE }, SCHED_DOOMED },
        { { .ended = true, .result = RESULT_UNDEFINED }, { .ended = false }, SCHED_DOOMED },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct session_dependency both[] = { rows[i].a, rows[i].b };

        begin(&sched_concentrated);
        (void)agent("i-001", "cpu=8");
        (void)session("cpu=1");
        bench.sessions[0].dependencies = both;
        bench.sessions[0].dependency_count = 2;
        run();
        assert_row(verdict_of(0) == rows[i].want, "%zu", i);
        end();
    }
}

/* ---- limits ---- */

static void test_limits(void **state)
{
    static const struct {
        const char *name, *limits, *used, *request;
        bool missing_is_zero;
        int64_t max_sessions, sessions;
        enum sched_verdict want;
    } rows[] = {
        { "4 + 3 held, 4 more, limit 10", "cpu=10", "cpu=7", "cpu=4", false, 0, 0, SCHED_QUOTA },
        { "just fits", "cpu=10", "cpu=7", "cpu=3", false, 0, 0, SCHED_PLACED },
        { "3 of 3 sessions", NULL, "", "cpu=1", false, 3, 3, SCHED_CONCURRENCY },
        { "2 of 3 sessions", NULL, "", "cpu=1", false, 3, 2, SCHED_PLACED },
        { "0 is no limit", NULL, "", "cpu=1", false, 0, 30, SCHED_PLACED },
        { "unnamed is unlimited", "cpu=4", "", "cpu=1 mem=1024", false, 0, 0, SCHED_PLACED },
        { "unnamed is nothing", "cpu=4", "", "cpu=1 mem=1024", true, 0, 0, SCHED_QUOTA },
        { "what is not wanted is not over", "cuda.shares=2", "", "cpu=1", false, 0, 0,
          SCHED_PLACED },
        { "infinite", "cpu=inf", "cpu=7", "cpu=4", false, 0, 0, SCHED_PLACED },
        { "over already, and wants more", "cpu=4", "cpu=6", "cpu=1", false, 0, 0, SCHED_QUOTA },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++)
        for (int kind = 0; kind < SCHED_ACCOUNT_KINDS; kind++) {
            begin(&sched_concentrated);
            (void)agent("i-001", "cpu=16 mem=65536 cuda.shares=4");
            bench.accounts[0] = (struct sched_account){ .kind = kind,
                                                        .name = "x",
                                                        .limits = rows[i].limits
                                                                      ? own(rows[i].limits)
                                                                      : NULL,
                                                        .used = own(rows[i].used),
                                                        .missing_is_zero = rows[i].missing_is_zero,
                                                        .max_sessions = rows[i].max_sessions,
                                                        .sessions = rows[i].sessions };
            bench.snap.account_count = 1;
            session(rows[i].request)->accounts[kind] = 0;
            run();
            assert_row(verdict_of(0) == rows[i].want, "%s: %s", rows[i].name,
                       sched_verdict_name(verdict_of(0)));
            end();
        }
}

/* Placements of one pass count against the limits of the next in it. */
static void test_limits_within_a_pass(void **state)
{
    (void)state;
    begin(&sched_concentrated);
    (void)agent("i-001", "cpu=16");
    bench.accounts[0] = (struct sched_account){
        .name = "x", .limits = own("cpu=4"), .used = own(""), .max_sessions = 2
    };
    bench.snap.account_count = 1;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=4")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=3")->accounts[SCHED_KEYPAIR] = 0;
    session("cpu=1")->accounts[SCHED_KEYPAIR] = 0;
    run();
    assert_int_equal(verdict_of(0), SCHED_PLACED);
    assert_int_equal(verdict_of(1), SCHED_QUOTA);
    assert_int_equal(verdict_of(2), SCHED_PLACED);
    assert_int_equal(verdict_of(3), SCHED_CONCURRENCY);
    end();
}

/* ---- clusters ---- */

static void test_clusters(void **state)
{
    (void)state;
    /* On one node the sum must fit. */
    begin(&sched_concentrated);
    (void)agent("low", "cpu=1 mem=2048");
    (void)agent("med", "cpu=4 mem=8192");
    (void)agent("high", "cpu=14 mem=28672");
    (void)session("cpu=4 mem=8192");
    kernel("cpu=2 mem=4096");
    run();
    assert_string_equal(place_of(0), "high");
    assert_int_equal(bench.result.outcomes[0].agents[1], 2);
    end();

    /* On several each kernel by itself, all or none. */
    begin(&sched_concentrated);
    (void)agent("a", "cpu=2");
    (void)agent("b", "cpu=2");
    session("cpu=2")->single_node = false;
    kernel("cpu=2");
    run();
    assert_int_equal(verdict_of(0), SCHED_PLACED);
    assert_int_not_equal(bench.result.outcomes[0].agents[0], bench.result.outcomes[0].agents[1]);
    kernel("cpu=1");
    (void)session("cpu=2");
    run();
    assert_int_equal(verdict_of(0), SCHED_NO_ROOM);
    assert_int_equal(verdict_of(1), SCHED_BEHIND);
    end();
}

static void test_failed_agent(void **state)
{
    (void)state;
    begin(&sched_concentrated);
    (void)agent("a", "cpu=1");
    (void)agent("b", "cpu=8");
    session("cpu=1")->failed_agent = "a";
    run();
    assert_string_equal(place_of(0), "b");
    bench.sessions[0].failed_agent = "b"; /* now the other, which is best anyway */
    run();
    assert_string_equal(place_of(0), "a");
    bench.snap.agent_count = 1; /* nowhere else: back to it */
    bench.sessions[0].failed_agent = "a";
    run();
    assert_string_equal(place_of(0), "a");
    end();
}

/* ---- the worked example: sequential arrivals on mixed nodes ---- */

static void test_mixed_nodes(void **state)
{
    static const char *const requests[] = { "cpu=2 mem=1024 cuda.shares=0 rocm.devices=1",
                                            "cpu=1 mem=2048 cuda.shares=0.5 rocm.devices=0",
                                            "cpu=1 mem=1024 cuda.shares=0 rocm.devices=0" };
    static const char *const want[] = { "", "i-gpu", "i-cpu" };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(requests); i++) {
        begin(&sched_concentrated);
        (void)agent("i-gpu", "cpu=4 mem=4096 cuda.shares=4");
        (void)agent("i-cpu", "cpu=3 mem=2560 cuda.shares=0");
        (void)session(requests[i]);
        run();
        assert_row(strcmp(place_of(0), want[i]) == 0, "p%zu: %s", i, place_of(0));
        end();
    }
}

/* ---- explanations ---- */

static const char *const hosts[] = { "nas:a", "nas:b" };

static void assert_explained(const char *const *texts, const char *kind)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf json = STRBUF_INIT;
    json_t *tree;

    bench.snap.types = bench.types;
    assert_true(sched_explain(&bench.snap, 0, &bench.arena, &text, &json, NULL) >= 0);
    for (; *texts; texts++)
        assert_row(strstr(text.data, *texts) != NULL, "'%s' in '%s'", *texts, text.data);
    tree = json_loads(json.data, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(tree);
    assert_string_equal(json_string_value(json_object_get(tree, "kind")), kind);
    assert_string_equal(json_string_value(json_object_get(tree, "text")), text.data);
    json_decref(tree);
}

#define EXPLAINED(kind, ...) assert_explained((const char *const[]){ __VA_ARGS__, NULL }, kind)

static void mounted(struct sched_agent *agent, const char *const *volumes, size_t count)
{
    agent->volumes = volumes;
    agent->volume_count = count;
}

static void mounts(struct sched_session *session, const char *const *volumes, size_t count)
{
    session->volumes = volumes;
    session->volume_count = count;
}

/* Only agents with all of a session's hosts are considered, however good others are. */
static void test_volumes(void **state)
{
    (void)state;
    begin(&sched_concentrated);
    (void)agent("none", "cpu=1 mem=1");
    mounted(agent("one", "cpu=2 mem=2"), hosts, 1);
    mounted(agent("both", "cpu=8 mem=8"), hosts, 2);
    mounts(session("cpu=1 mem=1"), hosts, 2);
    mounts(session("cpu=1 mem=1"), hosts, 1);
    (void)session("cpu=1 mem=1");
    run();
    assert_string_equal(place_of(0), "both");
    assert_string_equal(place_of(1), "one");
    assert_string_equal(place_of(2), "none");
    end();
}

/* More hosts than there are bits for: the rest is on no agent. */
static void test_many_volumes(void **state)
{
    static char names[70][16];
    static const char *many[AQ_COUNT(names)];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "nas:%zu", i);
        many[i] = names[i];
    }
    begin(&sched_concentrated);
    mounted(agent("x", "cpu=8"), many, AQ_COUNT(many));
    mounts(session("cpu=1"), many, CLUSTER_VOLUMES_MAX - 1);
    mounts(session("cpu=1"), many + AQ_COUNT(many) - 1, 1);
    run();
    assert_string_equal(place_of(0), "x");
    assert_string_equal(place_of(1), "");
    end();
}

static void test_explanations(void **state)
{
    static const struct session_dependency waits = { .id = { { 0xab } } };

    (void)state;
    begin(&sched_concentrated);
    (void)agent("small", "cpu=1 mem=8192");
    (void)agent("close", "cpu=3 mem=8192");
    (void)session("cpu=4 mem=4096");
    EXPLAINED("no-room", "1 requirement(s) could not be placed:", "cpu: missing=1 on close",
              "slots=cpu=4");
    end();

    begin(&sched_concentrated); /* only what is short is named */
    (void)agent("lopsided", "cpu=1 mem=10000");
    (void)session("cpu=4 mem=8192");
    EXPLAINED("no-room", "cpu: missing=3 on lopsided");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    session("cpu=1")->architecture = "aarch64";
    EXPLAINED("no-agent", "arch=aarch64", "no agents passed the 'architecture' filter");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    mounts(session("cpu=1"), hosts, 1);
    EXPLAINED("no-agent", "no agents passed the 'volume' filter", "- no agent mounts nas:a");
    end();

    begin(&sched_concentrated); /* each is mounted, but not both */
    mounted(agent("x", "cpu=8"), hosts, 1);
    mounted(agent("y", "cpu=8"), hosts + 1, 1);
    mounts(session("cpu=1"), hosts, 2);
    EXPLAINED("no-agent", "'volume' filter", "- no agent mounts all of nas:a, nas:b");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    session("cpu=1")->starts_usec = 1593388800 * USEC_PER_SEC;
    EXPLAINED("too-early", "Before start time (2020-06-29T00:00:00+00:00)");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    (void)session("cpu=1");
    bench.sessions[0].dependencies = &waits;
    bench.sessions[0].dependency_count = 1;
    EXPLAINED("dependency", "Waiting dependency sessions to finish as success. (ab000000-");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    bench.accounts[0] = (struct sched_account){
        .kind = SCHED_PROJECT, .name = "g", .limits = own("cpu=10"), .used = own("cpu=7")
    };
    bench.snap.account_count = 1;
    session("cpu=4")->accounts[SCHED_PROJECT] = 0;
    EXPLAINED("quota", "Your group resource quota is exceeded.",
              "- cpu: used 7 + requested 4 > limit 10");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    bench.accounts[0] = (struct sched_account){
        .name = "k", .used = own(""), .max_sessions = 3, .sessions = 3
    };
    bench.snap.account_count = 1;
    session("cpu=4")->accounts[SCHED_KEYPAIR] = 0;
    EXPLAINED("concurrency", "You cannot run more than 3 concurrent sessions");
    end();

    begin(&sched_concentrated);
    (void)agent("x", "cpu=8");
    (void)session("cpu=4");
    EXPLAINED("placed", "There is room");
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

/* The same snapshot gives the same outcome, and none over what is free: many
 * random snapshots, each run twice and added up.
 */
static void test_random(void **state)
{
    unsigned seed = 42;

    (void)state;
    print_message("# seed %u\n", seed);
    srand(seed);
    for (int round = 0; round < 300; round++) {
        struct sched_result first;
        int64_t held[AGENTS_MAX] = { 0 };
        char text[64], ids[AGENTS_MAX][16];

        begin(round % 2 ? &sched_dispersed : &sched_concentrated);
        for (int a = 0; a < 1 + rand() % AGENTS_MAX; a++) {
            (void)snprintf(ids[a], sizeof(ids[a]), "i-%d", a);
            (void)snprintf(text, sizeof(text), "cpu=%d", rand() % 5);
            (void)agent(ids[a], text);
        }
        for (int s = 0; s < SESSIONS_MAX; s++) {
            (void)snprintf(text, sizeof(text), "cpu=%d", 1 + rand() % 3);
            session(text)->single_node = rand() % 2;
            if (rand() % 2)
                kernel("cpu=1");
        }
        run();
        first = bench.result;
        run();
        assert_int_equal(first.count, bench.result.count);
        for (size_t i = 0; i < first.count; i++) {
            const struct sched_outcome *o = &first.outcomes[i], *p = &bench.result.outcomes[i];
            const struct sched_session *s = &bench.sessions[o->session];

            assert_int_equal(o->verdict, p->verdict);
            for (size_t k = 0; o->verdict == SCHED_PLACED && k < s->kernel_count; k++) {
                assert_int_equal(o->agents[k], p->agents[k]);
                held[o->agents[k]] += slots_get(s->kernels[k], "cpu");
            }
        }
        for (size_t a = 0; a < bench.snap.agent_count; a++)
            assert_row(held[a] <= slots_get(bench.agents[a].free, "cpu"), "round %d", round);
        end();
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_selection),   cmocka_unit_test(test_within_a_pass),
        cmocka_unit_test(test_blocking),    cmocka_unit_test(test_not_blocking),
        cmocka_unit_test(test_reserved),    cmocka_unit_test(test_dependencies),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_limits_within_a_pass),
        cmocka_unit_test(test_clusters),    cmocka_unit_test(test_failed_agent),
        cmocka_unit_test(test_mixed_nodes), cmocka_unit_test(test_explanations),
        cmocka_unit_test(test_volumes),     cmocka_unit_test(test_many_volumes),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_random),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
