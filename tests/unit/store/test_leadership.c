/* SPDX-License-Identifier: Apache-2.0 */
/* Who leads: what a standby sees, when it may take over, and what becomes of the former leader. */
#include "store_testing.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "store/leadership.h"
#include "store/lease.h"
#include "store/lease_keeper.h"
#include "store/transaction.h"

static struct leader_claim claim_of(const char *name)
{
    struct leader_claim claim = { .link = "10.0.0.1:8082",
                                  .api = "https://one.example.org:8081",
                                  .version = "1.2" };
    struct uuid id = uuid_random();

    (void)snprintf(claim.name, sizeof(claim.name), "%s", name);
    (void)uuid_format(&id, claim.incarnation);
    return claim;
}

static struct leadership *look(const struct bench *b)
{
    struct leadership *l = NULL;
    struct aq_error err = { 0 };

    if (leadership_open(b->path, &l, &err) < 0)
        fail_msg("%s", err.text);
    return l;
}

static struct leader_view see(struct leadership *l)
{
    struct leader_view view;
    struct aq_error err = { 0 };

    if (leadership_read(l, &view, NULL, &err) < 0)
        fail_msg("%s", err.text);
    return view;
}

/* Once the server has noticed that the sessions are closed. */
static struct leader_view see_gone(struct leadership *l)
{
    struct leader_view view;

    while ((view = see(l)).has_sessions)
        (void)usleep(1000);
    return view;
}

/* The store of a manager of that name; 0 = take the row. */
static int lead(struct bench *b, const struct leader_claim *claim, int64_t epoch,
                struct aq_error *err)
{
    struct store_conf conf = bench_conf(b);

    conf.claim = claim;
    conf.epoch = epoch;
    return store_open(&conf, &b->store, err);
}

static int create(struct bench *b, const char *name, struct aq_error *err)
{
    struct event_batch *batch = event_batch_new();

    (void)add_session(batch, b, name, 1);
    return bench_commit(b, batch, err);
}

/* ---- what is seen ---- */

static void test_view(void **state)
{
    struct bench *b = *state;
    const struct leader_claim claim = claim_of("one");
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct leader_view view;
    int64_t before;
    bool is_new = false;

    bench_close(b);
    assert_int_equal(leadership_read(l, &view, &is_new, NULL), 0);
    assert_true(is_new && !view.is_held);
    (void)see_gone(l);
    assert_int_equal(lead(b, &claim, 0, NULL), 0);
    assert_int_equal(leadership_read(l, &view, &is_new, NULL), 0);
    assert_true(!is_new && view.is_held && view.has_sessions);
    assert_int_equal(view.epoch, store_get_epoch(b->store));
    assert_true(view.taken_usec > 0);
    assert_string_equal(view.holder.name, "one");
    assert_string_equal(view.holder.link, claim.link);
    assert_string_equal(view.holder.api, claim.api);
    assert_string_equal(view.holder.incarnation, claim.incarnation);
    assert_string_equal(view.holder.version, ALIQUOT_VERSION);
    before = view.beat;
    assert_int_equal(create(b, "counted", NULL), 0);
    assert_true(see(l).beat > before);
    bench_close(b);
    view = see_gone(l);
    assert_true(!view.is_held);
    assert_string_equal(view.holder.name, "one");
}

static void test_no_tables(void **state)
{
    AQ_CLEANUP(leadership_closep) struct leadership *l = NULL;
    struct bench *b = bench_new();
    struct leader_view view;
    struct aq_error err = { 0 };

    *state = b;
    l = look(b);
    assert_int_equal(leadership_read(l, &view, NULL, &err), -ENODATA);
    bench_run_sql(b, "CREATE TABLE manager_lease (epoch BIGINT)");
    assert_int_equal(leadership_read(l, &view, NULL, &err), -ENODATA);
    bench_run_sql(b, "DROP TABLE manager_lease");
    bench_open(b);
    assert_int_equal(leadership_read(l, &view, NULL, &err), 0);
}

