/* SPDX-License-Identifier: Apache-2.0 */
/* The schema: made from nothing, kept, refused when it is not ours. */
#include "store_testing.h"

#include "store/migrate.h"

static const struct migration two[] = {
    { 1, "0001_one", "aa", "CREATE TABLE one (a INTEGER);" },
    { 2, "0002_two", "bb", "CREATE TABLE two (a INTEGER); INSERT INTO one VALUES (7);" },
};

static int64_t ask(struct sql *db, const char *query)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;

    if (sql_prepare_once(db, query, &q, NULL) < 0 || sql_step(q, NULL) <= 0)
        return -1;
    return sql_get_int(q);
}

static struct sql *open_empty(void)
{
    struct sql *db = NULL;

    assert_int_equal(sql_open(&sql_sqlite,
                              &(struct sql_conf){ .where = ":memory:", .cache_bytes = 65536 }, &db,
                              NULL),
                     0);
    return db;
}

static void test_from_nothing(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_empty();

    (void)state;
    assert_int_equal(migrate(db, two, 1, NULL), 0);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM one"), 0);
    assert_int_equal(migrate(db, two, 2, NULL), 0);
    assert_int_equal(migrate(db, two, 2, NULL), 0);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM one"), 1);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM schema_migrations"), 2);
    assert_int_equal(ask(db, "SELECT applied_at > 0 FROM schema_migrations"), 1);
}

/* Programs of neighbouring versions serve a database in turn, unless a migration says otherwise. */
static void test_newer(void **state)
{
    static const struct migration list[] = {
        { 1, "0001_one", "aa",
          "CREATE TABLE schema_readers (oldest INTEGER); INSERT INTO schema_readers VALUES (1);" },
        { 2, "0002_two", "bb", "-- Adds.\nCREATE TABLE two (a INTEGER);\n-- readers: 2\n" },
        { 3, "0003_three", "cc",
          "-- Older programs\n-- readers: 0003\n-- fill no b.\nCREATE TABLE three (b INTEGER);\n" },
    };
    AQ_CLEANUP(sql_closep) struct sql *db = open_empty();
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(migrate(db, list, 2, NULL), 0);
    assert_int_equal(migrate_count_due(db, list, 3, NULL), 1);
    assert_int_equal(migrate_count_due(db, list, 1, NULL), 0);
    assert_int_equal(migrate(db, list, 1, NULL), 0);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM schema_migrations"), 2);
    assert_int_equal(migrate_check(db, list, 1, &err), -EPROTO); /* it copies tables */
    assert_non_null(strstr(err.text, "of a newer version"));
    assert_int_equal(migrate(db, list, 3, NULL), 0);
    for (size_t count = 1; count < 3; count++) {
        assert_int_equal(migrate(db, list, count, &err), -EPROTO);
        assert_non_null(strstr(err.text, "newer program"));
        assert_non_null(strstr(err.text, "0003_three"));
        assert_int_equal(migrate_count_due(db, list, count, NULL), -EPROTO);
    }
    assert_int_equal(migrate(db, list, 3, NULL), 0);
}

static void test_tampered_refused(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_empty();
    struct migration other[2] = { two[0], two[1] };
    struct aq_error err = { 0 };

    (void)state;
    assert_int_equal(migrate(db, two, 2, NULL), 0);
    other[0].checksum = "cc";
    assert_int_equal(migrate(db, other, 2, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, "0001_one"));
}

static void test_half_is_undone(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_empty();
    struct migration broken[2] = { two[0], two[1] };
    struct aq_error err = { 0 };

    (void)state;
    broken[1].script = "CREATE TABLE half (a INTEGER); CREATE TABLE one (a INTEGER);";
    assert_true(migrate(db, broken, 2, &err) < 0);
    assert_non_null(strstr(err.text, "migration '0002_two'"));
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM schema_migrations"), 1);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM half"), -1);
    assert_int_equal(migrate(db, two, 2, NULL), 0);
}

/* The real ones: numbered without a gap, and a database of theirs opens again. */
static void test_ours(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    const struct store_conf conf = bench_conf(b);
    struct store *store = NULL;
    struct aq_error err = { 0 };

    for (size_t i = 0; i < store_migration_count; i++) {
        assert_int_equal(store_migrations[i].number, i + 1);
        assert_int_equal(strlen(store_migrations[i].checksum), 64);
    }
    bench_close(b);
    db = bench_open_sql(b);
    assert_int_equal(sql_run_script(db,
                                    "UPDATE schema_migrations SET checksum = 'x' WHERE"
                                    " number = 1",
                                    NULL),
                     0);
    assert_int_equal(store_open(&conf, &store, &err), -EUCLEAN);
    assert_null(store);
    assert_int_equal(sql_run_script(db,
                                    "INSERT INTO schema_migrations VALUES"
                                    " (9999, '9999_later', 'x', 1)",
                                    NULL),
                     0);
    assert_true(store_open(&conf, &store, &err) < 0);
    assert_null(store);
}

