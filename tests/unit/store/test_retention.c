/* SPDX-License-Identifier: Apache-2.0 */
/* Old rows go in small pieces, with what hangs on them, and what is needed stays. */
#include "store_testing.h"

#include "store/query.h"
#include "store/retention.h"
#include "store/transaction.h"

#define PAST 250 /* ended sessions, in the order of their ends */
#define FIRST 1001

/* The i-th has the row FIRST - 1 + i, began at i and ended at 1000 + i. */
static const char past[] =
    "INSERT INTO sessions (seq, id, name, type, status, version, result, priority, user_id,"
    " project_id, access_key, domain, resource_group, kernel_count, forced, created_at,"
    " status_changed_at, terminated_at)"
    " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)"
    " SELECT 1000 + n.i, 'past-' || n.i, 'past', t.type, 'TERMINATED', 1, 'SUCCESS', 10, t.user_id,"
    " t.project_id, t.access_key, t.domain, t.resource_group, 2, 0, n.i, 1000 + n.i, 1000 + n.i"
    " FROM n, sessions t WHERE t.name = 'live';"
    "INSERT INTO kernels (session_seq, rank, id, role, role_index, status, version, attempt,"
    " requested, status_changed_at) SELECT s.seq, r.rank, s.id || '.' || r.rank, 'main', 0,"
    " 'TERMINATED', 1, 0, '{}', 1 FROM sessions s, (SELECT 0 AS rank UNION ALL SELECT 1) r"
    " WHERE s.seq > 1000;"
    "INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at, free_at)"
    " SELECT session_seq, rank, 1, 'cpu', 'i-1', 1000000, session_seq, session_seq + 60 FROM kernels"
    " WHERE session_seq > 1000;"
    "INSERT INTO session_history (session_seq, rank, version, at, status)"
    " SELECT s.seq, -1, v.version, 1, 'RUNNING' FROM sessions s, (SELECT 11 AS version UNION ALL"
    " SELECT 12 UNION ALL SELECT 13) v;"
    "INSERT INTO session_attempts (session_seq, number, kind, first_at, last_at, attempts)"
    " SELECT seq, 1, 'placed', 1, 1, 1 FROM sessions WHERE seq > 1000;"
    "INSERT INTO statistics_series (owner, at, until_at, data) SELECT id, 1, 2, '{}' FROM kernels";

struct script {
    const char *text;
    int64_t number; /* of the first row */
};

static int run_script(struct store_tx *tx, void *data, struct aq_error *err)
{
    return sql_run_script(tx->db, ((struct script *)data)->text, err);
}

static void run(struct bench *b, const char *text)
{
    struct aq_error err = { 0 };

    if (store_call(b->store, run_script, &(struct script){ .text = text }, &err) < 0)
        fail_msg("%s", err.text);
}

static int ask_number(struct store_tx *tx, void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct script *s = data;
    int r = sql_prepare_once(tx->db, s->text, &q, err);

    if (r == 0 && (r = sql_step(q, err)) > 0)
        s->number = sql_get_int(q);
    return AQ_MIN(r, 0);
}

static int64_t number(struct bench *b, const char *text)
{
    struct script s = { .text = text };
    struct aq_error err = { 0 };

    if (store_call(b->store, ask_number, &s, &err) < 0)
        fail_msg("%s", err.text);
    return s.number;
}

static int64_t all_rows(struct bench *b)
{
    return number(b, "SELECT (SELECT COUNT(*) FROM sessions) + (SELECT COUNT(*) FROM kernels)"
                     " + (SELECT COUNT(*) FROM allocations)"
                     " + (SELECT COUNT(*) FROM session_history)"
                     " + (SELECT COUNT(*) FROM session_attempts)"
                     " + (SELECT COUNT(*) FROM session_dependencies)"
                     " + (SELECT COUNT(*) FROM statistics_series)"
                     " + (SELECT COUNT(*) FROM agent_history) + (SELECT COUNT(*) FROM audit_log)");
}

static int remove_piece(struct store_tx *tx, void *data, struct aq_error *err)
{
    return retention_remove(tx, data, err);
}