static void test_connection_is_new(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct leader_view view;
    bool is_new;
    int r;

    (void)see(l);
    bench_run_sql(b, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                     " WHERE application_name = 'aliquot standby'");
    r = leadership_read(l, &view, &is_new, NULL);
    assert_true(r == -EHOSTDOWN);
    assert_int_equal(leadership_read(l, &view, &is_new, NULL), 0);
    assert_true(is_new);
    assert_int_equal(leadership_read(l, &view, &is_new, NULL), 0);
    assert_false(is_new);
}

/* ---- beats ---- */

/* Until its loop asks, a store beats by itself; then only when it is asked. */
static void test_beats(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    int64_t beat = store_get_beat(b->store), renewed = store_get_renewed_usec(b->store);

    assert_true(renewed > 0 && renewed <= clock_monotonic_usec());
    while (store_get_beat(b->store) < beat + 3)
        (void)usleep(1000);
    assert_true(store_get_renewed_usec(b->store) > renewed);
    store_beat(b->store);
    store_flush(b->store);
    beat = see(l).beat;
    assert_int_equal(beat, store_get_beat(b->store));
    (void)usleep(600000); /* two of its own would have come */
    assert_int_equal(see(l).beat, beat);
    for (int i = 0; i < 3; i++) {
        store_beat(b->store);
        store_beat(b->store); /* one is queued */
        store_flush(b->store);
    }
    assert_in_range(see(l).beat, beat + 3, beat + 6);
}

static int count_event(void *data, struct event *event, struct aq_error *err)
{
    (void)event;
    (void)err;
    if ((*(int *)data)++ == 0)
        (void)usleep(600000);
    return 0;
}

/* A load takes as long as it takes: standbys see beats. */
static void test_beats_while_it_loads(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    int64_t beat = see(l).beat;
    int count = 0;

    assert_int_equal(store_load(b->store, count_event, &count, NULL), 0);
    assert_true(count > 0);
    assert_true(see(l).beat > beat + 1); /* that of the load itself, and one of the thread */
}

/* Likewise while the schema is changed, by a thread. */
static void test_beats_while_it_migrates(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    AQ_CLEANUP(sql_closep) struct sql *db = bench_open_sql(b);
    struct lease_keeper *keeper = NULL;
    struct aq_error err = { 0 };
    int64_t beat, epoch;

    bench_close(b);
    beat = see(l).beat;
    epoch = see(l).epoch;
    assert_int_equal(lease_keeper_start(db->ops, b->path, "keeper", epoch, &keeper, &err), 0);
    while (see(l).beat < beat + 2)
        (void)usleep(1000);
    assert_int_equal(sql_run_script(db, "BEGIN; LOCK TABLE manager_lease", &err), 0);
    (void)usleep(500000); /* it does not get the row meanwhile */
    assert_int_equal(sql_run_script(db, "COMMIT", &err), 0);
    beat = see(l).beat;
    while (see(l).beat == beat)
        (void)usleep(1000);
    assert_int_equal(lease_keeper_stop(keeper, &err), 0);
    assert_int_equal(lease_keeper_start(db->ops, b->path, "keeper", epoch + 1, &keeper, &err), 0);
    assert_int_equal(lease_keeper_stop(keeper, &err), -EOWNERDEAD);
}

/* ---- taking over ---- */

static void test_take(void **state)
{
    struct bench *b = *state, other;
    const struct leader_claim one = claim_of("one"), two = claim_of("two");
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0;

    bench_close(b);
    other = *b;
    assert_int_equal(lead(b, &one, 0, NULL), 0);
    store_beat(b->store); /* none by itself any more */
    store_flush(b->store);
    view = see(l);
    view.beat--;
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), -ESTALE);
    view.beat++;
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), 0);
    assert_int_equal(epoch, view.epoch + 1);
    assert_int_equal(leadership_take(l, &view, &one, &epoch, &err), -ESTALE);
    view = see(l);
    assert_string_equal(view.holder.name, "two");
    assert_true(view.is_held && !view.has_sessions);
    assert_int_equal(lead(&other, &two, epoch, &err), 0);
    assert_true(see(l).has_sessions);
    assert_int_equal(create(b, "too-late", &err), -EOWNERDEAD);
    assert_int_equal(create(&other, "taken", &err), 0);
    bench_close(b); /* gives nothing up that it does not have */
    view = see(l);
    assert_true(view.is_held && view.epoch == epoch);
    bench_close(&other);
}