/* A database as it was before the migration of that name. */
static struct sql *open_before(const char *name)
{
    struct sql *db = open_empty();
    size_t before = 0;

    while (strstr(store_migrations[before].name, name) == NULL)
        before++;
    assert_int_equal(migrate(db, store_migrations, before, NULL), 0);
    return db;
}

/* What was a setting goes into the configuration tree. */
static void test_settings_become_keys(void **state)
{
    AQ_CLEANUP(sql_closep) struct sql *db = open_before("create_config_entries");

    (void)state;
    assert_int_equal(sql_run_script(db,
                                    "INSERT INTO settings (key, value) VALUES"
                                    " ('manager.status', 'frozen'), ('manager.announcement', ''),"
                                    " ('cluster.id', 'x')",
                                    NULL),
                     0);
    assert_int_equal(migrate(db, store_migrations, store_migration_count, NULL), 0);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM config_entries WHERE key = 'manager/status'"
                             " AND value = 'frozen'"),
                     1);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM config_entries"), 1);
    assert_int_equal(ask(db, "SELECT COUNT(*) FROM settings"), 1);
}

/* The default policy gets a limit of pending sessions, unless it has one; others stay. */
static void test_pending_sessions_are_limited(void **state)
{
    static const struct {
        const char *name;
        int before, after;
    } rows[] = {
        { "default", 0, 100000 }, { "default", -1, 100000 }, { "default", 7, 7 }, { "lab", 0, 0 }
    };

    (void)state;
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(sql_closep) struct sql *db = open_before("limit_pending_sessions");
        AQ_CLEANUP(aq_freep) char *insert = aq_format(
            "INSERT INTO keypair_policies (name, unlimited_unspecified, total_slots,"
            " max_session_lifetime_sec, idle_timeout_sec, max_concurrent_sessions,"
            " max_containers_per_session, max_pending_sessions, max_priority, created_at)"
            " VALUES ('%s', 1, '{}', 0, 0, 0, 0, %d, 100, 1)",
            rows[i].name, rows[i].before);

        assert_int_equal(sql_run_script(db, insert, NULL), 0);
        assert_int_equal(migrate(db, store_migrations, store_migration_count, NULL), 0);
        assert_int_equal(ask(db, "SELECT max_pending_sessions FROM keypair_policies"),
                         rows[i].after);
    }
}

/* What a time limit was is a member of the spec; what is no spec stays. */
static void test_batch_timeouts_are_in_specs(void **state)
{
    static const struct {
        const char *spec; /* in SQL */
        int64_t timeout;
        const char *after; /* NULL = null */
    } rows[] = {
        { "'{\"image\":\"sh\",\"environ\":{\"B\":\"?\",\"A\":\"\"}}'", INT64_C(90000000),
          "{\"batch_timeout_usec\":90000000,\"image\":\"sh\",\"environ\":{\"B\":\"?\",\"A\":\"\"}}" },
        { "'{\"image\":\"sh\"}'", 0, "{\"image\":\"sh\"}" },
        { "'[damaged'", 5, "[damaged" },
        { "NULL", 5, NULL },
    };
    AQ_CLEANUP(sql_closep) struct sql *db = open_before("move_batch_timeout");
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;

    (void)state;
    assert_int_equal(sql_run_script(db, "PRAGMA foreign_keys = OFF", NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        AQ_CLEANUP(aq_freep) char *insert = aq_format(
            "INSERT INTO sessions (seq, id, name, type, status, version, result, priority,"
            " user_id, project_id, access_key, domain, kernel_count, spec, forced, created_at,"
            " status_changed_at, batch_timeout) VALUES (%zu, %zu, 'job-%zu', 'batch', 'PENDING', 1,"
            " 'UNDEFINED', 10, 'u', 'p', 'k', 'd', 1, %s, 0, 1, 1, %lld)",
            i, i, i, rows[i].spec, (long long)rows[i].timeout);

        assert_int_equal(sql_run_script(db, insert, NULL), 0);
    }
    assert_int_equal(migrate(db, store_migrations, store_migration_count, NULL), 0);
    assert_int_equal(sql_prepare_once(db, "SELECT spec FROM sessions ORDER BY seq", &q, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        const char *spec;

        assert_int_equal(sql_step(q, NULL), 1);
        spec = sql_get_text(q);
        assert_row(rows[i].after ? spec && strcmp(spec, rows[i].after) == 0 : !spec, "%s", spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_nothing),
        cmocka_unit_test(test_newer),
        cmocka_unit_test(test_tampered_refused),
        cmocka_unit_test(test_half_is_undone),
        cmocka_unit_test(test_settings_become_keys),
        cmocka_unit_test(test_pending_sessions_are_limited),
        cmocka_unit_test(test_batch_timeouts_are_in_specs),
        cmocka_unit_test_setup_teardown(test_ours, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
