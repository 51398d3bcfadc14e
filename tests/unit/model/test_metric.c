/* SPDX-License-Identifier: Apache-2.0 */
/* Samples and what is derived from them. */
#include "testing.h"

#include "base/clock.h"
#include "model/metric.h"

static const struct {
    double value;
    int decimals;
    const char *text;
} numbers[] = {
    { 0, 3, "0" },          { -0.0, 3, "0" },          { -0.0001, 3, "0" },
    { 1.5, 3, "1.5" },      { 100, 3, "100" },         { 1000, 2, "1000" },
    { 0.0625, 3, "0.062" }, { 0.1875, 3, "0.188" },    { 2.0 / 3, 3, "0.667" },
    { 50, 2, "50" },        { 12.345678, 2, "12.35" }, { 1e15, 3, "1000000000000000" },
    { -2.5, 3, "-2.5" },    { 10, 0, "10" },           { 0.9996, 3, "1" },
};

static void test_numbers(void **state)
{
    char buf[METRIC_NUMBER_MAX];

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(numbers); i++)
        assert_row(
            strcmp(metric_format(numbers[i].value, numbers[i].decimals, buf), numbers[i].text) == 0,
            "%s is %s", numbers[i].text, buf);
    assert_true(strlen(metric_format(-1.7e308, 3, buf)) < METRIC_NUMBER_MAX - 1);
}

static const struct {
    const char *what;
    struct metric_kind kind;
    double capacity;
    struct {
        double value;
        int sec;
    } samples[4];
    const char *text;
} rows[] = {
    { "a gauge without capacity",
      { "a", METRIC_BYTES, METRIC_VALUE, METRIC_MAX },
      -1,
      { { 7, 1 }, { 3, 2 } },
      "{\"current\":\"3\",\"capacity\":null,\"pct\":\"0.00\",\"unit_hint\":\"bytes\","
      "\"stats.max\":\"7\"}" },
    { "parts of bytes",
      { "a", METRIC_BYTES, METRIC_VALUE, METRIC_MAX },
      10.75,
      { { 7.75, 1 }, { 3.25, 2 } },
      "{\"current\":\"3\",\"capacity\":\"11\",\"pct\":\"27.27\",\"unit_hint\":\"bytes\","
      "\"stats.max\":\"8\"}" },
    { "more than there is",
      { "a", METRIC_BYTES, METRIC_VALUE, 0 },
      1000,
      { { 10000000, 1 } },
      "{\"current\":\"10000000\",\"capacity\":\"1000\",\"pct\":\"1000000\","
      "\"unit_hint\":\"bytes\"}" },
    { "a rate",
      { "cpu_util", METRIC_PERCENT, METRIC_RATE, METRIC_AVG | METRIC_MAX },
      1000,
      { { 1000, 1 }, { 1500, 2 } },
      "{\"current\":\"500\",\"capacity\":\"1000\",\"pct\":\"50\",\"unit_hint\":\"percent\","
      "\"stats.max\":\"500\",\"stats.avg\":\"500\"}" },
    { "the first sample of a rate",
      { "cpu_util", METRIC_PERCENT, METRIC_RATE, METRIC_MAX },
      1000,
      { { 1000, 1 } },
      "{\"current\":\"0\",\"capacity\":\"1000\",\"pct\":\"0\",\"unit_hint\":\"percent\","
      "\"stats.max\":\"0\"}" },
    { "a difference",
      { "cpu_util", METRIC_MSEC, METRIC_DIFF, 0 },
      1000,
      { { 100, 1 }, { 4100, 6 } },
      "{\"current\":\"4000\",\"capacity\":\"5000\",\"pct\":\"80\",\"unit_hint\":\"msec\"}" },
    { "the first sample of a difference",
      { "cpu_util", METRIC_MSEC, METRIC_DIFF, 0 },
      1000,
      { { 100, 1 } },
      "{\"current\":\"0\",\"capacity\":\"0\",\"pct\":\"0.00\",\"unit_hint\":\"msec\"}" },
    { "a counter with its rate",
      { "io_read", METRIC_BYTES, METRIC_VALUE, METRIC_PER_SEC },
      -1,
      { { 100, 1 }, { 200, 3 } },
      "{\"current\":\"200\",\"capacity\":null,\"pct\":\"0.00\",\"unit_hint\":\"bytes\","
      "\"stats.rate\":\"50\"}" },
    { "a counter that was reset",
      { "io_read", METRIC_BYTES, METRIC_VALUE, METRIC_PER_SEC },
      -1,
      { { 500, 1 }, { 50, 2 } },
      "{\"current\":\"50\",\"capacity\":null,\"pct\":\"0.00\",\"unit_hint\":\"bytes\","
      "\"stats.rate\":\"0\"}" },
    { "all of it",
      { "a", METRIC_CELSIUS, METRIC_VALUE, METRIC_STATS_ALL },
      120,
      { { 60, 1 }, { 30, 2 }, { 90, 4 } },
      "{\"current\":\"90\",\"capacity\":\"120\",\"pct\":\"75\",\"unit_hint\":\"Celsius\","
      "\"stats.min\":\"30\",\"stats.max\":\"90\",\"stats.avg\":\"60\",\"stats.rate\":\"30\"}" },
};

