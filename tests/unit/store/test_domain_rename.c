/* SPDX-License-Identifier: Apache-2.0 */
/* A domain is renamed in all rows that hold its name, and no row gets the old one afterwards. */
#include "store_testing.h"

#include "store/dotfile.h"
#include "store/query.h"
#include "store/template.h"
#include "store/resource_group_access.h"

static int rename_domain(struct bench *b, const char *from, const char *to, struct aq_error *err)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_DOMAIN_RENAMED, 3000);

    e->domain_renamed.from = strdup(from);
    e->domain_renamed.to = strdup(to);
    return bench_commit(b, batch, err);
}

static void save_domain(struct bench *b, const char *name, bool is_active)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_DOMAIN_SAVED, 2000);

    e->domain = (struct domain){ .name = strdup(name), .is_active = is_active };
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

/* What names a domain without a foreign key. */
struct attached {
    const struct bench *bench;
    const char *domain, *name;
};

static int add_dotfile(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct attached *a = data;

    return dotfile_create(tx, &(struct dotfile_owner){ DOTFILE_DOMAIN, a->domain },
                          &(struct dotfile){ .path = a->name, .permission = "644", .data = "x" },
                          err);
}

static int add_grant(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct attached *a = data;

    return resource_group_allow(tx, "default", ALLOW_DOMAIN, a->domain, err);
}

static int add_template(struct store_tx *tx, void *data, struct aq_error *err)
{
    const struct attached *a = data;

    return template_insert(tx,
                           &(struct template_row){ .id = uuid_random(),
                                                   .kind = TEMPLATE_SESSION,
                                                   .name = a->name,
                                                   .user_id = a->bench->user_id,
                                                   .domain = a->domain,
                                                   .text = "{}",
                                                   .parsed = "{}" },
                           err);
}

static const store_tx_fn attaching[] = { add_dotfile, add_grant, add_template };

static int count_attached(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    const struct attached *a = data;
    struct dotfile *files;
    int found = dotfile_list(tx, &(struct dotfile_owner){ DOTFILE_DOMAIN, a->domain }, &arena,
                             &files, err);

    return found + resource_group_is_allowed(tx, "default", ALLOW_DOMAIN, a->domain, err);
}

static int count_sessions(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    const struct attached *a = data;
    int r = store_list_sessions(tx, &(struct store_query){ .limit = 10, .domain = a->domain },
                                &page, err);

    return r < 0 ? r : (int)page->count;
}

static void test_rename(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct uuid ended = add_session(batch, b, "ended", 1)->id;
    struct attached old = { b, "default", "one" }, new = { b, "physics", "two" };
    AQ_CLEANUP(aq_freep) char *dump = NULL;

    (void)add_session(batch, b, "live", 1);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    batch = event_batch_new();
    (void)add_status(batch, &ended, SESSION_PENDING, SESSION_CANCELLED, 0, NULL);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(attaching); i++)
        assert_int_equal(store_call(b->store, attaching[i], &old, NULL), 0);

    assert_int_equal(rename_domain(b, "default", "physics", NULL), 0);
    for (int again = 0; again < 2; again++, bench_reopen(b)) {
        assert_int_equal(store_call(b->store, count_attached, &old, NULL), 0);
        assert_int_equal(store_call(b->store, count_attached, &new, NULL), 2);
        assert_int_equal(store_call(b->store, count_sessions, &old, NULL), 0);
        assert_int_equal(store_call(b->store, count_sessions, &new, NULL), 2);
    }
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "domain physics active=1\n"));
    assert_null(strstr(dump, "domain default"));

    /* Writers that found the domain under its old name. */
    old.name = "three";
    for (size_t i = 0; i < AQ_COUNT(attaching); i++) {
        assert_int_equal(store_call(b->store, attaching[i], &old, NULL), -EBUSY);
        assert_int_equal(store_call(b->store, attaching[i], &new, NULL), 0);
    }
    batch = event_batch_new();
    (void)add_session(batch, b, "late", 1);
    assert_int_equal(bench_commit(b, batch, NULL), -ENOENT);
}

static void test_names(void **state)
{
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct aq_error err = { 0 };
    struct event *e;

    save_domain(b, "taken", true);
    save_domain(b, "past", false);
    e = event_batch_add(batch, EVENT_ACCOUNT_PURGED, 2500);
    e->purge_account.kind = PURGE_DOMAIN;
    e->purge_account.name = strdup("past");
    assert_int_equal(bench_commit(b, batch, NULL), 0);

    assert_int_equal(rename_domain(b, "default", "taken", &err), -EEXIST);
    assert_string_equal(err.field, "name");
    assert_int_equal(rename_domain(b, "default", "default", NULL), -EEXIST);
    assert_int_equal(rename_domain(b, "default", "past", &err), -EEXIST);
    assert_non_null(strstr(err.text, "still on record"));
    assert_int_equal(rename_domain(b, "nowhere", "new", NULL), -ENOENT);
    assert_int_equal(rename_domain(b, "past", "new", NULL), -ENOENT);
    assert_int_equal(rename_domain(b, "taken", "free", NULL), 0);
    assert_int_equal(rename_domain(b, "default", "taken", NULL), 0);
    assert_int_equal(rename_domain(b, "taken", "default", NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rename, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_names, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
