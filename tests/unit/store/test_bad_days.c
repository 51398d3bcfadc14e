/* SPDX-License-Identifier: Apache-2.0 */
/* Kills, full disks, locks and damage: what was acknowledged stays, and the
 * store says what is wrong.
 */
#include "store_testing.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/pace.h"
#include "store/move.h"
#include "store/query.h"
#include "store/transaction.h"

/* ---- SIGKILL in the middle of commits ---- */

#define OUTSTANDING 8

struct flood {
    struct bench *bench;
    int fd; /* gets the row number of each session once it is acknowledged */
    int next;
};

static void on_acknowledged(void *data, int result, const struct aq_error *err,
                            struct event_batch *batch);

static void flood_one(struct flood *f)
{
    struct event_batch *batch = event_batch_new();
    char name[40];

    (void)snprintf(name, sizeof(name), "flood-%ld-%d", (long)getpid(), f->next++);
    (void)add_session(batch, f->bench, name, 2);
    store_commit(f->bench->store, batch, on_acknowledged, f);
}

static void on_acknowledged(void *data, int result, const struct aq_error *err,
                            struct event_batch *batch)
{
    struct flood *f = data;
    int64_t row = batch->events[0].session.row;

    (void)err;
    if (result < 0 || write(f->fd, &row, sizeof(row)) != (ssize_t)sizeof(row))
        _exit(3);
    event_batch_free(batch);
    flood_one(f);
}

static void flood(struct bench *b, int fd)
{
    struct flood f = { .bench = b, .fd = fd };

    for (int i = 0; i < 32; i++)
        (void)uuid_random(); /* past the random bytes that the fork copied */
    bench_open(b);
    for (int i = 0; i < OUTSTANDING; i++)
        flood_one(&f);
    for (;;)
        store_dispatch(b->store);
}

struct presence {
    const int64_t *rows;
    size_t count, found;
};

static int look_for(void *data, struct event *e, struct aq_error *err)
{
    struct presence *p = data;

    (void)err;
    if (e->kind != EVENT_SESSION_CREATED)
        return 0;
    assert_int_equal(e->session.kernel_count, 2);
    for (size_t i = 0; i < p->count; i++)
        p->found += p->rows[i] == e->session.row;
    return 0;
}

static int audit(struct store_tx *tx, void *data, struct aq_error *err)
{
    int found = store_audit_ledger(tx, data, err);

    return found < 0 ? found : found + store_audit_file(tx, data, err);
}

static void test_killed(void **state)
{
    struct bench *b = *state;
    unsigned seed = getenv("SEED") ? (unsigned)atoi(getenv("SEED")) : (unsigned)time(NULL);
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;
    static int64_t rows[8 * 300];
    size_t count = 0;

    print_message("# SEED=%u\n", seed);
    srand(seed);
    for (int round = 0; round < 8; round++) {
        size_t want = count + 1 + (size_t)rand() % 200;
        struct presence p = { .rows = rows };
        int fds[2];
        pid_t pid;

        bench_close(b);
        assert_int_equal(pipe(fds), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            flood(b, fds[1]);
        (void)close(fds[1]);
        while (count < want)
            assert_int_equal(read(fds[0], &rows[count++], sizeof(rows[0])), sizeof(rows[0]));
        (void)kill(pid, SIGKILL);
        while (read(fds[0], &rows[count], sizeof(rows[0])) == (ssize_t)sizeof(rows[0]))
            count++;
        (void)close(fds[0]);
        assert_int_equal(waitpid(pid, NULL, 0), pid);

        bench_open(b);
        p.count = count;
        assert_int_equal(store_load(b->store, look_for, &p, NULL), 0);
        assert_int_equal(p.found, count);
        assert_int_equal(store_call(b->store, audit, &findings, NULL), 0);
    }
}

/* ---- a full disk ---- */

static int try_create(struct bench *b, const char *name, size_t kernels)
{
    struct event_batch *batch = event_batch_new();

    (void)add_session(batch, b, name, kernels);
    return bench_commit(b, batch, NULL);
}

static void fill_and_recover(struct bench *b)
{
    AQ_CLEANUP(aq_freep) char *wal = aq_format("%s-wal", b->path), *dump = NULL;
    struct outcome outcomes[3] = { 0 };
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    struct stat st;

    (void)signal(SIGXFSZ, SIG_IGN);
    bench_open(b);
    assert_int_equal(try_create(b, "before", 1), 0);
    assert_int_equal(stat(wal, &st), 0);
    limit.rlim_cur = (rlim_t)st.st_size + 8192;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int i = 0; i < 3; i++) {
        struct event_batch *batch = event_batch_new();
        char name[16];

        (void)snprintf(name, sizeof(name), "full-%d", i);
        (void)add_session(batch, b, name, 50);
        store_commit(b->store, batch, on_committed, &outcomes[i]);
    }
    store_flush(b->store);
    for (int i = 0; i < 3; i++)
        assert_true(outcomes[i].came && outcomes[i].result < 0);
    limit.rlim_cur = RLIM_INFINITY;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(try_create(b, "after", 1), 0);
    bench_reopen(b);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "before"));
    assert_non_null(strstr(dump, "after"));
    assert_null(strstr(dump, "full-"));
    bench_close(b);
}