/* Taken once more before the one that took it has opened it. */
static void test_epoch_passed(void **state)
{
    struct bench *b = *state;
    const struct leader_claim one = claim_of("one"), two = claim_of("two");
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0, next = 0;

    bench_close(b);
    view = see(l);
    assert_int_equal(leadership_take(l, &view, &one, &epoch, &err), 0);
    view = see(l);
    assert_int_equal(leadership_take(l, &view, &two, &next, &err), 0);
    assert_int_equal(lead(b, &one, epoch, &err), -EOWNERDEAD);
    view = see(l);
    assert_true(view.is_held && view.epoch == next);
    assert_int_equal(lead(b, &two, next, &err), 0);
}

/* A take whose answer was lost is finished by another one. */
static void test_take_again(void **state)
{
    struct bench *b = *state;
    const struct leader_claim one = claim_of("one");
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct leader_view view;
    int64_t epoch = 0, again = 0;

    bench_close(b);
    view = see(l);
    assert_int_equal(leadership_take(l, &view, &one, &epoch, NULL), 0);
    view = see(l);
    assert_int_equal(leadership_take(l, &view, &one, &again, NULL), 0);
    assert_int_equal(again, epoch);
}

/* ---- a leader that is stopped within a transaction ---- */

static int stop_in_transaction(struct store_tx *tx, void *data, struct aq_error *err)
{
    int r = sql_run_script(tx->db,
                           "UPDATE manager_lease SET beat = beat;"
                           " UPDATE users SET description = 'by the sleeper'",
                           err);

    (void)data;
    (void)raise(SIGSTOP);
    return r;
}

static void on_written(void *data, int result, const struct aq_error *err)
{
    (void)err;
    *(int *)data = result;
}

/* Exits with 0 if what it wrote was refused for good. */
static void lead_and_stop(struct bench *b)
{
    const struct leader_claim claim = claim_of("sleeper");
    int result = 0;

    b->store = NULL;
    if (lead(b, &claim, 0, NULL) < 0)
        _exit(2);
    store_write(b->store, stop_in_transaction, on_written, &result);
    store_flush(b->store);
    if (result < 0) /* the first one may have been told that nothing was changed: try again */
        result = create(b, "too-late", NULL);
    _exit(result == -EOWNERDEAD ? 0 : 1);
}

