/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments and replays on clusters small enough to know the outcome. */
#include "testing.h"

#include <getopt.h>
#include <stdlib.h>

#include "sim/svg_chart.h"
#include "sim/arrival_experiment.h"
#include "sim/options.h"
#include "sim/replay.h"

static struct trace_node node(const char *name, uint32_t gpus)
{
    return (struct trace_node){
        .name = name, .cpu_milli = 96000, .memory_mib = 100000, .gpus = gpus, .model = "G2"
    };
}

static struct trace_task task(uint32_t gpus, uint32_t milli, int64_t created, int64_t duration)
{
    return (struct trace_task){ .name = "t",
                                .cpu_milli = 1000,
                                .memory_mib = 1,
                                .gpus = gpus,
                                .gpu_milli = milli,
                                .created_sec = created,
                                .duration_sec = duration,
                                .priority = 10 };
}

/* ---- arrival ---- */

static double allocate(struct trace_node *n, size_t nodes, struct trace_task *t, size_t tasks,
                       const char *policy, uint64_t seed)
{
    struct trace_nodes ns = { n, nodes };
    struct trace_tasks ts = { t, tasks };
    struct arrival_experiment e = { &ns, &ts, 1.3, NULL };
    struct arrival_experiment_result result;
    struct aq_error err = { 0 };

    assert_int_equal(policy_find(policy, &e.policy, &err), 0);
    assert_row(arrival_experiment_run(&e, seed, &result, &err) == 0, "%s: %s", policy, err.text);
    assert_true(result.placed <= result.arrived);
    return result.gpu_allocation_pct;
}

static const char *const policies[] = { "random",          "bestfit",      "fgd",
                                        "fragmentation",   "concentrated", "dispersed",
                                        "legacy",          "roundrobin",   "bin-packing",
                                        "high-performance" };

/* Tasks that fill GPUs without rest fill them all under every policy. */
static void test_full(void **state)
{
    struct trace_node nodes[] = { node("a", 8), node("b", 8) };
    struct trace_task tasks[] = { task(1, 1000, 0, 1), task(1, 1000, 0, 1) };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(policies); i++)
        for (uint64_t seed = 1; seed < 4; seed++)
            assert_row(allocate(nodes, 2, tasks, 2, policies[i], seed) == 100, "%s", policies[i]);
}

/* A node whose GPUs each have too little is no candidate: of 0.6 only one fits each. */
static void test_devices(void **state)
{
    struct trace_node nodes[] = { node("a", 4) };
    struct trace_task tasks[] = { task(1, 600, 0, 1) };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(policies); i++) {
        double pct = allocate(nodes, 1, tasks, 1, policies[i], 1);

        assert_row(pct > 59.99 && pct < 60.01, "%s: %f", policies[i], pct);
    }
}

static void test_models(void **state)
{
    static const char *const other[] = { "T4" };
    struct trace_node nodes[] = { node("a", 4), node("b", 4) };
    struct trace_task tasks[] = { task(1, 1000, 0, 1) };

    (void)state;
    nodes[1].model = "T4";
    tasks[0].models = other;
    tasks[0].model_count = 1;
    for (size_t i = 0; i < AQ_COUNT(policies); i++)
        assert_row(allocate(nodes, 2, tasks, 1, policies[i], 1) == 50, "%s", policies[i]);
}

static void test_same_seed(void **state)
{
    struct trace_node nodes[] = { node("a", 8), node("b", 4), node("c", 2) };
    struct trace_task tasks[] = { task(1, 300, 0, 1),  task(2, 1000, 0, 1), task(1, 700, 0, 1),
                                  task(1, 1000, 0, 1), task(0, 0, 0, 1),    task(1, 500, 0, 1) };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(policies); i++)
        assert_true(allocate(nodes, 3, tasks, 6, policies[i], 7)
                    == allocate(nodes, 3, tasks, 6, policies[i], 7));
}

static void test_node_twice(void **state)
{
    struct trace_node nodes[] = { node("a", 8), node("a", 8) };
    struct trace_task tasks[] = { task(1, 1000, 0, 1) };
    struct trace_nodes ns = { nodes, 2 };
    struct trace_tasks ts = { tasks, 1 };
    struct arrival_experiment e = { &ns, &ts, 1.3, &sched_fragmentation };
    struct arrival_experiment_result result;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(arrival_experiment_run(&e, 1, &result, &err), -22);
    assert_non_null(strstr(err.text, "'a' is there twice"));
}

/* ---- in time ---- */