/* Whatever is older goes: how much. Each piece is bounded. */
static int64_t remove_older(struct bench *b, enum retention_entity entity, int64_t before_usec)
{
    struct retention_piece piece = {
        .entity = entity, .before_usec = before_usec, .started_usec = 5000, .now_usec = 6000
    };
    int64_t removed = 0, rows = all_rows(b), left;
    struct aq_error err = { 0 };

    do {
        if (store_call(b->store, remove_piece, &piece, &err) < 0)
            fail_msg("%s", err.text);
        left = all_rows(b);
        assert_true(rows - left <= RETENTION_ROWS_AT_A_TIME + RETENTION_SESSIONS_AT_A_TIME
                                       + 2 * RETENTION_KERNELS_AT_A_TIME + 2);
        rows = left;
        removed += piece.removed;
    } while (!piece.is_last);
    return removed;
}

struct asked {
    enum retention_entity entity;
    int64_t before_usec;
    bool count;
    struct retention_report report;
};

static int read_report(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct asked *a = data;

    return retention_read(tx, a->entity, a->before_usec, a->count, &a->report, err);
}

static struct retention_report report_of(struct bench *b, enum retention_entity entity,
                                         int64_t before_usec)
{
    struct asked a = { .entity = entity, .before_usec = before_usec, .count = true };
    struct aq_error err = { 0 };

    if (store_call(b->store, read_report, &a, &err) < 0)
        fail_msg("%s", err.text);
    return a.report;
}

static int add_usage(void *data, const struct store_usage *row)
{
    if (row->until_usec)
        *(int64_t *)data += row->amount * (row->until_usec - row->from_usec);
    return 0;
}

static int read_usage(struct store_tx *tx, void *data, struct aq_error *err)
{
    return store_read_usage(tx, 0, add_usage, data, err);
}

static int64_t usage(struct bench *b)
{
    int64_t sum = 0;

    assert_int_equal(store_call(b->store, read_usage, &sum, NULL), 0);
    return sum;
}

/* A live session, and those of the past. */
static struct uuid fill(struct bench *b)
{
    struct event_batch *batch = event_batch_new();
    struct uuid id = add_session(batch, b, "live", 1)->id;

    assert_int_equal(bench_commit(b, batch, NULL), 0);
    run(b, past);
    return id;
}

/* ---- sessions ---- */

static void test_sessions_go_with_all_that_hangs_on_them(void **state)
{
    struct bench *b = *state;
    int64_t used;

    (void)fill(b);
    used = usage(b);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).rows, PAST);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).removable, 200);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).oldest_usec, 1001);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).started_usec, 0);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 0).removable, 0);
    assert_int_equal(remove_older(b, RETENTION_SESSIONS, 1201), 200);
    assert_int_equal(number(b, "SELECT MIN(seq) FROM sessions WHERE terminated_at IS NOT NULL"),
                     FIRST + 200);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM sessions"), 51);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM kernels"), 101);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM session_history"), 153);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM session_attempts"), 50);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM statistics_series"), 101);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM allocations"), 100);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM removed_usage"), 400);
    assert_true(used > 0 && usage(b) == used);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).removable, 0);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).started_usec, 5000);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).ended_usec, 6000);
    assert_int_equal(report_of(b, RETENTION_SESSIONS, 1201).removed, 200);
    assert_int_equal(remove_older(b, RETENTION_USAGE, 1161), 200); /* until 1160: the first 100 */
    assert_int_equal(number(b, "SELECT MIN(free_at) FROM removed_usage"), 1161);
}

