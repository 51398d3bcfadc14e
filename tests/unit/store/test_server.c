/* SPDX-License-Identifier: Apache-2.0 */
/* A database on a server: who writes, and what a lost connection leaves. */
#include "store_testing.h"

#include <sys/wait.h>
#include <time.h>

#include "store/lease.h"
#include "store/transaction.h"

/* ---- one manager ---- */

static int create(struct bench *b, const char *name, struct aq_error *err)
{
    struct event_batch *batch = event_batch_new();

    (void)add_session(batch, b, name, 1);
    return bench_commit(b, batch, err);
}

static void test_second_manager(void **state)
{
    struct bench *b = *state;
    struct store_conf conf = bench_conf(b);
    struct store *second = NULL;
    struct aq_error err = { 0 };
    char process[48];

    assert_int_equal(store_open(&conf, &second, &err), -EBUSY);
    assert_null(second);
    (void)snprintf(process, sizeof(process), "process %ld ", (long)getpid());
    assert_non_null(strstr(err.text, process));
    assert_non_null(strstr(err.text, "take-over"));
    assert_int_equal(create(b, "still-fine", NULL), 0);
    bench_close(b);
    conf.address = "manager.example.org:8081";
    assert_int_equal(store_open(&conf, &b->store, &err), 0);
    assert_int_equal(store_open(&conf, &second, &err), -EBUSY);
    assert_non_null(strstr(err.text, "the manager at manager.example.org:8081 has"));
}

struct loss {
    int count;
    struct aq_error err;
};

static void on_lost(void *data, const struct aq_error *err)
{
    struct loss *loss = data;

    loss->count++;
    loss->err = *err;
}

static void open_with_loss(struct bench *b, struct loss *loss)
{
    struct store_conf conf = bench_conf(b);

    bench_close(b);
    conf.wake_data = loss;
    conf.lost = on_lost;
    assert_int_equal(store_open(&conf, &b->store, NULL), 0);
}

/* What one that was taken over does when it wakes: nothing. */
static void test_take_over(void **state)
{
    struct bench *b = *state;
    struct bench other = *b;
    struct loss loss = { 0 };
    struct aq_error err = { 0 };
    AQ_CLEANUP(aq_freep) char *dump = NULL;

    open_with_loss(b, &loss);
    assert_int_equal(create(b, "before", NULL), 0);
    assert_int_equal(store_take_over(b->path, &err), 0);
    bench_open(&other);
    assert_int_equal(create(&other, "other", NULL), 0);
    assert_int_equal(create(b, "too-late", &err), -EOWNERDEAD);
    assert_non_null(strstr(err.text, "stopped writing"));
    assert_int_equal(create(b, "too-late-too", &err), -EOWNERDEAD);
    assert_int_equal(loss.count, 1);
    assert_int_equal(loss.err.code, EOWNERDEAD);
    assert_int_equal(create(&other, "other-2", NULL), 0);
    dump = bench_dump(&other);
    assert_non_null(strstr(dump, "before"));
    assert_non_null(strstr(dump, "other-2"));
    assert_null(strstr(dump, "too-late"));
    bench_close(&other);
}

/* ---- connections that are cut ---- */

static const char cut_all[] = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                              " WHERE datname = current_database() AND pid <> pg_backend_pid()";

static int list_all(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT COUNT(*) FROM sessions", &q, err);

    if (r < 0 || (r = sql_step(q, err)) <= 0)
        return r;
    *(int64_t *)data = sql_get_int(q);
    return 0;
}

static void on_read(void *data, int result, const struct aq_error *err)
{
    (void)data;
    if (result < 0)
        fail_msg("%s", err->text);
}

/* Whoever works on notices nothing. */
static void test_cut_between(void **state)
{
    struct bench *b = *state;
    int64_t count = 0;

    assert_int_equal(create(b, "first", NULL), 0);
    store_read(b->store, list_all, on_read, &count);
    store_flush(b->store);
    assert_int_equal(count, 1);
    bench_run_sql(b, cut_all);
    assert_int_equal(create(b, "second", NULL), 0);
    store_read(b->store, list_all, on_read, &count);
    store_flush(b->store);
    assert_int_equal(count, 2);
}

/* Once for each byte of the pipe, a little later. */
static void cut_in_child(const struct bench *b, int fd)
{
    struct sql *db = bench_open_sql(b);
    char byte;

    while (read(fd, &byte, 1) == 1) {
        (void)usleep((useconds_t)rand() % 8000);
        if (sql_run_script(db, cut_all, NULL) < 0)
            _exit(1);
    }
    _exit(0);
}

