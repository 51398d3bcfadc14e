/* SPDX-License-Identifier: Apache-2.0 */
/* The job that removes old rows: each hour, and when it is asked for. */
#include "world.h"

#include "store/series.h"
#include "manager/core/retention/retention_job.h"

#define OWNER "agent:node1"
#define MANY 1200 /* more than one piece removes */
#define DAY (86400 * USEC_PER_SEC)

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

/* Until nothing is under way. */
static void finish(void)
{
    settle();
    while (world.core->retention.wanted) {
        (void)uv_run(&world.loop, UV_RUN_ONCE);
        settle();
    }
}

static int ask_for_run(void)
{
    struct answer a = { 0 };

    core_run_retention(world.core, 1u << RETENTION_SERIES, NULL, on_answer, &a);
    settle();
    return a.r;
}

static int begin(void **state)
{
    struct aq_error err = { 0 };

    if (world_begin(state) < 0)
        return -1;
    if (store_call(world.core->store, add_rows, NULL, &err) < 0)
        fail_msg("%s", err.text);
    world_wall = date("2025-11-21T03:15:00Z");
    return 0;
}

static void what_is_older_than_a_month_goes_in_the_next_hour(void **state)
{
    struct found found;

    (void)state;
    world.core->conf.retention_usec[RETENTION_SERIES] = 31 * DAY;
    retention_tick(world.core, world_mono);
    retention_tick(world.core, world_mono + 599 * USEC_PER_SEC);
    finish();
    assert_int_equal(find_rows().count, MANY + 4); /* not yet */

    retention_tick(world.core, world_mono + 601 * USEC_PER_SEC);
    finish();
    found = find_rows();
    assert_int_equal(found.count, 3);
    assert_int_equal(found.at_usec[0], date("2025-10-21T03:15:00Z"));
    assert_int_equal(found.at_usec[1], date("2025-10-21T03:15:00.000001Z"));
    assert_int_equal(found.at_usec[2], date("2025-11-21T02:45:00Z"));
    assert_int_equal(core_get_counts(world.core).removed[RETENTION_SERIES], MANY + 1);
    assert_true(world.core->retention.due_usec > world_mono + 3000 * USEC_PER_SEC);
}

static void what_is_kept_forever_stays(void **state)
{
    (void)state;
    assert_int_equal(ask_for_run(), 0);
    finish();
    assert_int_equal(find_rows().count, MANY + 4);
}

static void a_run_is_asked_for_and_joined(void **state)
{
    (void)state;
    world.core->conf.retention_usec[RETENTION_SERIES] = 31 * DAY;
    for (int i = 0; i < 3; i++)
        assert_int_equal(ask_for_run(), 0);
    assert_true(core_get_retention(world.core, RETENTION_SERIES).is_running);
    finish();
    assert_false(core_get_retention(world.core, RETENTION_SERIES).is_running);
    assert_int_equal(find_rows().count, 3);
}

/* A manager that ends in the middle goes on when it starts again. */
static void a_run_that_broke_off_goes_on_after_a_restart(void **state)
{
    size_t left;

    (void)state;
    world.conf.retention_usec[RETENTION_SERIES] = 31 * DAY;
    world.core->conf.retention_usec[RETENTION_SERIES] = 31 * DAY;
    assert_int_equal(ask_for_run(), 0);
    left = find_rows().count;
    assert_true(left > 3 && left < MANY + 4);
    restart_core();
    world.core->retention.due_usec = world_mono;
    retention_tick(world.core, world_mono);
    finish();
    assert_int_equal(find_rows().count, 3);
    assert_clean();
}

static void nothing_goes_while_a_backup_is_being_restored(void **state)
{
    (void)state;
    world.core->conf.retention_usec[RETENTION_SERIES] = 31 * DAY;
    world.core->orphans.restored_usec = 1;
    world.core->retention.due_usec = world_mono;
    retention_tick(world.core, world_mono);
    assert_int_equal(ask_for_run(), -EBUSY);
    finish();
    assert_int_equal(find_rows().count, MANY + 4);
    world.core->orphans.restored_usec = 0;
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin, world_end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_older_than_a_month_goes_in_the_next_hour),
        TEST(what_is_kept_forever_stays),
        TEST(a_run_is_asked_for_and_joined),
        TEST(a_run_that_broke_off_goes_on_after_a_restart),
        TEST(nothing_goes_while_a_backup_is_being_restored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