/* It has the row locked: its session is ended, and it writes nothing when it wakes. */
static void test_stopped_leader(void **state)
{
    struct bench *b = *state;
    const struct leader_claim two = claim_of("two");
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    AQ_CLEANUP(aq_freep) char *dump = NULL;
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0;
    int status;
    pid_t pid;

    bench_close(b);
    pid = fork();
    if (pid == 0)
        lead_and_stop(b);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    view = see(l);
    assert_true(view.has_sessions);
    if (leadership_take(l, &view, &two, &epoch, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(lead(b, &two, epoch, &err), 0);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(bench_reap(pid), 0);
    assert_int_equal(create(b, "goes-on", &err), 0);
    assert_int_equal(
        bench_ask_sql(b, "SELECT COUNT(*) FROM users WHERE description = 'by the sleeper'"), 0);
    dump = bench_dump(b);
    assert_non_null(strstr(dump, "goes-on"));
    assert_null(strstr(dump, "too-late"));
}

/* Writes the number of each session that was acknowledged, until nothing can be written. */
static void lead_and_flood(struct bench *b, int fd, int round)
{
    const struct leader_claim claim = claim_of("sleeper");
    char name[40];
    int r = 0;

    b->store = NULL;
    for (int i = 0; i < 32; i++)
        (void)uuid_random(); /* past the random bytes that the fork copied */
    if (lead(b, &claim, 0, NULL) < 0)
        _exit(2);
    for (int i = 0; r == 0; i++) {
        (void)snprintf(name, sizeof(name), "flood-%d-%d-", round, i);
        r = create(b, name, NULL);
        if (r == 0 && write(fd, &i, sizeof(i)) != (ssize_t)sizeof(i))
            _exit(3);
    }
    _exit(r == -EOWNERDEAD ? 0 : 1);
}

/* The server may still finish what it was sent. */
static int64_t take_from_stopped(struct leadership *l, const struct leader_claim *claim)
{
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0;
    int r;

    do {
        view = see(l);
        (void)usleep(20000);
    } while ((r = leadership_take(l, &view, claim, &epoch, &err)) == -ESTALE);
    if (r < 0)
        fail_msg("%s", err.text);
    return epoch;
}

static void check_flood(struct bench *b, int fd, int round, int last)
{
    AQ_CLEANUP(aq_freep) char *query = aq_format(
        "SELECT COUNT(*) FROM sessions WHERE name LIKE 'flood-%d-%%'", round);
    int64_t found = bench_ask_sql(b, query);
    int number;

    while (read(fd, &number, sizeof(number)) == (ssize_t)sizeof(number))
        last = number;
    assert_in_range(found, last + 1, last + 2); /* one may be done whose answer was not read */
}

/* Before a COMMIT, within it, after it: what was acknowledged is there once, and nothing comes
 * after the takeover.
 */
static void test_stopped_anywhere(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    const struct leader_claim two = claim_of("two");
    struct aq_error err = { 0 };
    int fds[2], number;

    bench_close(b);
    for (int round = 0; round < 4; round++) {
        pid_t pid;

        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
            (void)close(fds[0]);
            lead_and_flood(b, fds[1], round);
        }
        (void)close(fds[1]);
        assert_int_equal(read(fds[0], &number, sizeof(number)), sizeof(number));
        (void)usleep((useconds_t)(2500 * round));
        assert_int_equal(kill(pid, SIGSTOP), 0);
        if (lead(b, &two, take_from_stopped(l, &two), &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(kill(pid, SIGCONT), 0);
        assert_int_equal(bench_reap(pid), 0);
        check_flood(b, fds[0], round, number);
        (void)close(fds[0]);
        bench_close(b);
    }
}

/* ---- what is not taken over ---- */

static int wait_in_transaction(struct store_tx *tx, void *data, struct aq_error *err)
{
    (void)data;
    return sql_run_script(
        tx->db, "UPDATE users SET description = 'slow'; SELECT pg_advisory_xact_lock(5)", err);
}

/* The server is slow, and would be for another leader, too. */
static void test_server_at_work(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(sql_closep) struct sql *holder = bench_open_sql(b);
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    const struct leader_claim two = claim_of("two");
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0;
    int result = 1;

    assert_int_equal(sql_run_script(holder, "SELECT pg_advisory_lock(5)", &err), 0);
    store_write(b->store, wait_in_transaction, on_written, &result);
    bench_await_sql(b, "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
                       " AND datname = current_database()");
    view = see(l);
    assert_true(view.is_working);
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), -ESTALE);
    assert_non_null(strstr(err.text, "working on a transaction"));
    assert_int_equal(sql_run_script(holder, "SELECT pg_advisory_unlock(5)", &err), 0);
    store_flush(b->store);
    assert_int_equal(result, 0);
    assert_false(see(l).is_working);
    assert_int_equal(create(b, "still-leads", &err), 0);
}

/* Somebody looks into the row with a psql that is left open. */
static void test_row_is_locked(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    AQ_CLEANUP(sql_closep) struct sql *holder = bench_open_sql(b);
    const struct leader_claim two = claim_of("two");
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0;

    bench_close(b);
    view = see(l);
    assert_int_equal(sql_run_script(holder, "BEGIN; SELECT * FROM manager_lease FOR UPDATE", &err),
                     0);
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), -EBUSY);
    assert_non_null(strstr(err.text, "manager_lease"));
    assert_int_equal(sql_run_script(holder, "ROLLBACK", &err), 0);
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), 0);
}

