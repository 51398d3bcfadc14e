/* SPDX-License-Identifier: Apache-2.0 */
/* Reading traces: tables of what is accepted and what is refused. */
#include "testing.h"

#include <stdlib.h>

#include "sim/trace.h"

#define TASKS \
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,scheduled_time,deletion_time\n"
#define NODES "sn,cpu_milli,memory_mib,gpu,model\n"

static void test_nodes(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    static const char text[] = NODES "a,64000,262144,2,P100\r\n\nb,8000,1024,,";
    struct trace_nodes nodes;

    (void)state;
    assert_int_equal(trace_read_nodes(text, strlen(text), &arena, &nodes, NULL), 0);
    assert_int_equal(nodes.count, 2);
    assert_string_equal(nodes.items[0].name, "a");
    assert_int_equal(nodes.items[0].cpu_milli, 64000);
    assert_int_equal(nodes.items[0].gpus, 2);
    assert_string_equal(nodes.items[0].model, "P100");
    assert_int_equal(nodes.items[1].gpus, 0);
    assert_null(nodes.items[1].model);
}

static void test_tasks(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    static const char text[] = TASKS "p,8000,512,1,460,T4|P100,100,110,200\n"
                                     "q,8000.9,512,4,500,,,,\nr,1,1,0,0,,7,,9\n";
    struct trace_tasks tasks;

    (void)state;
    assert_int_equal(trace_read_tasks(text, strlen(text), &arena, &tasks, NULL), 0);
    assert_int_equal(tasks.count, 3);
    assert_int_equal(tasks.items[0].gpu_milli, 460);
    assert_int_equal(tasks.items[0].model_count, 2);
    assert_string_equal(tasks.items[0].models[1], "P100");
    assert_int_equal(tasks.items[0].created_sec, 100);
    assert_int_equal(tasks.items[0].duration_sec, 90);
    assert_int_equal(tasks.items[1].gpu_milli, 1000); /* several are whole ones */
    assert_int_equal(tasks.items[1].cpu_milli, 8000);
    assert_int_equal(tasks.items[1].created_sec, -1);
    assert_int_equal(tasks.items[2].gpu_milli, 0);
    assert_int_equal(tasks.items[2].duration_sec, 2);
}

static const struct {
    const char *name, *text, *says;
} refused[] = {
    { "nothing", "", "empty" },
    { "a column is missing", "name,cpu_milli\n", "no column 'memory_mib'" },
    { "too few values", TASKS "p,1,2\n", "line 2: 3 values for 9 columns" },
    { "too many values", TASKS "p,1,2,0,0,,1,1,2,3\n", "line 2: 10 values" },
    { "no number", TASKS "p,x,2,0,0,,1,1,2\n", "line 2, cpu_milli: not a number" },
    { "half a number", TASKS "p,1x,2,0,0,,1,1,2\n", "line 2, cpu_milli: not a number" },
    { "a number is missing", TASKS "p,,2,0,0,,1,1,2\n", "line 2, cpu_milli: a number is missing" },
    { "negative", TASKS "p,-1,2,0,0,,1,1,2\n", "out of range" },
    { "too large", TASKS "p,99999999999999999999,2,0,0,,1,1,2\n", "too large" },
    { "more than a GPU", TASKS "p,1,2,1,1001,,1,1,2\n", "line 2, gpu_milli: the number is out" },
    { "nothing of a GPU", TASKS "p,1,2,1,0,,1,1,2\n", "takes a part of it" },
    { "ends first", TASKS "p,1,2,0,0,,5,5,4\n", "ends before it begins" },
    { "an empty model", TASKS "p,1,2,1,5,A||B,1,1,2\n", "line 2, gpu_spec: an empty model" },
    { "quotes", TASKS "\"p\",1,2,0,0,,1,1,2\n", "quotes are not read" },
    { "on line 3", TASKS "p,1,2,0,0,,1,1,2\nq,1,2,0,0,,1,x,2\n", "line 3, scheduled_time" },
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(refused); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct trace_tasks tasks = { .count = 77 };
        struct aq_error err = { 0 };
        int r = trace_read_tasks(refused[i].text, strlen(refused[i].text), &arena, &tasks, &err);

        assert_row(r == -22, "%s: %d", refused[i].name, r);
        assert_row(strstr(err.text, refused[i].says), "%s: %s", refused[i].name, err.text);
        assert_row(tasks.count == 77, "%s", refused[i].name);
    }
}

static void test_file(void **state)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct trace_nodes nodes;
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(trace_load_nodes("/nonexistent/nodes.csv", &arena, &nodes, &err), -2);
    assert_non_null(strstr(err.text, "/nonexistent/nodes.csv"));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