/* What is live, what that waits for, what holds something, and the latest one. */
static void test_what_is_needed_stays(void **state)
{
    struct bench *b = *state;
    struct uuid live = fill(b);
    struct event_batch *batch = event_batch_new();

    run(b, "INSERT INTO session_dependencies (session_seq, depends_on)"
           " SELECT seq, 'past-1' FROM sessions WHERE name = 'live';"
           "INSERT INTO session_dependencies (session_seq, depends_on) VALUES (1003, 'past-2');"
           "INSERT INTO session_dependencies (session_seq, depends_on) VALUES (1250, 'past-4');"
           "UPDATE allocations SET free_at = NULL WHERE session_seq = 1005 AND rank = 0");
    assert_int_equal(report_of(b, RETENTION_SESSIONS, INT64_MAX).removable, PAST - 3);
    assert_int_equal(remove_older(b, RETENTION_SESSIONS, INT64_MAX), PAST - 3);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM sessions WHERE name = 'live'"
                               " OR seq IN (1001, 1005, 1250)"),
                     4);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM sessions"), 4);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM session_dependencies"), 1);

    run(b, "UPDATE allocations SET free_at = 7 WHERE free_at IS NULL");
    (void)add_status(batch, &live, SESSION_PENDING, SESSION_CANCELLED, 0, NULL);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(remove_older(b, RETENTION_SESSIONS, INT64_MAX), 3);
    assert_int_equal(number(b, "SELECT MAX(seq) FROM sessions"), 1250);
    bench_reopen(b);
    batch = event_batch_new();
    (void)add_session(batch, b, "next", 1);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(number(b, "SELECT seq FROM sessions WHERE name = 'next'"), 1251);
}

/* More rows of one session than go at a time: it stays whole but for these until they are gone. */
static void test_a_large_session_takes_several_pieces(void **state)
{
    struct bench *b = *state;

    (void)fill(b);
    run(b, "INSERT INTO session_history (session_seq, rank, version, at, status)"
           " WITH RECURSIVE n (i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 1800)"
           " SELECT 1001, -1, i, 1, 'RUNNING' FROM n");
    assert_int_equal(remove_older(b, RETENTION_SESSIONS, 1002), 1);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM session_history"), 3 * PAST);
}

static void purge_user(struct bench *b)
{
    struct event_batch *batch = event_batch_new();
    struct event *e = event_batch_add(batch, EVENT_ACCOUNT_PURGED, 3000);

    e->purge_account.kind = PURGE_USER;
    e->purge_account.id = b->user_id;
    assert_int_equal(bench_commit(b, batch, NULL), 0);
}

static void test_a_purged_user_keeps_the_name_for_removed_usage(void **state)
{
    struct bench *b = *state;
    struct uuid live = fill(b);
    struct event_batch *batch = event_batch_new();

    (void)add_status(batch, &live, SESSION_PENDING, SESSION_CANCELLED, 0, NULL);
    assert_int_equal(bench_commit(b, batch, NULL), 0);
    assert_int_equal(remove_older(b, RETENTION_SESSIONS, INT64_MAX), PAST);
    run(b, "DELETE FROM allocations; DELETE FROM session_history; DELETE FROM session_attempts;"
           "DELETE FROM kernels; DELETE FROM sessions; UPDATE users SET status = 'deleted'");
    purge_user(b);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM users WHERE purged_email IS NOT NULL"), 1);
}

/* ---- the others ---- */

static void test_history_goes_and_sessions_stay(void **state)
{
    struct bench *b = *state;

    (void)fill(b);
    assert_int_equal(report_of(b, RETENTION_HISTORY, 1201).rows, 3 * PAST + 3);
    assert_int_equal(report_of(b, RETENTION_HISTORY, 1201).removable, 600);
    assert_int_equal(remove_older(b, RETENTION_HISTORY, 1201), 600);
    assert_int_equal(remove_older(b, RETENTION_HISTORY, INT64_MAX), 150);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM sessions"), PAST + 1);
    assert_int_equal(number(b, "SELECT COUNT(*) FROM session_history"), 3); /* of the live one */
}

