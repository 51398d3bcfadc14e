/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>
#include <string.h>

#include "pipeline/pipeline.h"

static const char digits[] =
    "name: digits\n"
    "parameters: {epochs: {default: 3, type: integer}, data: {type: string}}\n"
    "defaults: {image: python, resources: {cpu: 1, mem: 1g}, env: {A: 1}}\n"
    "tasks:\n"
    "  report: {needs: [train], when: always, command: report}\n"
    "  prepare: {command: python prep.py, retry: 2}\n"
    "  train:\n"
    "    needs: [prepare]\n"
    "    matrix: {lr: [0.1, 0.01], seed: [1, 2]}\n"
    "    command: train ${{ matrix.lr }} ${{ matrix.seed }} ${{ parameters.epochs }}\n"
    "    resources: {cuda.shares: 0.5}\n"
    "    timeout: 1h\n"
    "  evaluate: {needs: [prepare], when: \"${{ parameters.epochs > 2 }}\", command: e}\n";

static struct pipeline *parse(const char *text)
{
    struct pipeline *p = NULL;
    struct aq_error err = { 0 };
    int r = pipeline_parse(text, strlen(text), &p, &err);

    assert_string_equal(err.text, "");
    assert_int_equal(r, 0);
    return p;
}

static void assert_refused(const char *text, const char *expected)
{
    struct pipeline *p = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(pipeline_parse(text, strlen(text), &p, &err), -EINVAL);
    if (!strstr(err.text, expected))
        fail_msg("expected '%s' in: %s", expected, err.text);
}

static void tasks_come_after_what_they_need(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(digits);

    (void)state;
    assert_int_equal(p->task_count, 4);
    assert_int_equal(p->node_count, 7);
    assert_string_equal(p->tasks[0].name, "prepare");
    assert_string_equal(p->tasks[1].name, "train");
    assert_int_equal(p->tasks[1].node_count, 4);
    assert_int_equal(p->tasks[1].timeout_usec, INT64_C(3600000000));
    assert_string_equal(p->nodes[2].name, "train.2");
    assert_string_equal(json_string_value(json_object_get(p->nodes[2].matrix, "seed")), "2");
    assert_string_equal(p->tasks[2].name, "report");
    assert_true(p->tasks[2].waits);
    assert_int_equal(p->tasks[2].layer, 2);
    assert_false(p->tasks[3].waits);
    assert_int_equal(p->tasks[0].retry, 2);
}

static void tasks_inherit_defaults_member_by_member(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(digits);
    const json_t *resources = json_object_get(p->tasks[1].definition, "resources");

    (void)state;
    assert_string_equal(json_string_value(json_object_get(resources, "cuda.shares")), "0.5");
    assert_int_equal(json_integer_value(json_object_get(resources, "cpu")), 1);
    assert_null(
        json_object_get(json_object_get(p->tasks[0].definition, "resources"), "cuda.shares"));
}

static void mistakes_have_line_and_column(void **state)
{
    (void)state;
    assert_refused("name: a\ntasks:\n  b: {comand: x}\n",
                   "line 3, column 7: unknown key 'comand'; did you mean 'command'?");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x, needs: [c]}\n",
                   "line 3, column 37: task 'b' needs 'c', which does not exist");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x}\n  b: {image: i, command: x}\n",
                   "line 4, column 3: a key is there twice");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: \"${{ matrix.x }}\"}\n",
                   "line 3, column 17: 'matrix.x' does not exist");
    assert_refused("name: a\ntasks:\n  b: {command: x}\n", "task 'b' has no image");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x, timeout: 0}\n", "duration");
    assert_refused("name: a\ntasks: {}\n", "one task or more");
    assert_refused("name: a b\ntasks: {}\n", "name 'a b'");
    assert_refused("name: [x]\n", "'name' is missing");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x, retry: 11}\n", "0 to 10");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x, resources: {mem: lots}}\n",
                   "line 3, column 41: 'lots' is not an amount of mem");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x, resources: {cpu: -1}}\n",
                   "'-1' is not an amount of cpu");
    assert_refused("name: a\ntasks:\n  b: {image: i, command: x, env: {1a: x}}\n", "variable");
}