/* Nothing is changed by one that could not end what the former leader has open. */
static void test_another_role(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = NULL;
    const struct leader_claim two = claim_of("two");
    const char *user = strstr(b->path, "user=");
    struct leader_view view;
    struct aq_error err = { 0 };
    struct bench other = *b;
    int64_t epoch = 0;

    assert_non_null(user);
    bench_run_sql(b, "DROP ROLE IF EXISTS deputy");
    bench_run_sql(b, "CREATE ROLE deputy LOGIN;"
                     "GRANT ALL ON ALL TABLES IN SCHEMA public TO deputy");
    (void)snprintf(other.path, sizeof(other.path), "%.*suser=deputy", (int)(user - b->path),
                   b->path);
    store_beat(b->store);
    store_flush(b->store);
    l = look(&other);
    view = see(l);
    assert_true(view.has_sessions);
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), -EACCES);
    assert_non_null(strstr(err.text, "GRANT pg_signal_backend"));
    assert_int_equal(create(b, "still-leads", &err), 0);
    bench_close(b);
    view = see(l);
    assert_int_equal(leadership_take(l, &view, &two, &epoch, &err), 0);
    bench_run_sql(b, "DROP OWNED BY deputy");
}

static void test_copy_that_broke_off(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    const struct leader_claim one = claim_of("one");
    struct leader_view view;
    struct aq_error err = { 0 };
    int64_t epoch = 0;

    bench_close(b);
    bench_run_sql(b, "UPDATE manager_lease SET epoch = -1");
    view = see(l);
    assert_int_equal(leadership_take(l, &view, &one, &epoch, &err), -EUCLEAN);
    assert_int_equal(lead(b, &one, 0, &err), -EUCLEAN);
    assert_non_null(strstr(err.text, "unfinished copy"));
    assert_int_equal(bench_ask_sql(b, "SELECT epoch FROM manager_lease"), -1);
}

/* ---- a holder that was killed, and a program that takes the row itself ---- */

static void lead_and_die(struct bench *b, const char *name)
{
    const struct leader_claim claim = claim_of(name);

    b->store = NULL;
    if (lead(b, &claim, 0, NULL) < 0)
        _exit(2);
    (void)kill(getpid(), SIGKILL);
}

static void test_killed_holder(void **state)
{
    static const char *const names[] = { "", "one", "two" };
    struct bench *b = *state;
    struct aq_error err = { 0 };

    bench_close(b);
    for (size_t i = 0; i < AQ_COUNT(names); i++) {
        const struct leader_claim next = claim_of("one");
        pid_t pid = fork();

        if (pid == 0)
            lead_and_die(b, names[i]);
        assert_int_equal(bench_reap(pid), -SIGKILL);
        if (lead(b, &next, 0, &err) < 0)
            fail_msg("'%s': %s", names[i], err.text);
        bench_close(b);
    }
}

/* ---- clocks ---- */

/* As a leader with another clock, or a later one of a version that notes none, would leave it. */
static void test_clock_of_the_leader(void **state)
{
    static const char back[] = "UPDATE manager_lease SET beat = beat + 1,"
                               " clock_at = clock_at - 3600000000",
                      former[] = "UPDATE manager_lease SET beat = beat + 1,"
                                 " clock_epoch = clock_epoch - 1";
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct aq_error err = { 0 };
    struct leader_view view;

    assert_int_equal(create(b, "first", &err), 0);
    bench_run_sql(b, back);
    assert_int_equal(see(l).ahead_usec, 0); /* the commit may be of yesterday */
    bench_run_sql(b, "UPDATE manager_lease SET beat = beat + 1");
    view = see(l);
    assert_in_range(view.ahead_usec / USEC_PER_SEC, 3599, 3600 + 60);
    bench_run_sql(b, former);
    assert_int_equal(see(l).clock_usec, 0);
    assert_int_equal(see(l).ahead_usec, view.ahead_usec);
}

