/* SPDX-License-Identifier: Apache-2.0 */
/* All metrics of one owner, and rows of a series. */
#include "testing.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/measured.h"

static const struct metric_kind mem = { "mem", METRIC_BYTES, METRIC_VALUE, METRIC_MAX };
static const struct metric_kind rate = { "net_rx", METRIC_BPS, METRIC_RATE, METRIC_AVG };

static void test_kinds(void **state)
{
    struct metric_kinds kinds = { .items = NULL };
    struct metric_kind other = mem;
    const struct metric_kind *first = metric_kinds_get(&kinds, &mem);

    (void)state;
    assert_non_null(first);
    assert_ptr_equal(metric_kinds_get(&kinds, &mem), first);
    other.stats = 0;
    assert_ptr_not_equal(metric_kinds_get(&kinds, &other), first);
    other.key = "not a key";
    assert_null(metric_kinds_get(&kinds, &other));
    for (int i = 0; i < METRIC_KINDS_MAX; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        other.key = key;
        (void)metric_kinds_get(&kinds, &other);
    }
    assert_int_equal(kinds.count, METRIC_KINDS_MAX);
    assert_string_equal(first->key, "mem");
    metric_kinds_done(&kinds);
}

static char *row_of(const struct measured *m)
{
    struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    measured_write_row(m, &w);
    return strbuf_steal(&text);
}

static void take(void *data, const struct measured_row_item *item)
{
    struct measured *m = data;
    static struct metric_kinds kinds; /* ends with the test */

    if (!item) {
        metric_kinds_done(&kinds);
        return;
    }
    measured_restore(m, &kinds, item);
}

static void test_rows(void **state)
{
    struct measured m = { .items = NULL }, later = { .items = NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    char *row;

    (void)state;
    assert_int_equal(measured_add(&m, &mem, 10, 100, 1 * USEC_PER_SEC), 0);
    assert_int_equal(measured_add(&m, &rate, 10, -1, 1 * USEC_PER_SEC), 0);
    assert_int_equal(measured_add(&m, &mem, 30, 100, 2 * USEC_PER_SEC), 0);
    assert_int_equal(measured_add(&m, &rate, 16, -1, 3 * USEC_PER_SEC), 0);
    assert_int_equal(m.recent_usec, USEC_PER_SEC);
    row = row_of(&m);
    assert_string_equal(row, "{\"mem\":[1,0,1,10,30,40,2],\"net_rx\":[4,1,4,3,3,3,1]}");
    measured_begin_row(&m);
    assert_int_equal(m.recent_usec, 0);
    free(row_of(&m));

    /* what a row says goes on counting after a restart, but is not shown as measured */
    assert_int_equal(measured_read_row(row, take, &later), 0);
    measured_write(&later, &w);
    assert_string_equal(text.data, "{}");
    assert_int_equal(measured_add(&later, &mem, 20, 100, 9 * USEC_PER_SEC), 0);
    assert_true(measured_find(&later, "mem")->metric.all.max == 30);
    assert_int_equal(measured_find(&later, "mem")->metric.all.count, 3);
    assert_null(measured_find(&later, "disk"));
    free(row);
    measured_done(&m);
    measured_done(&later);
    take(NULL, NULL);
}

static const char *const bad_rows[] = {
    "",
    "[]",
    "{\"mem\":1}",
    "{\"mem\":[1,0,1,10,30,40]}",
    "{\"mem\":[7,0,1,10,30,40,2]}",
    "{\"mem\":[1,3,1,10,30,40,2]}",
    "{\"mem\":[1,0,99,10,30,40,2]}",
    "{\"mem\":[1,0,1,1,1,1,0]}",
};

static void test_bad_rows(void **state)
{
    struct measured m = { .items = NULL };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(bad_rows); i++)
        assert_row(measured_read_row(bad_rows[i], take, &m) == -EINVAL, "%s", bad_rows[i]);
    assert_int_equal(m.count, 0);
}

static void test_bounds(void **state)
{
    struct measured m = { .items = NULL };
    struct metric_kinds kinds = { .items = NULL };

    (void)state;
    for (int i = 0; i <= MEASURED_MAX; i++) {
        struct metric_kind kind = mem;
        char key[16];

        (void)snprintf(key, sizeof(key), "k%d", i);
        kind.key = key;
        assert_int_equal(measured_add(&m, metric_kinds_get(&kinds, &kind), 1, -1, 1),
                         i < MEASURED_MAX ? 0 : -ENOSPC);
    }
    measured_done(&m);
    metric_kinds_done(&kinds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
