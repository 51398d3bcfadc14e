/* SPDX-License-Identifier: Apache-2.0 */
/* A database into another one: all of it, also after a kill on the way. */
#include "store_testing.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include "store/move.h"
#include "store/sql_module.h"
#include "store/transfer.h"

#define SESSIONS 3000

/* ---- the tables ---- */

/* Whoever adds a table adds it to the list. */
static void test_every_table_is_moved(void **state)
{
    struct bench *b = *state;
    const char *query = bench_is_server()
                            ? "SELECT table_name FROM information_schema.tables"
                              " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
                            : "SELECT name FROM sqlite_master WHERE type = 'table'"
                              " AND name NOT LIKE 'sqlite%'";
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    size_t found = 0, moved = 0;

    bench_close(b);
    db = bench_open_sql(b);
    assert_int_equal(sql_prepare_once(db, query, &q, NULL), 0);
    while (sql_step(q, NULL) > 0) {
        const char *name = sql_get_text(q);
        bool is_moved = strncmp(name, "schema_", 7) == 0 || strcmp(name, "manager_lease") == 0;

        for (size_t i = 0; !is_moved && transfer_table_name(i); i++)
            is_moved = strcmp(name, transfer_table_name(i)) == 0;
        assert_row(is_moved, "%s", name);
        found++;
    }
    while (transfer_table_name(moved))
        moved++;
    assert_int_equal(found, moved + 3);
}

/* ---- there and back ---- */

static void fill(struct bench *b)
{
    struct event_batch *batch = event_batch_new();

    (void)add_agent(batch, "i-1");
    for (int i = 0; i < SESSIONS; i++) {
        struct session *s;
        char name[32];

        (void)snprintf(name, sizeof(name), "moved-%04d", i);
        s = add_session(batch, b, name, 1 + (size_t)i % 3);
        if (i % 5 == 0)
            s->reason = strdup("says \"it's\" \xc3\xa4 ?");
    }
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static void run_on_file(const char *path, const char *script)
{
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;

    assert_int_equal(
        sql_open(&sql_sqlite, &(struct sql_conf){ .where = path, .cache_bytes = 65536 }, &db, NULL),
        0);
    assert_int_equal(sql_run_script(db, script, NULL), 0);
}

static int move(struct bench *b, const char *from, const char *to, struct aq_error *err)
{
    struct store_move move = { .from = from, .to = to, .key_path = b->key_path };

    return store_move(&move, err);
}

/* What a store with another path says that lives. */
static char *dump_of(const struct bench *b, const char *path)
{
    struct bench other = *b;
    char *dump;

    other.store = NULL;
    (void)snprintf(other.path, sizeof(other.path), "%s", path);
    if (store_open(&(struct store_conf){ .path = path, .key_path = b->key_path }, &other.store,
                   NULL)
        < 0)
        fail_msg("'%s' does not open", path);
    dump = bench_dump(&other);
    bench_close(&other);
    return dump;
}

static void test_there_and_back(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *first = aq_format("%s/first.db", b->dir);
    AQ_CLEANUP(aq_freep) char *before = NULL, *there = NULL;
    struct aq_error err = { 0 };

    fill(b);
    before = bench_dump(b);
    bench_close(b);
    if (move(b, b->path, first, &err) < 0)
        fail_msg("%s", err.text);
    there = dump_of(b, first);
    assert_string_equal(before, there);
    assert_int_equal(move(b, b->path, first, &err), -EEXIST);
    assert_int_equal(move(b, b->path, b->path, &err), -EINVAL);
    bench_open(b);
}

/* From a file, whatever the other one is. */
static void test_into(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *file = aq_format("%s/file.db", b->dir);
    AQ_CLEANUP(aq_freep) char *before = NULL, *there = NULL;
    struct bench source = *b;
    struct aq_error err = { 0 };

    (void)snprintf(source.path, sizeof(source.path), "%s", file);
    source.store = NULL;
    assert_int_equal(store_open(&(struct store_conf){ .path = file, .key_path = b->key_path },
                                &source.store, NULL),
                     0);
    {
        struct event_batch *batch = event_batch_new();

        add_accounts(batch, &source.user_id, &source.project_id);
        assert_int_equal(bench_commit(&source, batch, NULL), 0);
    }
    fill(&source);
    before = bench_dump(&source);
    bench_close(&source);
    if (move(b, file, b->path, &err) < 0)
        fail_msg("%s", err.text);
    there = dump_of(b, b->path);
    assert_string_equal(before, there);
}

/* ---- broken off ---- */

static void die_after(void *data, const char *table, int64_t done, int64_t total)
{
    int *left = data;

    (void)table;
    (void)done;
    (void)total;
    if (--*left == 0)
        _exit(7);
}

static void test_broken_off(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *target = aq_format("%s/target.db", b->dir);
    AQ_CLEANUP(aq_freep) char *before = NULL, *there = NULL;
    struct aq_error err = { 0 };
    struct store *store = NULL;

    fill(b);
    before = bench_dump(b);
    bench_close(b);
    for (int steps = 1; steps < 22; steps += 4) {
        pid_t pid = fork();
        int status;

        if (pid == 0) {
            int left = steps;
            struct store_move way = { .from = b->path,
                                      .to = target,
                                      .key_path = b->key_path,
                                      .report = die_after,
                                      .data = &left };

            (void)store_move(&way, NULL);
            _exit(0);
        }
        (void)uuid_random(); /* of the pool that was copied: the child's name for its sessions */
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(WEXITSTATUS(status), 7);
        assert_int_equal(store_open(&(struct store_conf){ .path = target, .key_path = b->key_path },
                                    &store, &err),
                         -EUCLEAN);
        assert_non_null(strstr(err.text, "unfinished copy"));
    }
    if (move(b, b->path, target, &err) < 0)
        fail_msg("%s", err.text);
    there = dump_of(b, target);
    assert_string_equal(before, there);
}

/* A copy that is not the same is found, and cannot be used. */
static void test_differs(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *target = aq_format("%s/target.db", b->dir);
    struct store_move dry = {
        .from = b->path, .to = target, .key_path = b->key_path, .dry_run = true
    };
    struct aq_error err = { 0 };
    struct stat st;

    fill(b);
    bench_close(b);
    assert_int_equal(store_move(&dry, &err), 0);
    assert_true(dry.rows > 3 * SESSIONS);
    assert_int_equal(move(b, b->path, target, &err), 0);
    run_on_file(target, "UPDATE manager_lease SET epoch = -1; DELETE FROM session_attempts;"
                        " DELETE FROM agent_certs; INSERT INTO agent_certs VALUES"
                        " ('zz', 'i-9', 1, 2, NULL)");
    assert_int_equal(move(b, b->path, target, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, "agent_certs: 0 rows, the copy has 1"));
    assert_int_equal(stat(target, &st), 0);
    bench_open(b);
}

static int setup_empty(void **state)
{
    struct bench *b = bench_new();

    b->user_id = uuid_random();
    b->project_id = uuid_random();
    *state = b;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_every_table_is_moved, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_there_and_back, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_into, setup_empty, bench_teardown),
        cmocka_unit_test_setup_teardown(test_broken_off, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_differs, bench_setup, bench_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