static void circles_are_refused_with_their_path(void **state)
{
    (void)state;
    assert_refused("name: a\n"
                   "defaults: {image: i}\n"
                   "tasks:\n"
                   "  a: {needs: [b], command: x}\n"
                   "  b: {needs: [c], command: x}\n"
                   "  c: {needs: [a], command: x}\n",
                   "circle: a -> b -> c -> a");
    assert_refused("name: a\ntasks:\n  a: {needs: a, image: i, command: x}\n", "circle: a -> a");
}

static void a_large_matrix_is_refused_before_it_is_made(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "name: a\ntasks:\n  b:\n    image: i\n    command: x\n    matrix:\n");
    for (int i = 0; i < 10; i++)
        strbuf_addf(&text, "      m%d: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n", i);
    assert_refused(text.data, "more than 10000 tasks");
}

static void add_repeated(struct strbuf *text, const char *word, size_t count)
{
    for (size_t i = 0; i < count; i++)
        strbuf_adds(text, word);
}

static void a_matrix_of_many_names_is_refused(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "name: a\ntasks:\n  b:\n    image: i\n    command: x\n    matrix:\n");
    for (int i = 0; i < PIPELINE_MATRIX_MAX + 1; i++)
        strbuf_addf(&text, "      m%d: [1]\n", i);
    assert_refused(text.data, "'matrix' has 17 names; at most 16 are allowed");
}

static void long_texts_of_many_tasks_are_refused(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    struct aq_error err = { 0 };

    (void)state;
    strbuf_adds(&text, "name: a\ntasks:\n  b: {image: i, command: ");
    add_repeated(&text, "x", 30000);
    strbuf_adds(&text, ", matrix: {long: [");
    add_repeated(&text, "y", 30000);
    strbuf_adds(&text, "], short: [1");
    add_repeated(&text, ", 1", 400);
    assert_int_equal(text.len < PIPELINE_BYTES_MAX, 1);
    {
        AQ_CLEANUP(aq_freep) char *few = aq_format("%s]}}\n", text.data);

        assert_int_equal(pipeline_parse(few, strlen(few), &p, &err), 0);
        /* texts of the matrix are in memory once */
        assert_ptr_equal(json_object_get(p->nodes[0].matrix, "long"),
                         json_object_get(p->nodes[400].matrix, "long"));
    }
    add_repeated(&text, ", 1", 400);
    strbuf_adds(&text, "]}}\n");
    assert_refused(text.data, "the tasks have more than 32 MiB of text");
}

static void references_of_a_task_are_bounded(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "name: a\ntasks:\n  b: {image: i, command: \"");
    add_repeated(&text, "${{ task.name }}", PIPELINE_REFERENCES_MAX + 1);
    strbuf_adds(&text, "\"}\n");
    assert_refused(text.data, "task 'b' has more than 1000 references");
}

static void values_of_parameters_are_bounded_together(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, value = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    json_auto_t *given = json_object();
    struct aq_error err = { 0 };
    char name[8];

    (void)state;
    add_repeated(&value, "v", PIPELINE_VALUE_MAX);
    strbuf_adds(&text, "name: a\nparameters: {p0: x, p1: x, p2: x, p3: x}\n"
                       "tasks:\n  b: {image: i, command: x}\n");
    p = parse(text.data);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(name, sizeof(name), "p%d", i);
        (void)json_object_set_new(given, name, json_string(value.data));
    }
    assert_null(pipeline_bind(p, given, &err));
    assert_string_equal(err.field, "p3");
    assert_non_null(strstr(err.text, "the parameters have more than 256 KiB"));
}

static void a_value_of_a_megabyte_is_refused(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    (void)state;
    strbuf_adds(&text, "name: a\ntasks:\n  b: {image: i, command: x, env: {A: ");
    for (int i = 0; i < PIPELINE_VALUE_MAX + 1; i++)
        strbuf_addc(&text, 'v');
    strbuf_adds(&text, "}}\n");
    assert_refused(text.data, "line 3, column 35: 'tasks.b.env.A' has 65537 bytes");
    while (text.len < 1 << 20)
        strbuf_addc(&text, ' ');
    assert_refused(text.data, "at most 262144 are allowed");
}

