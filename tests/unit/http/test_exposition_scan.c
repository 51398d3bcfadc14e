/* SPDX-License-Identifier: Apache-2.0 */
/* Series that are chosen from a page in Prometheus' text format, however it is cut into pieces. */
#include "testing.h"

#include <errno.h>
#include <math.h>

#include "http/exposition_scan.h"

static struct exposition_sum scan_page(const char *selector, const char *page, size_t len,
                                       size_t piece)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct exposition_selector chosen;
    struct exposition_scan scan;
    struct exposition_sum sum;

    assert_int_equal(exposition_selector_parse(selector, &arena, &chosen, NULL), 0);
    exposition_scan_begin(&scan, &chosen, 1, &sum);
    for (size_t at = 0; at < len; at += piece)
        exposition_scan_take(&scan, page + at, AQ_MIN(piece, len - at));
    exposition_scan_finish(&scan);
    exposition_scan_done(&scan);
    return sum;
}

static void test_series(void **state)
{
    static const struct {
        const char *selector, *page;
        double value;
        size_t series, broken;
    } cases[] = {
        { "a", "# HELP a text\n# TYPE a gauge\na 3\n", 3, 1, 0 },
        { "a", "a 3", 3, 1, 0 },
        { "a", "ab 3\nb 4\na_total 5\n", 0, 0, 0 },
        { "llamacpp:requests_processing", "llamacpp:requests_processing 2\n", 2, 1, 0 },
        { "a", "a{x=\"1\"} 1\na{x=\"2\"} 2.5\na{x=\"3\"} -0.5\n", 3, 3, 0 },
        { "a{x=\"2\"}", "a{x=\"1\"} 1\na{x=\"2\"} 2.5\na 4\n", 2.5, 1, 0 },
        { "a{x=\"2\",y=\"3\"}", "a{y=\"3\",z=\"9\",x=\"2\"} 1\na{x=\"2\"} 2\n", 1, 1, 0 },
        { "a{x=\"q\\\"\\\\n\\n\"}", "a{x=\"q\\\"\\\\n\\n\"} 1\na{x=\"q\"} 2\n", 1, 1, 0 },
        { "a", "\t a\t{ x = \"1\" , } \t7 1700000000000\r\n", 7, 1, 0 },
        { "a", "a 1 # {trace_id=\"x\"} 0.5 1.2\na{b=\"}\"} 2 # {}\n", 3, 2, 0 },
        { "a", "a NaN\na{x=\"1\"} nan\n", 0, 0, 0 },
        { "a", "a NaN\na{x=\"1\"} 5\n", 5, 1, 0 },
        { "a", "a 1e400\n", (double)INFINITY, 1, 0 },
        { "a", "a +Inf\na 1\n", (double)INFINITY, 2, 0 },
        { "a", "a -Inf\n", -(double)INFINITY, 1, 0 },
        { "a", "a -12.5e3\n", -12500, 1, 0 },
        { "a", "a\n", 0, 0, 1 },
        { "a", "a x\na 1x\na{x=1} 2\na{x=\"1\" 2\na{x=\"1\na{1=\"2\"} 3\na{x=\"\\", 0, 0, 7 },
        { "a", "a\"1\"\n\n\n\r\n{a=\"1\"} 3\n", 0, 0, 1 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++)
        for (size_t piece = 1; piece < 20; piece += 6) {
            struct exposition_sum sum = scan_page(cases[i].selector, cases[i].page,
                                                  strlen(cases[i].page), piece);

            assert_row(sum.value == cases[i].value && sum.series == cases[i].series
                           && sum.broken == cases[i].broken,
                       "%s: %g of %zu, %zu broken", cases[i].page, sum.value, sum.series,
                       sum.broken);
        }
}

static void test_long_lines_are_broken(void **state)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf page = STRBUF_INIT;
    struct exposition_sum sum;

    (void)state;
    strbuf_adds(&page, "b{x=\"");
    for (size_t i = 0; i < 3 * EXPOSITION_LINE_MAX; i++)
        strbuf_addc(&page, 'x');
    strbuf_adds(&page, "\"} 1\na{x=\"");
    for (size_t i = 0; i < 3 * EXPOSITION_LINE_MAX; i++)
        strbuf_addc(&page, 'x');
    strbuf_adds(&page, "\"} 2\na 3\n");
    sum = scan_page("a", page.data, page.len, 1000);
    assert_true(sum.value == 3 && sum.series == 1 && sum.broken == 1);
    sum = scan_page("b", page.data, page.len, page.len);
    assert_true(sum.series == 0 && sum.broken == 1);
}

static void test_selectors(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } cases[] = {
        { "vllm:num_requests_waiting", 0, NULL },
        { "a{}", 0, NULL },
        { "a{ b = \"c\" , d=\"\\\"\" }", 0, NULL },
        { "", -EINVAL, "not the name of a metric" },
        { "1a", -EINVAL, "not the name of a metric" },
        { "a b", -EINVAL, "not the name of a metric" },
        { "rate(a[1m])", -EINVAL, "not the name of a metric" },
        { "a{b=\"c\"", -EINVAL, "name{label=\"value\"" },
        { "a{b=c}", -EINVAL, "name{label=\"value\"" },
        { "a{b=~\"c\"}", -EINVAL, "name{label=\"value\"" },
        { "a{b=\"c\"}x", -EINVAL, "name{label=\"value\"" },
        { "a{b=\"\"}", -EINVAL, "label 'b' needs a value" },
        { "a{b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\",g=\"1\",h=\"1\",i=\"1\",j=\"1\"}", -E2BIG,
          "more than 8 labels" },
    };
    char text[EXPOSITION_SELECTOR_MAX + 2];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cases); i++) {
        AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
        struct exposition_selector chosen;
        struct aq_error err = { 0 };

        assert_row(exposition_selector_parse(cases[i].text, &arena, &chosen, &err) == cases[i].code
                       && (!cases[i].words || strstr(err.text, cases[i].words)),
                   "%s: %s", cases[i].text, err.text);
    }
    memset(text, 'a', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(exposition_selector_parse(text, NULL, NULL, NULL), -E2BIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_long_lines_are_broken),
        cmocka_unit_test(test_selectors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