static void test_full_disk(void **state)
{
    struct bench *b = *state;
    int status;
    pid_t pid;

    bench_close(b);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fill_and_recover(b);
        _exit(42); /* a failed assertion exits otherwise */
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

/* ---- locks ---- */

static void read_at(const char *path, char *out, size_t len)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

    assert_true(read(fd, out, len) > 0);
}

static void test_second_manager(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *lock = aq_format("%s.lock", b->path);
    const struct store_conf conf = bench_conf(b);
    struct store *second = NULL;
    struct aq_error err = { 0 };
    char pid[32], mark[64] = "";

    assert_int_equal(store_open(&conf, &second, &err), -EBUSY);
    assert_null(second);
    (void)snprintf(pid, sizeof(pid), "process %ld ", (long)getpid());
    assert_non_null(strstr(err.text, pid));
    assert_int_equal(try_create(b, "still-fine", 1), 0);
    bench_close(b);
    read_at(lock, mark, sizeof(mark) - 1);
    assert_non_null(strstr(mark, "clean end"));
    bench_open(b);
}

static void test_locked(void **state)
{
    struct bench *b = *state;
    struct sql *other = NULL;
    struct event_batch *batch = event_batch_new();
    struct aq_error err = { 0 };

    other = bench_open_sql(b);
    assert_int_equal(sql_run_script(other, "BEGIN IMMEDIATE", NULL), 0);
    (void)add_session(batch, b, "locked-out", 1);
    assert_int_equal(bench_commit(b, batch, &err), -EBUSY);
    assert_non_null(strstr(err.text, "another program"));
    assert_int_equal(sql_run_script(other, "ROLLBACK", NULL), 0);
    assert_int_equal(try_create(b, "locked-out", 1), 0);
    sql_close(other);
}

/* ---- damage ---- */

static void write_at(const char *path, off_t at, size_t len)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
    char *junk = malloc(len);

    memset(junk, 0xa5, len);
    assert_int_equal(pwrite(fd, junk, len, at), (ssize_t)len);
    free(junk);
}

static void test_damage(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *lock = aq_format("%s.lock", b->path);
    const struct store_conf conf = bench_conf(b);
    struct aq_error err = { 0 };

    bench_close(b);
    write_at(b->path, 5 * 4096, 3 * 4096);
    write_at(lock, 0, 1); /* as after an unclean end */
    assert_int_equal(store_open(&conf, &b->store, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, "backup"));
    write_at(b->path, 0, 100);
    assert_int_equal(store_open(&conf, &b->store, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, b->path));
    assert_null(b->store);
}

/* ---- audits ---- */

struct tamper {
    const char *damage;
    struct strbuf *findings;
    int found;
};

/* Damage, look, and undo by failing. */
static int tamper(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct tamper *t = data;

    assert_int_equal(sql_run_script(tx->db, t->damage, err), 0);
    t->found = store_audit_ledger(tx, t->findings, err);
    return -ECANCELED;
}

static void test_audit_finds(void **state)
{
    static const struct {
        const char *damage, *finding;
    } rows[] = {
        { "UPDATE kernels SET status = 'TERMINATED'", "holds resources" },
        { "UPDATE allocations SET amount = 5 WHERE slot = 'cpu'", "another amount" },
        { "UPDATE allocations SET free_at = 1 WHERE slot = 'mem'", "another amount" },
        { "UPDATE allocations SET agent_id = 'i-2'", "holds cpu on 'i-2'" },
        { "UPDATE kernels SET agent_id = NULL", "has no agent" },
        { "UPDATE sessions SET status = 'TERMINATED', terminated_at = 1",
          "belongs to a session that has ended" },
        { "UPDATE agents SET available = '{\"cpu\":999999,\"mem\":1073741824}'",
          "agent 'i-1': 1000000 of cpu are held, it offers 999999" },
        { "DELETE FROM agents", "it offers 0" },
    };
    struct bench *b = *state;
    struct event_batch *batch = event_batch_new();
    struct session *s = add_session(batch, b, "held", 1);
    struct uuid id = s->id, kernel = s->kernels[0].id;
    AQ_CLEANUP(strbuf_donep) struct strbuf findings = STRBUF_INIT;

    (void)add_agent(batch, "i-1");
    add_kernel_status(batch, &id, &kernel, KERNEL_PENDING, KERNEL_SCHEDULED, 0)
        ->kernel_status.agent_id = strdup("i-1");
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(store_call(b->store, audit, &findings, NULL), 0);
    for (size_t i = 0; i < AQ_COUNT(rows); i++) {
        struct tamper t = { .damage = rows[i].damage, .findings = &findings };

        strbuf_clear(&findings);
        assert_int_equal(store_call(b->store, tamper, &t, NULL), -ECANCELED);
        assert_row(t.found > 0, "%s", rows[i].damage);
        assert_row(strstr(findings.data, rows[i].finding), "%s: %s", rows[i].damage, findings.data);
    }
}

/* ---- backup ---- */