static void parameters_have_types_and_defaults(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(digits);
    struct aq_error err = { 0 };
    json_t *given = json_pack("{s:s, s:s}", "data", "x", "epochs", "5");
    json_t *bound = pipeline_bind(p, given, &err);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(bound, "epochs")), "5");
    json_decref(bound);
    assert_null(pipeline_bind(p, NULL, &err));
    assert_string_equal(err.field, "data");
    (void)json_object_set_new(given, "epochs", json_string("many"));
    assert_null(pipeline_bind(p, given, &err));
    assert_non_null(strstr(err.text, "not of type integer"));
    (void)json_object_set_new(given, "epoch", json_string("1"));
    assert_null(pipeline_bind(p, given, &err));
    assert_non_null(strstr(err.text, "did you mean 'epochs'?"));
    json_decref(given);
}

static const char *find_failed(void *data, size_t task)
{
    (void)data;
    (void)task;
    return "failed";
}

static bool decide(const struct pipeline *p, size_t node, enum pipeline_outcome outcome,
                   const char *epochs)
{
    json_auto_t *parameters = json_pack("{s:s}", "epochs", epochs);
    struct pipeline_context c = { .pipeline = p,
                                  .node = node,
                                  .parameters = parameters,
                                  .outcome = outcome,
                                  .find_state = find_failed };
    struct aq_error err = { 0 };
    bool runs;

    assert_int_equal(pipeline_decide(&c, &runs, &err), 0);
    return runs;
}

static void when_is_decided_by_outcome_and_values(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(digits);
    size_t report = p->tasks[2].node, evaluate = p->tasks[3].node;

    (void)state;
    assert_true(decide(p, report, PIPELINE_FAILURE, "1"));
    assert_true(decide(p, evaluate, PIPELINE_SUCCESS, "3"));
    assert_false(decide(p, evaluate, PIPELINE_SUCCESS, "2"));
    assert_false(decide(p, evaluate, PIPELINE_FAILURE, "3")); /* success is implied */
    assert_false(decide(p, 0, PIPELINE_FAILURE, "1"));
}

static void states_of_needs_are_filled_in(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(digits);
    struct pipeline_context c = {
        .pipeline = p, .node = p->tasks[2].node, .run = "digits.7", .find_state = find_failed
    };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(pipeline_fill(&c, "${{run.name}} ${{ tasks.train.state }}", &out, &err), 0);
    assert_string_equal(out.data, "digits.7 failed");
    assert_int_equal(pipeline_fill(&c, "${{ tasks.prepare.state }}", &out, &err), -EINVAL);
    assert_non_null(strstr(err.text, "does not list in 'needs'"));
}

static const char handing_on[] =
    "name: a\n"
    "defaults: {image: i}\n"
    "tasks:\n"
    "  count: {command: c, outputs: [rows, kind]}\n"
    "  each: {matrix: {i: [1, 2]}, command: e, outputs: [score]}\n"
    "  use:\n"
    "    needs: [count, each]\n"
    "    when: ${{ tasks.count.outputs.rows > 1 }}\n"
    "    command: use ${{ tasks.count.outputs.kind }} ${{ tasks.count.outputs.kind }}\n"
    "    env: {SCORES: \"${{ tasks.each.outputs.score }}\"}\n";

static const char *find_value(void *data, size_t task, const char *name)
{
    (void)data;
    return strcmp(name, "rows") == 0 ? "10" : task == 0 ? "large" : "[\"1\",\"2\"]";
}

static void outputs_of_needs_are_filled_in(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(handing_on);
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT, inputs = STRBUF_INIT;
    const struct pipeline_context context = { .pipeline = p,
                                              .node = p->tasks[2].node,
                                              .find_output = find_value };
    struct aq_error err = { 0 };
    bool runs = false;

    (void)state;
    assert_int_equal(pipeline_fill(&context, "${{ tasks.each.outputs.score }}", &out, &err), 0);
    assert_string_equal(out.data, "[\"1\",\"2\"]");
    assert_int_equal(pipeline_decide(&context, &runs, &err), 0);
    assert_true(runs);
    /* what 'when' asks for does not change what the task does */
    pipeline_describe_inputs(&context, &inputs);
    assert_string_equal(inputs.data, "count.kind=5:large\neach.score=9:[\"1\",\"2\"]\n");
}

