/* SPDX-License-Identifier: Apache-2.0 */
/* Coarse series of what was used: they are kept for 31 days. */
#include "world.h"

#include "store/series.h"
#include "manager/core/statistics/series.h"

#define OWNER "agent:node1"
#define MANY 600 /* more than one turn removes */

static int64_t date(const char *text)
{
    int64_t usec;

    assert_int_equal(clock_parse_date(text, &usec), 0);
    return usec;
}

static int add_rows(struct store_tx *tx, void *data, struct aq_error *err)
{
    static const char *const starts[] = {
        "2025-10-21T03:14:59.999999Z",
        "2025-10-21T03:15:00Z",
        "2025-10-21T03:15:00.000001Z",
        "2025-11-21T02:45:00Z",
    };
    struct series_row row = { .owner = OWNER, .data = "{}" };
    int r = 0;

    (void)data;
    for (size_t i = 0; r >= 0 && i < AQ_COUNT(starts); i++) {
        row.at_usec = row.until_usec = date(starts[i]);
        r = series_add(tx, &row, err);
    }
    for (int i = 0; r >= 0 && i < MANY; i++) {
        row.at_usec = row.until_usec = date("2025-10-01T00:00:00Z") + i;
        r = series_add(tx, &row, err);
    }
    return AQ_MIN(r, 0);
}

struct found {
    int64_t at_usec[8]; /* the oldest */
    size_t count;
};

static int keep_row(void *data, const struct series_row *row)
{
    struct found *found = data;

    if (found->count < AQ_COUNT(found->at_usec))
        found->at_usec[found->count] = row->at_usec;
    found->count++;
    return 0;
}

static int read_rows(struct store_tx *tx, void *data, struct aq_error *err)
{
    return series_read(tx, OWNER, 0, INT64_MAX, 2 * MANY, keep_row, data, err);
}

static struct found find_rows(void)
{
    struct found found = { .count = 0 };
    struct aq_error err = { 0 };

    if (store_call(world.core->store, read_rows, &found, &err) < 0)
        fail_msg("%s", err.text);
    return found;
}

static void what_is_older_than_a_month_goes(void **state)
{
    struct aq_error err = { 0 };
    struct found found;

    (void)state;
    if (store_call(world.core->store, add_rows, NULL, &err) < 0)
        fail_msg("%s", err.text);
    world_wall = date("2025-11-21T03:14:59Z");
    series_tick(world.core);
    settle();
    assert_int_equal(find_rows().count, MANY + 4); /* not before a quarter of an hour is over */

    world_wall = date("2025-11-21T03:15:00Z");
    do {
        series_tick(world.core);
        settle();
    } while (world.core->statistics.is_pruning);
    found = find_rows();
    assert_int_equal(found.count, 3);
    assert_int_equal(found.at_usec[0], date("2025-10-21T03:15:00Z"));
    assert_int_equal(found.at_usec[1], date("2025-10-21T03:15:00.000001Z"));
    assert_int_equal(found.at_usec[2], date("2025-11-21T02:45:00Z"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, world_begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_older_than_a_month_goes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