static void test_rows_with_a_time_go_by_it(void **state)
{
    struct bench *b = *state;

    run(b, "INSERT INTO agent_history (agent_id, at, status)"
           " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)"
           " SELECT 'i-1', i, 'ALIVE' FROM n;"
           "INSERT INTO statistics_series (owner, at, until_at, data)"
           " SELECT agent_id, at, at, '{}' FROM agent_history;"
           "INSERT INTO audit_log (seq, at, user_name, action, outcome, times)"
           " SELECT at, at, 'ann', 'login', 'ok', 1 FROM agent_history;"
           "INSERT INTO error_logs (seq, id, at, user_id, severity, source, message, context_lang,"
           " context_env, is_read, is_cleared)"
           " SELECT at, 'e' || at, at, 'u', 'error', 'x', 'y', 'c', '{}', 0, 0"
           " FROM agent_history");
    assert_int_equal(remove_older(b, RETENTION_AGENT_HISTORY, 1001), 1000);
    assert_int_equal(number(b, "SELECT MIN(at) FROM agent_history"), 1001);
    assert_int_equal(report_of(b, RETENTION_SERIES, 501).removable, 500);
    assert_int_equal(remove_older(b, RETENTION_SERIES, 501), 500);
    assert_int_equal(number(b, "SELECT MIN(at) FROM statistics_series"), 501);
    assert_int_equal(remove_older(b, RETENTION_ERROR_LOGS, 1200), 1199);
    assert_int_equal(number(b, "SELECT MIN(at) FROM error_logs"), 1200);
    assert_int_equal(remove_older(b, RETENTION_AUDIT_LOG, 1200), 1199);
    assert_int_equal(report_of(b, RETENTION_AUDIT_LOG, 1200).oldest_usec, 1200);
}

/* Whatever their age. */
static void test_too_many_entries_of_the_audit_log_go(void **state)
{
    struct bench *b = *state;

    run(b, "INSERT INTO audit_log (seq, at, user_name, action, object_kind, outcome, times)"
           " VALUES (1, 1, 'ann', 'end-session', 'session', 'ok', 1),"
           " (2, 2, 'ann', 'end-session', 'session', 'ok', 1),"
           " (3, 2, 'root', 'modify-user', 'user', 'ok', 1),"
           " (1000001, 3, 'ann', 'end-session', 'session', 'ok', 1)");
    assert_int_equal(report_of(b, RETENTION_AUDIT_LOG, 0).removable, 1);
    assert_int_equal(remove_older(b, RETENTION_AUDIT_LOG, 0), 1);
    assert_int_equal(number(b, "SELECT MIN(seq) FROM audit_log"), 2);
    run(b, "INSERT INTO audit_log (seq, at, user_name, action, object_kind, outcome, times)"
           " VALUES (10000002, 4, 'root', 'modify-user', 'user', 'ok', 1)");
    assert_int_equal(remove_older(b, RETENTION_AUDIT_LOG, 0), 2); /* what users did */
    assert_int_equal(number(b, "SELECT MIN(seq) FROM audit_log"), 3);
    run(b, "INSERT INTO audit_log (seq, at, user_name, action, object_kind, outcome, times)"
           " VALUES (10000003, 5, 'root', 'modify-user', 'user', 'ok', 1)");
    assert_int_equal(remove_older(b, RETENTION_AUDIT_LOG, 0), 1); /* whatever it is */
    run(b, "INSERT INTO audit_log (seq, at, user_name, action, object_kind, outcome, times)"
           " WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2400)"
           " SELECT 20000000 + i, 6, 'ann', 'x', CASE i % 2 WHEN 0 THEN 'session' ELSE 'user' END,"
           " 'ok', 1 FROM n;"
           "INSERT INTO audit_log (seq, at, user_name, action, object_kind, outcome, times)"
           " VALUES (21500000, 7, 'root', 'modify-user', 'user', 'ok', 1)");
    assert_int_equal(remove_older(b, RETENTION_AUDIT_LOG, 0), 1202); /* among those that stay */
    assert_int_equal(number(b, "SELECT COUNT(*) FROM audit_log"), 1201);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_sessions_go_with_all_that_hangs_on_them),
        TEST(test_what_is_needed_stays),
        TEST(test_a_large_session_takes_several_pieces),
        TEST(test_a_purged_user_keeps_the_name_for_removed_usage),
        TEST(test_history_goes_and_sessions_stay),
        TEST(test_rows_with_a_time_go_by_it),
        TEST(test_too_many_entries_of_the_audit_log_go),
    };

    return BENCH_RUN(tests, 0);
}