static void outputs_are_declared(void **state)
{
    static const char begin[] = "name: a\ndefaults: {image: i}\ntasks:\n";
    static const struct {
        const char *tasks, *error;
    } cases[] = {
        { "  a: {command: x, outputs: [count]}\n"
          "  b: {needs: a, command: \"${{ tasks.a.outputs.coutn }}\"}\n",
          "line 5, column 17: 'outputs' of task 'a' does not list 'coutn'; did you mean 'count'?" },
        { "  a: {command: x}\n  b: {needs: a, command: \"${{ tasks.a.outputs.count }}\"}\n",
          "'outputs' of task 'a' does not list 'count'" },
        { "  a: {command: x, outputs: [c]}\n  b: {command: \"${{ tasks.a.outputs.c }}\"}\n",
          "refers to a task that 'b' does not list in 'needs'" },
        { "  a: {command: x}\n  b: {needs: a, command: \"${{ tasks.a.output.c }}\"}\n",
          "must end in .state or .outputs.NAME" },
        { "  a: {command: x, outputs: [a.b]}\n",
          "line 4, column 29: name 'a.b' of an output must have" },
        { "  a: {command: x, outputs: [a, a]}\n", "line 4, column 32: 'outputs' has 'a' twice" },
        { "  a: {command: x, outputs: a}\n", "must be a list of at most 64 names" },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

        strbuf_addf(&text, "%s%s", begin, cases[i].tasks);
        assert_refused(text.data, cases[i].error);
    }
}

static char *identify(const char *text, size_t node, const char *epochs)
{
    AQ_CLEANUP(pipeline_identifier_done) struct pipeline_identifier of = { .arena = ARENA_INIT };
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(text);
    struct strbuf out = STRBUF_INIT;
    json_auto_t *parameters = json_pack("{s:s, s:s}", "epochs", epochs, "data", "x");

    pipeline_identify(&of, p, node, parameters, &out);
    return strbuf_steal(&out);
}

static void identity_changes_with_what_a_task_does(void **state)
{
    AQ_CLEANUP(aq_freep) char *first = identify(digits, 1, "3"), *same = identify(digits, 1, "3");
    AQ_CLEANUP(aq_freep) char *other = identify(digits, 1, "4"), *second = identify(digits, 2, "3");
    AQ_CLEANUP(aq_freep) char *prepare = identify(digits, 0, "3");
    AQ_CLEANUP(aq_freep) char *unaffected = identify(digits, 0, "4");

    (void)state;
    assert_string_equal(first, same);
    assert_string_not_equal(first, other);
    assert_string_not_equal(first, second);
    assert_string_equal(prepare, unaffected);
}

static const char nightly[] =
    "name: nightly\n"
    "parameters: {epochs: {default: 3, type: integer}, data: {type: string}}\n"
    "triggers:\n"
    "  overlap: cancel\n"
    "  schedule:\n"
    "    - {cron: 30 2 * * mon-fri, zone: Europe/Berlin, parameters: {data: a}}\n"
    "    - cron: \"@daily\"\n"
    "      parameters: {data: b, epochs: 5}\n"
    "  after: {pipeline: prepare, ends: any, parameters: {data: c}}\n"
    "tasks: {a: {image: x, command: y}}\n";

static void triggers_are_schedules_and_ends_of_others(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(nightly), *plain = parse(digits);
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(p->trigger_count, 3);
    assert_string_equal(p->overlap, "cancel");
    assert_string_equal(p->missed, "run-once");
    assert_string_equal(p->triggers[0].zone, "Europe/Berlin");
    assert_true(p->triggers[0].schedule.hours == 1u << 2);
    assert_string_equal(p->triggers[1].zone, "UTC");
    assert_null(p->triggers[1].after);
    assert_string_equal(p->triggers[2].after, "prepare");
    assert_string_equal(p->triggers[2].ends, "any");
    assert_int_equal(pipeline_check_zones(p, nightly, strlen(nightly), &err), 0);
    assert_int_equal(plain->trigger_count, 0);
    assert_string_equal(plain->overlap, "skip");
}