static void test_metrics(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
        struct jsonw w = jsonw_make(&text);
        struct metric m = { 0 };

        for (size_t s = 0; s < AQ_COUNT(rows[i].samples) && rows[i].samples[s].sec; s++)
            assert_true(metric_add(&m, &rows[i].kind, rows[i].samples[s].value, rows[i].capacity,
                                   rows[i].samples[s].sec * USEC_PER_SEC));
        metric_write(&m, &rows[i].kind, &w);
        assert_row(strcmp(text.data, rows[i].text) == 0, "%s: %s", rows[i].what, text.data);
    }
}

static void test_steps(void **state)
{
    const struct metric_kind kind = { "a", METRIC_COUNT, METRIC_VALUE, 0 };
    struct metric m = { 0 };

    (void)state;
    assert_true(metric_diff(&m) == 0 && metric_rate(&m) == 0);
    assert_true(metric_add(&m, &kind, 100, -1, 5));
    assert_true(metric_diff(&m) == 0);
    assert_true(metric_add(&m, &kind, 150, -1, 6));
    assert_true(metric_diff(&m) == 50);
    assert_false(metric_add(&m, &kind, 999, -1, 6)); /* not later */
    assert_true(metric_diff(&m) == 50);
    assert_true(metric_add(&m, &kind, 100, -1, 7));
    assert_true(metric_diff(&m) == 0);
    assert_int_equal(m.all.count, 3);
}

static void test_sums(void **state)
{
    struct metric_sum a = { 0 }, b = { 0 };

    (void)state;
    assert_true(metric_sum_avg(&a) == 0);
    metric_sum_merge(&a, &b);
    assert_int_equal(a.count, 0);
    metric_sum_add(&b, 4);
    metric_sum_add(&b, -2);
    metric_sum_merge(&a, &b);
    metric_sum_add(&a, 10);
    assert_true(a.min == -2 && a.max == 10 && metric_sum_avg(&a) == 4);
    assert_int_equal(a.count, 3);
}

static void test_keys(void **state)
{
    static const char *const good[] = { "a", "cpu_util", "cuda0_mem" };
    static const char *const bad[] = {
        "",    "_a",  "0a", "A",
        "a-b", "a b", "ä",  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(good); i++)
        assert_row(metric_key_is_valid(good[i]), "%s", good[i]);
    for (size_t i = 0; i < AQ_COUNT(bad); i++)
        assert_row(!metric_key_is_valid(bad[i]), "%s", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers), cmocka_unit_test(test_metrics),
        cmocka_unit_test(test_steps),   cmocka_unit_test(test_sums),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
