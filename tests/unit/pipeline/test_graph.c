/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <string.h>

#include "pipeline/graph.h"

static const char file[] = "name: d\n"
                           "defaults: {image: i}\n"
                           "tasks:\n"
                           "  a: {command: x}\n"
                           "  b: {needs: a, matrix: {k: [1, 2]}, command: x}\n"
                           "  c: {needs: [b], command: x}\n";

static struct pipeline *parse(void)
{
    struct pipeline *p = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(pipeline_parse(file, strlen(file), &p, &err), 0);
    return p;
}

static void text_has_layers(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse();

    (void)state;
    graph_write_text(p, NULL, (struct graph_style){ true, false }, &out);
    assert_string_equal(out.data, "  o a\n"
                                  "  |\n"
                                  "  o b  2 tasks  needs a\n"
                                  "      o b.1 k=1\n"
                                  "      o b.2 k=2\n"
                                  "  |\n"
                                  "  o c  needs b\n");
}

static void text_shows_states_and_notes(void **state)
{
    static const struct graph_state states[] = {
        { "succeeded", "12s" }, { "failed", "exit code 1" }, { "running", "" }, { "skipped", "" }
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse();

    (void)state;
    graph_write_text(p, states, (struct graph_style){ true, true }, &out);
    assert_non_null(strstr(out.data, "\033[32m+\033[0m a  succeeded  12s\n"));
    assert_non_null(strstr(out.data, "\033[31mx\033[0m b  2 tasks: 1 failed, 1 running\n"));
    assert_non_null(strstr(out.data, "b.1 k=1  failed     exit code 1\n"));
}

static void text_aligns_the_states_of_a_matrix(void **state)
{
    static const char wide[] = "name: d\n"
                               "tasks:\n"
                               "  first: {image: i, command: x}\n"
                               "  b: {image: i, matrix: {k: [1, ten]}, command: x}\n";
    static const struct graph_state states[] = { { "running", "" },
                                                 { "succeeded", "1s" },
                                                 { "failed", "" } };
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;

    (void)state;
    assert_int_equal(pipeline_parse(wide, strlen(wide), &p, NULL), 0);
    graph_write_text(p, states, (struct graph_style){ true, false }, &out);
    assert_string_equal(out.data, "  * first  running\n"
                                  "  x b      2 tasks: 1 failed, 1 succeeded\n"
                                  "      + b.1 k=1    succeeded  1s\n"
                                  "      x b.2 k=ten  failed\n");
}

static void boxes_have_the_colour_of_the_state(void **state)
{
    static const struct graph_state states[] = {
        { "succeeded", "" }, { "failed", "" }, { "running", "" }, { "skipped", "" }
    };
    AQ_CLEANUP(strbuf_donep) struct strbuf dot = STRBUF_INIT, svg = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = parse();

    (void)state;
    graph_write_dot(p, states, &dot);
    assert_non_null(strstr(dot.data, "\"a\" -> \"b\";"));
    assert_non_null(strstr(dot.data, "\"a\" [fillcolor=\"#cdebd0\""));
    graph_write_svg(p, states, &svg);
    assert_non_null(strstr(svg.data, "fill=\"#f8d0cc\""));
    assert_non_null(strstr(svg.data, "</svg>"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_layers),
        cmocka_unit_test(text_shows_states_and_notes),
        cmocka_unit_test(text_aligns_the_states_of_a_matrix),
        cmocka_unit_test(boxes_have_the_colour_of_the_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