static struct replay_result replay(struct trace_task *t, size_t count, const char *order,
                                   bool backfill, uint32_t retries)
{
    struct trace_node nodes[] = { node("a", 4) };
    struct trace_nodes ns = { nodes, 1 };
    struct trace_tasks ts = { t, count };
    struct replay r = {
        &ns,      &ts,    { .load = 0.01 }, &sched_concentrated, sched_find_sequencer(order),
        backfill, retries
    };
    struct replay_result result;
    struct aq_error err = { 0 };

    assert_row(replay_run(&r, 1, &result, &err) == 0, "%s", err.text);
    return result;
}

/* Four GPUs: three are taken for 100 s; at 10 s somebody wants all four for 50
 * s, at 20 s somebody one for 60 s, at 30 s somebody one for 200 s.
 */
static void test_orders(void **state)
{
    struct trace_task tasks[] = { task(3, 1000, 0, 100), task(4, 1000, 10, 50),
                                  task(1, 1000, 20, 60), task(1, 1000, 30, 200) };
    struct replay_result r;

    (void)state;
    r = replay(tasks, 4, "fifo", false, 0);
    /* 0; from 100; both from 150 */
    assert_true(r.waiting_mean_sec == (0 + 90 + 130 + 120) / 4.0);
    assert_true(r.end_sec == 350);
    r = replay(tasks, 4, "fifo", true, 0);
    /* the 60 s end at 80, before the four can start at 100; the 200 s would not */
    assert_true(r.waiting_mean_sec == (0 + 90 + 0 + 120) / 4.0);
    r = replay(tasks, 4, "lifo", false, 0);
    /* the one at 20 at once; at 30 no room until 80; the four last, at 280 */
    assert_true(r.waiting_mean_sec == (0 + 270 + 0 + 50) / 4.0);
    r = replay(tasks, 4, "fifo", false, 1);
    /* passed by everybody after one failure: as lifo here */
    assert_true(r.waiting_mean_sec == (0 + 270 + 0 + 50) / 4.0);
    assert_int_equal(r.left_out, 0);
}

/* All four are kept from 50 s to 80 s: what would run into that starts behind it and holds up
 * nobody.
 */
static void test_booking(void **state)
{
    struct trace_task tasks[] = { task(4, 1000, 0, 100), task(1, 1000, 10, 20) };
    struct trace_node nodes[] = { node("a", 4) };
    struct trace_nodes ns = { nodes, 1 };
    struct trace_tasks ts = { tasks, 2 };
    struct replay r = { .nodes = &ns,
                        .tasks = &ts,
                        .load = { .load = 0.01 },
                        .policy = &sched_concentrated,
                        .order = &sched_fifo,
                        .booking = { 1, 4, 50, 80 } };
    struct replay_result result;
    struct aq_error err = { 0 };

    (void)state;
    for (int backfill = 0; backfill < 2; backfill++) {
        r.backfill = backfill;
        assert_row(replay_run(&r, 1, &result, &err) == 0, "%s", err.text);
        assert_true(result.waiting_mean_sec == (80 + 0) / 2.0);
        assert_true(result.end_sec == 180);
    }
    r.booking.nodes = 2;
    assert_int_equal(replay_run(&r, 1, &result, &err), -22);
    assert_non_null(strstr(err.text, "1 of 2 nodes have 4 GPUs"));
}

static void test_left_out(void **state)
{
    struct trace_task tasks[] = { task(8, 1000, 0, 100), task(1, 1000, -1, -1),
                                  task(1, 1000, 5, 10) };
    struct replay_result r = replay(tasks, 3, "fifo", false, 0);

    (void)state;
    assert_int_equal(r.left_out, 2);
    assert_int_equal(r.arrived, 1);
    assert_true(r.waiting_mean_sec == 0 && r.end_sec == 15);
}

/* Drawn tasks come evenly over the time that makes the load, are cut at the
 * longest, and are the same for the same seed.
 */