/* In the middle of commits: each is there once, whatever became of its answer. */
static void test_cut_while_writing(void **state)
{
    struct bench *b = *state;
    const int count = 100;
    int fds[2], status;
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    char name[32];
    pid_t pid;

    srand((unsigned)time(NULL));
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    if (pid == 0) {
        (void)close(fds[1]);
        cut_in_child(b, fds[0]);
    }
    (void)close(fds[0]);
    for (int i = 0; i < count; i++) {
        struct aq_error err = { 0 };

        assert_int_equal(write(fds[1], "", 1), 1);
        (void)snprintf(name, sizeof(name), "cut-%05d", i);
        if (create(b, name, &err) < 0)
            fail_msg("%s: %s", name, err.text);
    }
    (void)close(fds[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dump = bench_dump(b);
    for (int i = 0; i < count; i++) {
        (void)snprintf(name, sizeof(name), " cut-%05d ", i);
        assert_row(strstr(dump, name), "%s", name);
    }
}

/* ---- a server that forgot ---- */

/* A standby that lagged behind, say: commits that we know of are not there. */
static void test_went_back(void **state)
{
    struct bench *b = *state;
    struct loss loss = { 0 };
    struct aq_error err = { 0 };

    open_with_loss(b, &loss);
    for (int i = 0; i < 3; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "kept-%d", i);
        assert_int_equal(create(b, name, NULL), 0);
    }
    bench_run_sql(b, "UPDATE manager_lease SET beat = beat - 2");
    bench_run_sql(b, cut_all);
    assert_int_equal(create(b, "after", &err), -EOWNERDEAD);
    assert_non_null(strstr(err.text, "lacks 2 acknowledged commits"));
    assert_int_equal(create(b, "after-that", &err), -EOWNERDEAD);
    assert_int_equal(loss.count, 1);
}

/* A commit whose answer was lost, and whose caller was refused when the server
 * stayed away, is found done: what the manager knows is not what is there.
 */
static void test_went_on(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(sql_closep) struct sql *db = NULL;
    struct lease lease = { .epoch = 1, .beat = 7, .is_unsettled = true };
    struct store_tx tx = { .lease = &lease };
    struct aq_error err = { 0 };

    bench_close(b); /* its connection holds the lock */
    tx.db = db = bench_open_sql(b);
    bench_run_sql(b, "UPDATE manager_lease SET epoch = 1, beat = 8");
    assert_int_equal(lease_resume(&tx, &err), 1);
    assert_int_equal(lease.beat, 8);
    assert_false(lease.is_unsettled);
    lease.is_unsettled = lease.is_given_up = true;
    assert_int_equal(lease_resume(&tx, &err), 0);
    assert_false(lease.is_given_up);
    lease.is_unsettled = lease.is_given_up = true;
    bench_run_sql(b, "UPDATE manager_lease SET beat = 9");
    assert_int_equal(lease_resume(&tx, &err), -EOWNERDEAD);
    assert_non_null(strstr(err.text, "after its callers had been refused"));
    assert_true(lease.is_lost);
}

/* A session of ours that was lost ends before the row is believed: what it has not committed is
 * not done. While the server is at work for it, the lease stays unsettled.
 */
static void test_lost_session(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(sql_closep) struct sql *db = NULL, *lost = NULL, *holder = NULL;
    struct lease lease = { .epoch = 1, .beat = 7, .is_unsettled = true, .incarnation = "test" };
    struct store_tx tx = { .lease = &lease };
    struct aq_error err = { 0 };
    char session[LEASE_SESSION_MAX];
    pid_t pid;

    bench_close(b);
    bench_run_sql(b, "UPDATE manager_lease SET epoch = 1, beat = 7");
    lost = bench_open_session(b, lease_session_name("test", LEASE_WRITER, session));
    tx.db = db = bench_open_session(b, session);
    assert_int_equal(sql_run_script(lost, "BEGIN; UPDATE manager_lease SET beat = 8", &err), 0);
    assert_int_equal(lease_resume(&tx, &err), 0);
    assert_false(lease.is_unsettled);
    assert_true(sql_run_script(lost, "COMMIT", &err) < 0);

    lease.is_unsettled = true;
    holder = bench_open_sql(b);
    assert_int_equal(sql_run_script(holder, "SELECT pg_advisory_lock(5)", &err), 0);
    pid = fork();
    if (pid == 0) {
        struct sql *own = bench_open_session(b, session);

        _exit(sql_run_script(own,
                             "BEGIN; UPDATE manager_lease SET beat = 8;"
                             " SELECT pg_advisory_xact_lock(5); COMMIT",
                             NULL)
              != 0);
    }
    bench_await_sql(b, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                       " AND datname = current_database()");
    assert_int_equal(lease_resume(&tx, &err), -EHOSTDOWN);
    assert_true(lease.is_unsettled);
    assert_int_equal(sql_run_script(holder, "SELECT pg_advisory_unlock(5)", &err), 0);
    assert_int_equal(bench_reap(pid), 0);
    assert_int_equal(lease_resume(&tx, &err), 1);
    assert_int_equal(lease.beat, 8);
    assert_int_equal(lease.acked_beat, 8);
}

/* ---- databases that will not do ---- */

static void test_refused(void **state)
{
    struct bench *b = *state;
    struct store_conf conf = { .path = "postgresql://nobody@127.0.0.1:1/none?connect_timeout=2",
                               .key_path = b->key_path };
    struct store *store = NULL;
    struct aq_error err = { 0 };

    assert_int_equal(store_open(&conf, &store, &err), -EHOSTDOWN);
    assert_non_null(strstr(err.text, "cannot be reached"));
    assert_null(store);
    conf = (struct store_conf){ .path = b->path };
    assert_int_equal(store_open(&conf, &store, &err), -EINVAL);
    assert_non_null(strstr(err.text, "key file"));
    assert_int_equal(store_take_over("/tmp/aliquot.db", &err), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_second_manager, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_take_over, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_cut_between, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_cut_while_writing, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_went_back, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_went_on, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_lost_session, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_refused, bench_setup, bench_teardown),
    };

    if (!bench_is_server()) {
        (void)fputs("these tests need a PostgreSQL server: ./check postgres starts one\n", stderr);
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
