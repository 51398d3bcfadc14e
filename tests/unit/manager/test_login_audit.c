/* SPDX-License-Identifier: Apache-2.0 */
/* However many logins there are, few entries of the audit log say all of it. */
#include "testing.h"

#include <stdio.h>
#include <string.h>
#include <uv.h>

#include "base/clock.h"
#include "base/fs.h"
#include "manager/call/login_audit.h"

#define SEC USEC_PER_SEC
#define START (1000 * SEC)

static struct fixture {
    char dir[32], path[64];
    uv_loop_t loop;
    struct store *store;
    struct audit_trail *trail;
    struct login_audit *audit;
} f;

static int setup(void **state)
{
    struct store_conf conf = { .path = f.path };
    struct aq_error err = { 0 };

    (void)state;
    strcpy(f.dir, "/tmp/aliquot-audit-XXXXXX");
    if (!mkdtemp(f.dir) || uv_loop_init(&f.loop) < 0)
        return -1;
    (void)snprintf(f.path, sizeof(f.path), "%s/aliquot.db", f.dir);
    if (store_open(&conf, &f.store, &err) < 0) {
        print_error("%s\n", err.text);
        return -1;
    }
    f.trail = audit_trail_new(&f.loop, f.store);
    f.audit = login_audit_new(f.trail);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    login_audit_free(f.audit);
    audit_trail_free(f.trail);
    store_close(f.store);
    (void)uv_run(&f.loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&f.loop) < 0)
        return -1;
    return fs_remove_tree(AT_FDCWD, f.dir, NULL);
}

static void add(enum login_outcome outcome, const char *name, const char *address, int64_t now)
{
    const struct audit_entry entry = { .user_name = name, .address = address, .action = "login" };

    login_audit_add(f.audit, outcome, &entry, now);
}

static int read_all(struct store_tx *tx, void *data, struct aq_error *err)
{
    return store_list_audit_log(tx, &(struct store_query){ 0 }, data, err);
}

/* The newest first. */
static struct store_page *rows(void)
{
    struct store_page *page = NULL;
    struct aq_error err = { 0 };

    store_flush(f.store);
    if (store_call(f.store, read_all, &page, &err) < 0)
        fail_msg("%s", err.text);
    return page;
}

static int64_t times_of(const struct store_page *page, const char *outcome)
{
    int64_t sum = 0;

    for (size_t i = 0; i < page->count; i++)
        if (strcmp(page->audit_log[i].entry.outcome, outcome) == 0)
            sum += page->audit_log[i].entry.times;
    return sum;
}

static void test_the_first_is_written_at_once_and_the_others_a_minute_later(void **state)
{
    AQ_CLEANUP(store_page_freep) struct store_page *first = NULL;
    AQ_CLEANUP(store_page_freep) struct store_page *second = NULL;
    AQ_CLEANUP(store_page_freep) struct store_page *none = NULL;

    (void)state;
    for (int i = 0; i < 500; i++)
        add(LOGIN_FAILED, "ann", "192.0.2.1", START + i);
    login_audit_tick(f.audit, START + 59 * SEC);
    first = rows();
    assert_int_equal(first->count, 1);
    assert_int_equal(first->audit_log[0].entry.times, 1);
    assert_null(first->audit_log[0].entry.detail);
    login_audit_tick(f.audit, START + 60 * SEC);
    second = rows();
    assert_int_equal(second->count, 2);
    assert_int_equal(second->audit_log[0].entry.times, 499);
    assert_non_null(strstr(second->audit_log[0].entry.detail, "\"since\""));
    login_audit_tick(f.audit, START + 121 * SEC); /* nothing more: it is forgotten */
    assert_true(login_audit_is_idle(f.audit));
    none = rows();
    assert_int_equal(none->count, 2);
}

static void test_accounts_addresses_and_outcomes_are_told_apart(void **state)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;

    (void)state;
    add(LOGIN_FAILED, "ann", "192.0.2.1", START);
    add(LOGIN_FAILED, "bob", "192.0.2.1", START);
    add(LOGIN_FAILED, "ann", "192.0.2.2", START);
    add(LOGIN_BLOCKED, "ann", "192.0.2.1", START);
    add(LOGIN_OK, "ann", "192.0.2.1", START);
    page = rows();
    assert_int_equal(page->count, 5);
    assert_string_equal(page->audit_log[0].entry.outcome, "ok");
}

/* Names and addresses without end: none is lost from the sums, and few rows are written. */
static void test_a_flood_of_names_has_a_budget(void **state)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    const int each = 40, minutes = 60 * 24;
    char name[32];

    (void)state;
    for (int m = 0; m < minutes; m++) {
        for (int i = 0; i < each; i++) {
            (void)snprintf(name, sizeof(name), "u%d", m * each + i);
            add(LOGIN_FAILED, name, "192.0.2.1", START + m * 60 * SEC);
        }
        login_audit_tick(f.audit, START + m * 60 * SEC);
        if (m % 60 == 0)
            store_flush(f.store);
    }
    login_audit_finish(f.audit);
    page = rows();
    assert_int_equal(times_of(page, "failed"), minutes * each);
    assert_in_range(page->count, 1000, 1000 + 3 * minutes + minutes / 5 + 2);
    /* others have a budget of their own */
    add(LOGIN_OK, "ann", "192.0.2.9", START + minutes * 60 * SEC);
    store_page_free(AQ_TAKE(page));
    page = rows();
    assert_int_equal(times_of(page, "ok"), 1);
    assert_string_equal(page->audit_log[0].entry.user_name, "ann");
}

static void test_what_was_counted_is_written_at_the_end(void **state)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;

    (void)state;
    for (int i = 0; i < 7; i++)
        add(LOGIN_BLOCKED, "ann", "192.0.2.1", START);
    login_audit_finish(f.audit);
    page = rows();
    assert_int_equal(page->count, 2);
    assert_int_equal(times_of(page, "blocked"), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_the_first_is_written_at_once_and_the_others_a_minute_later, setup, teardown),
        cmocka_unit_test_setup_teardown(test_accounts_addresses_and_outcomes_are_told_apart, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_flood_of_names_has_a_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_was_counted_is_written_at_the_end, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
