/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of managers: joining, addresses that change, removal. */
#include "store_testing.h"

#include <stdio.h>
#include <string.h>

#include "store/manager_row.h"

struct listed {
    char text[512]; /* "name link version;" of each */
};

static int list_one(void *data, const struct manager_row *row)
{
    struct listed *listed = data;
    size_t len = strlen(listed->text);

    (void)snprintf(listed->text + len, sizeof(listed->text) - len, "%s %s %s;", row->name,
                   row->link, row->version);
    return 0;
}

static struct manager_row row_of(const char *name, const char *link)
{
    struct manager_row row = { .api = "http://h:8081", .version = "1", .joined_usec = 5 };

    (void)snprintf(row.name, sizeof(row.name), "%s", name);
    (void)snprintf(row.link, sizeof(row.link), "%s", link);
    return row;
}

static void assert_listed(struct store_tx *tx, const char *want)
{
    struct listed listed = { .text = "" };

    assert_int_equal(manager_row_list(tx, list_one, &listed, NULL), 0);
    assert_string_equal(listed.text, want);
}

static int use_rows(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct manager_row b = row_of("b", "b:1"), a = row_of("a", "a:1");
    int64_t epoch = 7, taken = 7;

    (void)data;
    assert_int_equal(manager_row_refresh(tx, &b, err), 1); /* the first one has no row yet */
    assert_int_equal(manager_row_join(tx, &a, err), 0);
    assert_listed(tx, "a a:1 1;b b:1 1;");
    a = row_of("a", "a:2");
    assert_int_equal(manager_row_refresh(tx, &a, err), 1);
    assert_listed(tx, "a a:2 1;b b:1 1;");
    assert_int_equal(manager_row_remove(tx, "c", err), 0);
    assert_int_equal(manager_row_remove(tx, "a", err), 1);
    assert_int_equal(manager_row_remove(tx, "a", err), 0);
    assert_listed(tx, "b b:1 1;");
    /* It does not come back by running, only by joining again. */
    assert_int_equal(manager_row_refresh(tx, &a, err), 0);
    assert_listed(tx, "b b:1 1;");
    assert_int_equal(manager_row_join(tx, &a, err), 0);
    assert_listed(tx, "a a:2 1;b b:1 1;");
    assert_int_equal(manager_row_read_epoch(tx, &epoch, &taken, err), 0);
    assert_true(epoch != 7);
    return 0;
}

static void test_rows(void **state)
{
    struct bench *b = *state;
    struct aq_error err = { 0 };

    assert_int_equal(store_call(b->store, use_rows, NULL, &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rows, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
