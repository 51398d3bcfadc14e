/* SPDX-License-Identifier: Apache-2.0 */
/* attempt_write.c - attempts of the scheduler to start a session
 *
 * An attempt with the answer of the one before counts that row up, so a
 * session that waits for a week has a row for each reason and not for each
 * pass. The oldest sessions are first in the table, which makes pruning cheap:
 * it never reads what it keeps.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/query.h"
#include "store/transaction.h"

#define RUNS_MAX 64          /* rows of one session: the last ones are kept */
#define PRUNED_AT_ONCE 10000 /* sessions */

static int attempt_count_up(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "UPDATE session_attempts SET last_at = ?, attempts = attempts + ?,"
        " detail = COALESCE(?, detail) WHERE session_seq = ? AND kind = ? AND number ="
        " (SELECT MAX(number) FROM session_attempts WHERE session_seq = ?)",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->at_usec);
    sql_put_int(q, e->attempt.count);
    sql_put_text(q, e->attempt.detail);
    sql_put_int(q, e->attempt.row);
    sql_put_text(q, e->attempt.kind);
    sql_put_int(q, e->attempt.row);
    return sql_run(q, err);
}

/* kind, first_at, last_at, attempts, detail */
static void attempt_put(struct sql_stmt *q, const struct event *e)
{
    sql_put_text(q, e->attempt.kind);
    sql_put_int(q, e->attempt.first_usec);
    sql_put_int(q, e->at_usec);
    sql_put_int(q, e->attempt.count);
    sql_put_text(q, e->attempt.detail);
}

/* Most sessions are placed at once, and have no other row: nothing to look for. */
static int attempt_insert_first(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO session_attempts (session_seq, number, kind, first_at, last_at, attempts,"
        " detail) VALUES (?, 1, ?, ?, ?, ?, ?)",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->attempt.row);
    attempt_put(q, e);
    return sql_run(q, err);
}

/* Unless the last one has the same answer. */
static int attempt_insert_other(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO session_attempts (session_seq, number, kind, first_at, last_at, attempts,"
        " detail) SELECT ?, COALESCE(MAX(number), 0) + 1, ?, ?, ?, ?, ? FROM session_attempts"
        " WHERE session_seq = ? HAVING COALESCE((SELECT l.kind FROM session_attempts l"
        " WHERE l.session_seq = ? ORDER BY l.number DESC LIMIT 1), '') <> ?",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, e->attempt.row);
    attempt_put(q, e);
    sql_put_int(q, e->attempt.row);
    sql_put_int(q, e->attempt.row);
    sql_put_text(q, e->attempt.kind);
    return sql_run(q, err);
}

static int attempt_drop_oldest(struct store_tx *tx, int64_t row, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "DELETE FROM session_attempts WHERE session_seq = ? AND number <="
                        " (SELECT MAX(number) FROM session_attempts WHERE session_seq = ?)"
                        " - ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, row);
    sql_put_int(q, row);
    sql_put_int(q, RUNS_MAX);
    return sql_run(q, err);
}

int attempt_add(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    int r;

    if (e->attempt.is_first)
        return attempt_insert_first(tx, e, err);
    r = attempt_count_up(tx, e, err);
    if (r == 0)
        r = attempt_insert_other(tx, e, err);
    return r < 0 ? r : attempt_drop_oldest(tx, e->attempt.row, err);
}

int attempts_prune(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "DELETE FROM session_attempts WHERE session_seq IN (SELECT a.seq FROM"
        " (SELECT DISTINCT session_seq AS seq FROM session_attempts ORDER BY session_seq LIMIT ?) a"
        " JOIN sessions s ON s.seq = a.seq WHERE s.terminated_at IS NOT NULL"
        " AND (s.terminated_at < ? OR s.seq <= (SELECT MAX(seq) FROM sessions) - ?))",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, PRUNED_AT_ONCE);
    sql_put_int(q, e->prune.before_usec);
    sql_put_int(q, e->prune.keep);
    return sql_run(q, err);
}

/* ---- reading ---- */

static int attempt_count_rows(struct store_tx *tx, const char *id, int64_t *ret,
                              struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT COUNT(*) FROM session_attempts a JOIN sessions s"
                        " ON s.seq = a.session_seq WHERE s.id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    r = sql_step(q, err);
    if (r > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

int store_list_attempts(struct store_tx *tx, const struct uuid *session_id, struct store_page **ret,
                        struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = aq_alloc(sizeof(*page));
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct row row = { 0 };
    char id[UUID_TEXT_MAX];
    int r;

    r = attempt_count_rows(tx, uuid_format(session_id, id), &page->total, err);
    if (r == 0)
        r = sql_prepare(
            tx->db,
            "SELECT a.kind, a.first_at, a.last_at, a.attempts, a.detail FROM session_attempts a"
            " JOIN sessions s ON s.seq = a.session_seq WHERE s.id = ? ORDER BY a.number",
            &q, err);
    if (r < 0)
        return r;
    page->attempts = arena_array(&page->arena, (size_t)page->total + 1, sizeof(*page->attempts));
    row = (struct row){ .q = q, .arena = &page->arena };
    sql_put_text(q, id);
    while ((r = sql_step(q, err)) > 0 && (int64_t)page->count < page->total) {
        struct attempt_row *a = &page->attempts[page->count++];

        a->kind = row_text(&row);
        a->first_usec = sql_get_int(q);
        a->last_usec = sql_get_int(q);
        a->count = sql_get_int(q);
        a->detail = row_text(&row);
    }
    if (r == 0)
        r = row_check(&row, "session_attempts", err);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}