static void test_drawn(void **state)
{
    struct trace_task tasks[] = { task(1, 1000, 0, 100), task(2, 1000, 7, 1000000),
                                  task(8, 1000, 0, 5), task(1, 500, -1, -1) };
    struct trace_node nodes[] = { node("a", 4), node("b", 4) };
    struct trace_nodes ns = { nodes, 2 };
    struct trace_tasks ts = { tasks, 4 };
    struct workload_spec spec = { .load = 0.5, .draw = 1000, .longest_sec = 300 };
    struct workload load, again;
    double work = 0;

    (void)state;
    assert_int_equal(workload_make(&ns, &ts, &spec, 7, &load, NULL), 0);
    assert_int_equal(workload_make(&ns, &ts, &spec, 7, &again, NULL), 0);
    assert_int_equal(load.count, 1000);
    assert_int_equal(load.left_out, 2);
    assert_int_equal(load.nodes.count, 2);
    for (size_t i = 0; i < load.count; i++) {
        const struct arrival *a = &load.arrivals[i];

        assert_true(a->task < 2 && a->owner < WORKLOAD_USERS);
        assert_int_equal(a->duration_sec, a->task ? 300 : 100);
        assert_true(i == 0 || a->at_sec >= load.arrivals[i - 1].at_sec);
        work += a->task ? 600 : 100;
    }
    assert_true(load.arrivals[999].at_sec <= work / 8 / 0.5);
    assert_true(load.arrivals[999].at_sec > work / 8 / 0.5 * 0.9);
    assert_true(load.arrivals[500].at_sec > work / 8 / 0.5 * 0.4);
    assert_memory_equal(load.arrivals, again.arrivals, load.count * sizeof(*load.arrivals));
    workload_done(&load);
    workload_done(&again);
    spec.draw = 1;
    assert_int_equal(
        workload_make(&ns, &(struct trace_tasks){ &tasks[3], 1 }, &spec, 7, &load, NULL), -22);
}

/* ---- options and drawings ---- */

static const struct {
    const char *args, *says; /* NULL = accepted */
} commands[] = {
    { "--nodes n --tasks t", NULL },
    { "--nodes n --tasks t --policy fgd,fragmentation --seeds 1,2 --arrival 0.5 --json", NULL },
    { "--nodes n --tasks t --time --order all --load 2 --svg x", NULL },
    { "--nodes n --tasks t --draw 1000 --longest 3600", NULL },
    { "--nodes n --tasks t --time --booking 8x4@3600+10800", NULL },
    { "--nodes n --tasks t --time --booking 8x4@3600", "--booking is NODESxGPUS@START+SECONDS" },
    { "--nodes n --tasks t --draw 0", "--draw must be a number" },
    { "--nodes n --tasks t --draw 10 --longest x", "--longest must be a number" },
    { "--help", NULL },
    { "--tasks t", "--nodes is missing" },
    { "--nodes n", "--tasks is missing" },
    { "--nodes n --tasks t more", "no arguments beside options" },
    { "--nodes n --tasks t --policy best", "there is no policy 'best'" },
    { "--nodes n --tasks t --policy ,", "--policy is empty" },
    { "--nodes n --tasks t --order drf+skip", "there is no order 'drf+skip'" },
    { "--nodes n --tasks t --seeds 1,x", "--seeds is a list" },
    { "--nodes n --tasks t --seeds -1", "--seeds is a list" },
    { "--nodes n --tasks t --arrival 0", "--arrival must be a number" },
    { "--nodes n --tasks t --arrival nan", "--arrival must be a number" },
    { "--nodes n --tasks t --load", "--load" },
    { "--nodes n --tasks t --fast", "'--fast' is not an option" },
};

static void test_options(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(commands); i++) {
        char text[256], *argv[32] = { (char *)(uintptr_t) "aliquot-sim" }, *rest = NULL;
        int argc = 1, r;
        struct sim_options o;
        struct aq_error err = { 0 };

        (void)snprintf(text, sizeof(text), "%s", commands[i].args);
        for (char *w = strtok_r(text, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
            argv[argc++] = w;
        optind = 0;
        r = sim_options_parse(argc, argv, &o, &err);
        assert_row(r == (commands[i].says ? -22 : 0), "%s: %d %s", commands[i].args, r, err.text);
        assert_row(!commands[i].says || strstr(err.text, commands[i].says), "%s: %s",
                   commands[i].args, err.text);
    }
}

static void test_chart(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    static const double x[] = { 0, 70 }, y[] = { 0, 35 };
    struct svg_chart chart = { "a < b & c", "x", "y", { { "line", x, y, 2 } }, 1 };

    (void)state;
    svg_chart_write(&chart, 1, &out);
    assert_non_null(strstr(out.data, "a &lt; b &amp; c"));
    assert_non_null(strstr(out.data, ">100<")); /* 70 is rounded up */
    assert_non_null(strstr(out.data, "points=\"70.0,310.0 434.0,121.0\""));
    assert_non_null(strstr(out.data, "</svg>\n"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full),       cmocka_unit_test(test_devices),
        cmocka_unit_test(test_models),     cmocka_unit_test(test_same_seed),
        cmocka_unit_test(test_node_twice), cmocka_unit_test(test_orders),
        cmocka_unit_test(test_booking),    cmocka_unit_test(test_left_out),
        cmocka_unit_test(test_drawn),      cmocka_unit_test(test_options),
        cmocka_unit_test(test_chart),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
