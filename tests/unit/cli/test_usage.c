/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <jansson.h>

#include "cli/output/resource_usage.h"

static const struct output plain = { .format = OUTPUT_TABLE, .width = 80 };
static const struct output ascii = { .format = OUTPUT_TABLE, .width = 80, .ascii = true };

/* ---- of what was asked for ---- */

static const struct {
    const char *key, *metric, *slots, *used, *limit;
    double part;
} rows[] = {
    { "cpu_util", "{\"current\":\"250\",\"capacity\":\"1000\",\"unit_hint\":\"percent\"}",
      "{\"cpu\":\"2\"}", "0.25", "2", 0.125 },
    { "cpu_util", "{\"current\":\"1999.9\",\"capacity\":\"1000\",\"unit_hint\":\"percent\"}",
      "{\"cpu\":\"1.5\"}", "2", "1.5", 1.3332666 },
    { "cpu_util", "{\"current\":\"250\",\"capacity\":\"1000\",\"unit_hint\":\"percent\"}", "null",
      "0.25", "-", -1 },
    { "mem", "{\"current\":\"33554432\",\"capacity\":\"67108864\",\"unit_hint\":\"bytes\"}",
      "{\"cpu\":\"2\"}", "32 MiB", "64 MiB", 0.5 },
    { "cuda_util", "{\"current\":\"150\",\"capacity\":\"200\",\"unit_hint\":\"percent\"}", "{}",
      "150", "200", 0.75 },
    { "net_rx", "{\"current\":\"1024\",\"capacity\":null,\"unit_hint\":\"bps\"}", "{}", "1 KiB/s",
      "-", -1 },
};

static void test_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf used = STRBUF_INIT, limit = STRBUF_INIT;
        json_t *metric = json_loads(rows[i].metric, 0, NULL);
        json_t *slots = json_loads(rows[i].slots, JSON_DECODE_ANY, NULL);
        double part = usage_part(rows[i].key, metric, slots);

        usage_write_used(&plain, rows[i].key, metric, "current", &used);
        usage_write_limit(&plain, rows[i].key, metric, slots, &limit);
        assert_row(strcmp(used.data, rows[i].used) == 0, "%zu: %s", i, used.data);
        assert_row(strcmp(limit.data, rows[i].limit) == 0, "%zu: %s", i, limit.data);
        assert_row(part > rows[i].part - 1e-6 && part < rows[i].part + 1e-6, "%zu: %f", i, part);
        json_decref(metric);
        json_decref(slots);
    }
}

static void test_accelerators(void **state)
{
    size_t len = 0;

    (void)state;
    assert_true(usage_is_accelerator("cuda_util", &len));
    assert_int_equal(len, 4);
    assert_false(usage_is_accelerator("cpu_util", &len));
    assert_false(usage_is_accelerator("_util", &len));
    assert_false(usage_is_accelerator("cuda_mem", &len));
}

/* ---- pictures ---- */

static void test_timeline(void **state)
{
    static const double values[] = { 0, 0.1, 0.5, 0.99, 1, 3, -1 };
    AQ_CLEANUP(strbuf_donep) struct strbuf blocks = STRBUF_INIT, letters = STRBUF_INIT,
                                           nothing = STRBUF_INIT;

    (void)state;
    usage_write_timeline(&plain, values, AQ_COUNT(values), 1, &blocks);
    usage_write_timeline(&ascii, values, AQ_COUNT(values), 1, &letters);
    usage_write_timeline(&ascii, values, 3, 0, &nothing);
    assert_string_equal(blocks.data, "▁▁▅███▁");
    assert_string_equal(letters.data, "__=###_");
    assert_string_equal(nothing.data, "___");
}

static void test_cells_with_bars(void **state)
{
    static const struct column column = { "load", "LOAD", COLUMN_LOAD, 0 };
    static const struct {
        const char *load, *cell;
        int width;
    } cells[] = {
        { "{\"part\":0.5,\"text\":\"1/2\"}", "[###...] 1/2", 80 },
        { "{\"part\":0.5,\"text\":\"1/2\"}", "[#####.....] 1/2", 200 },
        { "{\"part\":2,\"text\":\"4/2\"}", "[###] 4/2", 40 },
        { "{\"part\":-1.0,\"text\":\"a\\u001bb\"}", "a?b", 80 },
        { "null", "-", 80 },
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(cells); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        const struct output o = { .width = cells[i].width };
        json_t *load = json_loads(cells[i].load, JSON_DECODE_ANY, NULL);

        cell_write(&o, &column, load, &out);
        assert_row(strcmp(out.data, cells[i].cell) == 0, "%zu: %s", i, out.data);
        json_decref(load);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_accelerators),
        cmocka_unit_test(test_timeline),
        cmocka_unit_test(test_cells_with_bars),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