static void test_backup(void **state)
{
    struct bench *b = *state;
    struct bench copy = { 0 };
    AQ_CLEANUP(aq_freep) char *key = aq_format("%s.key", b->path), *copied_key = NULL,
                              *before = NULL, *after = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf bytes = STRBUF_INIT;
    struct stat st;

    assert_int_equal(try_create(b, "saved", 3), 0);
    (void)snprintf(copy.path, sizeof(copy.path), "%s/copy.db", b->dir);
    assert_int_equal(store_copy(b->path, copy.path, NULL, NULL), 0);
    assert_int_equal(stat(copy.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(store_copy(b->path, copy.path, NULL, NULL), -EEXIST);

    before = bench_dump(b);
    assert_int_equal(fs_read(AT_FDCWD, key, 64, &bytes, NULL), 0);
    copied_key = aq_format("%s.key", copy.path);
    assert_int_equal(fs_write_atomic(AT_FDCWD, copied_key, bytes.data, bytes.len, 0600, NULL), 0);
    bench_open(&copy);
    after = bench_dump(&copy);
    assert_string_equal(before, after);
    bench_close(&copy);
}

static int add_filler(struct store_tx *tx, void *data, struct aq_error *err)
{
    return sql_run_script(tx->db, data, err);
}

/* Others commit whenever the copy looks at the clock. */
static struct {
    struct bench *bench;
    pthread_t thread;
    int64_t now;
    int steps;
    bool is_busy;
} other;

static int64_t commit_meanwhile(void *data)
{
    char name[32];

    (void)data;
    if (other.is_busy || !pthread_equal(other.thread, pthread_self()))
        return other.now;
    other.is_busy = true;
    assert_true(++other.steps < 200);
    (void)snprintf(name, sizeof(name), "meanwhile-%d", other.steps);
    assert_int_equal(try_create(other.bench, name, 1), 0);
    other.is_busy = false;
    return other.now += 3 * USEC_PER_MSEC;
}

static int64_t read_wall_clock(void *data)
{
    (void)data;
    return 1700000000 * USEC_PER_SEC;
}

/* It ends, and has what was there when it began. */
static void test_copy_with_pauses(void **state)
{
    struct bench *b = *state;
    const struct clock clock = { .realtime_usec = read_wall_clock,
                                 .monotonic_usec = commit_meanwhile };
    AQ_CLEANUP(aq_freep) char *copy = aq_format("%s/copy.db", b->dir),
                              *key = aq_format("%s.key", b->path);
    char filler[] = "CREATE TABLE filler (bytes BLOB);"
                    "INSERT INTO filler VALUES (zeroblob(4000000))";
    int64_t rows = 0, later = 0;
    struct pace pace = { 0 };

    assert_int_equal(store_call(b->store, add_filler, filler, NULL), 0);
    other.bench = b;
    other.thread = pthread_self();
    clock_set(&clock);
    assert_int_equal(store_copy(b->path, copy, &pace, NULL), 0);
    clock_set(NULL);
    assert_true(other.steps > 3);
    assert_int_equal(store_verify(copy, key, &rows, NULL), 0);
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(store_copy(b->path, copy, NULL, NULL), 0);
    assert_int_equal(store_verify(copy, key, &later, NULL), 0);
    assert_true(later > rows);
}

/* ---- locks of this process ---- */

#define INDEX_LOCK 128 /* the byte that each process with the index open has locked */

static bool is_index_locked(int fd)
{
    struct flock lock = { .l_type = F_WRLCK, .l_start = INDEX_LOCK, .l_len = 1 };

    assert_int_equal(fcntl(fd, F_OFD_GETLK, &lock), 0);
    return lock.l_type != F_UNLCK;
}

/* A connection that cannot be opened leaves the others their locks on the log's index: without
 * them another program would begin the index anew.
 */
static void test_failed_reader(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(aq_freep) char *log = aq_format("%s-wal", b->path),
                              *away = aq_format("%s/w", b->dir);
    AQ_CLEANUP(aq_freep) char *index = aq_format("%s-shm", b->path);
    const struct sql_conf conf = { .where = b->path, .read_only = true };
    int fd = open(index, O_RDWR | O_CLOEXEC);
    struct aq_error err = { 0 };
    struct sql *reader;

    assert_true(fd >= 0 && is_index_locked(fd));
    assert_int_equal(rename(log, away), 0);
    assert_int_equal(mkdir(log, 0700), 0);
    assert_int_equal(sql_open(&sql_sqlite, &conf, &reader, &err), -EACCES);
    assert_true(is_index_locked(fd));
    assert_int_equal(rmdir(log), 0);
    assert_int_equal(rename(away, log), 0);
    bench_close(b);
    aq_closep(&fd); /* last: it drops the locks */
    bench_open(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_killed, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_audit_finds, bench_setup, bench_teardown),
        /* about files */
        cmocka_unit_test_setup_teardown(test_full_disk, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_second_manager, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_failed_reader, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_locked, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_damage, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_backup, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_copy_with_pauses, bench_setup, bench_teardown),
    };

    return BENCH_RUN(tests, 7);
}
