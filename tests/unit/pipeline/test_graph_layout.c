/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <stdlib.h>
#include <string.h>

#include "pipeline/graph_layout.h"

static struct pipeline *parse(const char *tasks)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct pipeline *p = NULL;
    struct aq_error err = { 0 };

    strbuf_addf(&text, "name: d\ndefaults: {image: i}\ntasks:\n%s", tasks);
    if (pipeline_parse(text.data, text.len, &p, &err) < 0)
        fail_msg("%s", err.text);
    return p;
}

static void check_json(const struct pipeline *p, const char *expected)
{
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    graph_layout_init(p, &layout);
    graph_layout_write(&layout, p, &w);
    assert_string_equal(out.data, expected);
}

static void a_matrix_is_one_box(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(
        "  a: {command: x}\n"
        "  b: {command: x, needs: a, matrix: {k: [1, 2]}}\n"
        "  c: {command: x, needs: [a, b]}\n");

    (void)state;
    check_json(
        p, "{\"columns\":3,\"rows\":1,\"boxes\":["
           "{\"name\":\"a\",\"column\":0,\"row\":0,\"tasks\":1,\"nodes\":[[0,1]],\"needs\":[]},"
           "{\"name\":\"b\",\"column\":1,\"row\":0,\"tasks\":1,\"nodes\":[[1,2]],\"needs\":[0]},"
           "{\"name\":\"c\",\"column\":2,\"row\":0,\"tasks\":1,\"nodes\":[[3,1]],\"needs\":[0,1]}"
           "]}");
}

/* d needs the lower one of two, e the upper one: e is above d. */
static void boxes_stand_beside_what_they_need(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse(
        "  a: {command: x}\n  b: {command: x}\n"
        "  d: {command: x, needs: b}\n  e: {command: x, needs: a}\n");
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;

    (void)state;
    graph_layout_init(p, &layout);
    assert_int_equal(layout.box_count, 4);
    for (size_t i = 0; i < 4; i++)
        if (layout.boxes[i].column == 1)
            assert_int_equal(layout.boxes[i].row, strcmp(layout.boxes[i].name, "d") == 0);
}

/* Samples that pass the same steps; 'odd' has one that skips a step. */
static struct pipeline *parse_samples(int samples, bool has_odd)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf tasks = STRBUF_INIT;

    for (int i = 0; i < samples; i++)
        strbuf_addf(&tasks, "  align-%d: {command: x}\n  sort-%d: {command: x, needs: align-%d}\n",
                    i, i, i);
    if (has_odd)
        strbuf_adds(&tasks, "  align-odd: {command: x}\n");
    strbuf_adds(&tasks, "  merge: {command: x, needs: [");
    for (int i = 0; i < samples; i++)
        strbuf_addf(&tasks, "sort-%d%s", i, i < samples - 1 ? ", " : "");
    strbuf_addf(&tasks, "%s]}\n", has_odd ? ", align-odd" : "");
    return parse(tasks.data);
}

static void tasks_that_are_alike_share_a_box(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse_samples(499, false);
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;
    static const char *const names[] = { "align-*", "sort-*", "merge" };

    (void)state;
    graph_layout_init(p, &layout);
    assert_int_equal(layout.box_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(layout.boxes[i].name, names[i]);
        assert_int_equal(layout.boxes[i].column, i);
        assert_int_equal(layout.boxes[i].task_count, i < 2 ? 499 : 1);
        assert_int_equal(layout.boxes[i].node_count, i < 2 ? 499 : 1);
        assert_int_equal(layout.boxes[i].need_count, i > 0);
    }
}

static void one_that_differs_has_a_box_of_its_own(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse_samples(100, true);
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;

    (void)state;
    graph_layout_init(p, &layout);
    assert_int_equal(layout.box_count, 4);
    for (size_t i = 0; i < 4; i++)
        if (strcmp(layout.boxes[i].name, "align-odd") == 0)
            return;
    fail_msg("align-odd shares a box");
}

static void small_graphs_have_a_box_for_each_task(void **state)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse_samples(19, false);
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;

    (void)state;
    graph_layout_init(p, &layout);
    assert_int_equal(layout.box_count, 39);
    assert_int_equal(layout.rows, 19);
}

/* ---- any graph ---- */

static struct pipeline *parse_random(void)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf tasks = STRBUF_INIT;
    int count = 1 + rand() % 120, width = 1 + rand() % 20;

    for (int i = 0; i < count; i++) {
        int back = width + rand() % 5, first = AQ_MAX(0, i - back);

        strbuf_addf(&tasks, "  t%d: {command: x, needs: [", i);
        for (int k = first; k < i - i % width; k++)
            if (k == first || rand() % 3 == 0)
                strbuf_addf(&tasks, "%st%d", k == first ? "" : ", ", k);
        strbuf_adds(&tasks, "]}\n");
    }
    return parse(tasks.data);
}

static bool box_has(const size_t *items, size_t count, size_t item)
{
    for (size_t i = 0; i < count; i++)
        if (items[i] == item)
            return true;
    return false;
}

static size_t find_box(const struct graph_layout *layout, size_t task)
{
    size_t found = layout->box_count;

    for (size_t b = 0; b < layout->box_count; b++)
        if (box_has(layout->boxes[b].tasks, layout->boxes[b].task_count, task)) {
            assert_int_equal(found, layout->box_count);
            found = b;
        }
    assert_true(found < layout->box_count);
    return found;
}

/* Each task is in one box, each need is a line to the right, and no box is behind another. */
static void lines_are_the_needs(void **state)
{
    (void)state;
    srand(463);
    for (int round = 0; round < 100; round++) {
        AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse_random();
        AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;

        graph_layout_init(p, &layout);
        for (size_t i = 0; i < p->task_count; i++) {
            const struct graph_box *box = &layout.boxes[find_box(&layout, i)];

            for (size_t k = 0; k < p->tasks[i].need_count; k++) {
                size_t needed = find_box(&layout, p->tasks[i].needs[k]);

                assert_true(box_has(box->needs, box->need_count, needed));
                assert_true(layout.boxes[needed].column < box->column);
            }
        }
        for (size_t a = 0; a < layout.box_count; a++) {
            assert_true(layout.boxes[a].column < layout.columns
                        && layout.boxes[a].row < layout.rows);
            for (size_t b = 0; b < a; b++)
                assert_false(layout.boxes[a].column == layout.boxes[b].column
                             && layout.boxes[a].row == layout.boxes[b].row);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_matrix_is_one_box),
        cmocka_unit_test(boxes_stand_beside_what_they_need),
        cmocka_unit_test(tasks_that_are_alike_share_a_box),
        cmocka_unit_test(one_that_differs_has_a_box_of_its_own),
        cmocka_unit_test(small_graphs_have_a_box_for_each_task),
        cmocka_unit_test(lines_are_the_needs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