/* ---- upgrades ---- */

/* The schema of before: the row is there and cannot say who leads. One that holds the lock, as
 * versions without standbys do, keeps the next one out.
 */
static void test_version_without_standbys(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    AQ_CLEANUP(sql_closep) struct sql *holder = NULL;
    struct leader_view view;
    struct aq_error err = { 0 };

    bench_close(b);
    bench_run_sql(b, "DROP TABLE managers, schema_readers;"
                     "ALTER TABLE manager_lease DROP name, DROP link, DROP api, DROP version,"
                     " DROP incarnation, DROP is_held, DROP clock_at, DROP clock_epoch;"
                     "UPDATE manager_lease SET address = 'old.example.org:8081';"
                     "DELETE FROM schema_migrations WHERE number >= 51");
    assert_int_equal(leadership_read(l, &view, NULL, &err), -ENODATA);
    holder = bench_open_sql(b);
    assert_int_equal(holder->ops->lock(holder, &err), 1);
    assert_int_equal(lead(b, NULL, 0, &err), -EBUSY);
    assert_non_null(strstr(err.text, "old.example.org:8081"));
    sql_close(AQ_TAKE(holder));
    assert_int_equal(lead(b, NULL, 0, &err), 0);
    assert_true(see(l).is_held);
}

/* A manager of a later version stands by for one that does not note its clock. */
static void test_version_without_clock(void **state)
{
    struct bench *b = *state;
    AQ_CLEANUP(leadership_closep) struct leadership *l = look(b);
    struct aq_error err = { 0 };

    bench_close(b);
    bench_run_sql(b, "ALTER TABLE manager_lease DROP clock_at, DROP clock_epoch;"
                     "DELETE FROM schema_migrations WHERE number >= 52");
    assert_int_equal(see(l).clock_usec, 0);
    bench_run_sql(b, "UPDATE manager_lease SET beat = beat + 1");
    assert_int_equal(see(l).ahead_usec, 0);
    assert_int_equal(lead(b, NULL, 0, &err), 0);
    assert_int_equal(create(b, "noted", &err), 0);
    assert_true(see(l).clock_usec > 0);
}

/* A database that this program reads and a later one has changed. */
static void test_newer_schema(void **state)
{
    struct bench *b = *state;
    const struct leader_claim one = claim_of("one");
    struct aq_error err = { 0 };

    bench_close(b);
    bench_run_sql(b, "INSERT INTO schema_migrations VALUES (9999, '9999_later', 'x', 1)");
    assert_int_equal(lead(b, &one, 0, &err), 0);
    bench_close(b);
    bench_run_sql(b, "UPDATE schema_readers SET oldest = 9999");
    assert_int_equal(lead(b, &one, 0, &err), -EPROTO);
    assert_int_equal(bench_ask_sql(b, "SELECT is_held FROM manager_lease"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_view, bench_setup, bench_teardown),
        cmocka_unit_test_teardown(test_no_tables, bench_teardown),
        cmocka_unit_test_setup_teardown(test_connection_is_new, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_beats, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_beats_while_it_loads, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_beats_while_it_migrates, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_take, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_epoch_passed, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_take_again, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_stopped_leader, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_stopped_anywhere, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_server_at_work, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_row_is_locked, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_another_role, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_copy_that_broke_off, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_killed_holder, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_clock_of_the_leader, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_version_without_clock, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_version_without_standbys, bench_setup, bench_teardown),
        cmocka_unit_test_setup_teardown(test_newer_schema, bench_setup, bench_teardown),
    };

    if (!bench_is_server()) {
        (void)fputs("these tests need a PostgreSQL server: ./check postgres starts one\n", stderr);
        return EXIT_FAILURE;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