#define TRIGGERED(text) "name: t\ntriggers:\n" text "tasks: {a: {image: x, command: y}}\n"

static void triggers_with_mistakes_are_refused(void **state)
{
    static const char unknown[] = TRIGGERED("  schedule:\n    - cron: 0 0 * * *\n"
                                            "    - {cron: 0 0 * * *, zone: Europe/Berln}\n");
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    struct aq_error err = { 0 };

    (void)state;
    assert_refused(TRIGGERED("  schedul: {cron: 0 0 * * *}\n"), "did you mean 'schedule'?");
    assert_refused(TRIGGERED("  schedule:\n    - zone: UTC\n"), "'cron' must be a schedule");
    assert_refused(TRIGGERED("  schedule:\n    - {zone: UTC, cron: 61 * * * *}\n"),
                   "line 4, column 19: schedule '61 * * * *', column 1: minute must be 0 to 59");
    assert_refused(TRIGGERED("  schedule: {cron: 0 0 * * *, zone: ../etc}\n"),
                   "line 3, column 31: '../etc' is not the name of a time zone");
    assert_refused(TRIGGERED("  schedule: [0 0 * * *]\n"), "must be a mapping");
    assert_refused(TRIGGERED("  after: {pipeline: t}\n"), "cannot be started by its own end");
    assert_refused(TRIGGERED("  after: {pipeline: b, ends: never}\n"),
                   "'ends' must be success, failure or any");
    assert_refused(TRIGGERED("  overlap: queue\n  after: {pipeline: b}\n"),
                   "line 3, column 3: 'overlap' must be skip, allow or cancel");
    assert_refused(TRIGGERED("  missed: all\n  after: {pipeline: b}\n"),
                   "'missed' must be run-once or skip");
    assert_refused(TRIGGERED("  missed: skip\n"), "must have 'schedule' or 'after'");
    assert_refused(TRIGGERED("  schedule: {cron: 0 0 * * *, parameters: {b: 1}}\n"),
                   "column 44: pipeline 't' has no parameter 'b'");
    assert_refused("name: t\nparameters: {d: {type: string}}\ntriggers: {after: {pipeline: b}}\n"
                   "tasks: {a: {image: x, command: y}}\n",
                   "parameter 'd' has no default; give it under 'parameters' of the trigger");
    p = parse(unknown);
    assert_int_equal(pipeline_check_zones(p, unknown, strlen(unknown), &err), -EINVAL);
    assert_non_null(strstr(err.text, "line 5, column 25: time zone 'Europe/Berln' does not exist"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_come_after_what_they_need),
        cmocka_unit_test(triggers_are_schedules_and_ends_of_others),
        cmocka_unit_test(triggers_with_mistakes_are_refused),
        cmocka_unit_test(tasks_inherit_defaults_member_by_member),
        cmocka_unit_test(mistakes_have_line_and_column),
        cmocka_unit_test(circles_are_refused_with_their_path),
        cmocka_unit_test(circles_are_refused_with_their_path),
        cmocka_unit_test(a_large_matrix_is_refused_before_it_is_made),
        cmocka_unit_test(a_matrix_of_many_names_is_refused),
        cmocka_unit_test(long_texts_of_many_tasks_are_refused),
        cmocka_unit_test(references_of_a_task_are_bounded),
        cmocka_unit_test(values_of_parameters_are_bounded_together),
        cmocka_unit_test(a_value_of_a_megabyte_is_refused),
        cmocka_unit_test(parameters_have_types_and_defaults),
        cmocka_unit_test(when_is_decided_by_outcome_and_values),
        cmocka_unit_test(states_of_needs_are_filled_in),
        cmocka_unit_test(outputs_of_needs_are_filled_in),
        cmocka_unit_test(outputs_are_declared),
        cmocka_unit_test(identity_changes_with_what_a_task_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
