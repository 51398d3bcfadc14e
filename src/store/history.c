/* SPDX-License-Identifier: Apache-2.0 */
/* history.c - the way of a session: every status change, for good, and attempts to start it */
#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/query.h"
#include "store/transaction.h"

#define RUNS_MAX 64          /* rows of one session: the last ones are kept */
#define PRUNED_AT_ONCE 10000 /* sessions */

/* 'select' puts what comes before the version, of the session or kernel with the id. */
static int history_add(struct store_tx *tx, const char *select, const struct uuid *id,
                       uint32_t version, int64_t at_usec, const char *status, const char *reason,
                       struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, select, &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, version);
    sql_put_int(q, at_usec);
    sql_put_text(q, status);
    sql_put_text(q, reason);
    sql_put_uuid(q, id, text);
    return sql_run(q, err);
}

#define HISTORY_INSERT \
    "INSERT INTO session_history (session_seq, rank, version, at, status, reason)"

int history_add_session(struct store_tx *tx, const struct uuid *id, uint32_t version,
                        int64_t at_usec, const char *status, const char *reason,
                        struct aq_error *err)
{
    return history_add(tx, HISTORY_INSERT " SELECT seq, -1, ?, ?, ?, ? FROM sessions WHERE id = ?",
                       id, version, at_usec, status, reason, err);
}

int history_add_kernel(struct store_tx *tx, const struct uuid *id, uint32_t version,
                       int64_t at_usec, const char *status, const char *reason,
                       struct aq_error *err)
{
    return history_add(
        tx, HISTORY_INSERT " SELECT session_seq, rank, ?, ?, ?, ? FROM kernels WHERE id = ?", id,
        version, at_usec, status, reason, err);
}

/* A history begins with the creation, which is in the session's own row. */
#define HISTORY_OF_ID                                                            \
    "(SELECT h.at, h.rank, h.version, h.status, h.reason FROM session_history h" \
    "  JOIN sessions s ON s.seq = h.session_seq WHERE s.id = ?"                  \
    " UNION SELECT created_at, -1, 1, 'PENDING', NULL FROM sessions WHERE id = ?) h"

static int history_count(struct store_tx *tx, const char *id, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT COUNT(*) FROM " HISTORY_OF_ID, &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, id);
    sql_put_text(q, id);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    *ret = sql_get_int(q);
    return 0;
}

int store_list_history(struct store_tx *tx, const struct uuid *session_id, struct store_page **ret,
                       struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = aq_alloc(sizeof(*page));
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    struct row row = { 0 };
    int r;

    r = history_count(tx, uuid_format(session_id, id), &page->total, err);
    if (r == 0)
        r = sql_prepare(tx->db,
                        "SELECT at, rank, version, status, reason FROM " HISTORY_OF_ID
                        " ORDER BY at, version, rank",
                        &q, err);
    if (r < 0)
        return r;
    page->history = arena_array(&page->arena, (size_t)page->total, sizeof(*page->history));
    row = (struct row){ .q = q, .arena = &page->arena };
    sql_put_text(q, id);
    sql_put_text(q, id);
    while ((r = sql_step(q, err)) > 0 && (int64_t)page->count < page->total) {
        struct history_row *h = &page->history[page->count++];
        int64_t rank;

        h->at_usec = sql_get_int(q);
        rank = sql_get_int(q);
        h->is_kernel = rank >= 0;
        h->kernel_rank = rank >= 0 ? (uint32_t)rank : 0;
        h->version = (uint32_t)sql_get_int(q);
        h->status = row_text(&row);
        h->reason = row_text(&row);
    }
    if (r == 0)
        r = row_check(&row, "session_history", err);
    if (r == 0)
        *ret = AQ_TAKE(page);
    return r;
}

/* ---- attempts of the scheduler to start a session ----
 *
 * An attempt with the answer of the one before counts that row up, so a
 * session that waits for a week has a row for each reason and not for each
 * pass. The oldest sessions are first in the table, which makes pruning cheap:
 * it never reads what it keeps.
 */

static int history_count_attempt(struct store_tx *tx, const struct event *e, struct aq_error *err)
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
static void history_put_attempt(struct sql_stmt *q, const struct event *e)
{
    sql_put_text(q, e->attempt.kind);
    sql_put_int(q, e->attempt.first_usec);
    sql_put_int(q, e->at_usec);
    sql_put_int(q, e->attempt.count);
    sql_put_text(q, e->attempt.detail);
}

/* Most sessions are placed at once, and have no other row: nothing to look for. */
static int history_insert_first_attempt(struct store_tx *tx, const struct event *e,
                                        struct aq_error *err)
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
    history_put_attempt(q, e);
    return sql_run(q, err);
}

/* Unless the last one has the same answer. */
static int history_insert_attempt(struct store_tx *tx, const struct event *e, struct aq_error *err)
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
    history_put_attempt(q, e);
    sql_put_int(q, e->attempt.row);
    sql_put_int(q, e->attempt.row);
    sql_put_text(q, e->attempt.kind);
    return sql_run(q, err);
}

static int history_drop_oldest_attempts(struct store_tx *tx, int64_t row, struct aq_error *err)
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
        return history_insert_first_attempt(tx, e, err);
    r = history_count_attempt(tx, e, err);
    if (r == 0)
        r = history_insert_attempt(tx, e, err);
    return r < 0 ? r : history_drop_oldest_attempts(tx, e->attempt.row, err);
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

static int history_count_attempts(struct store_tx *tx, const char *id, int64_t *ret,
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

    r = history_count_attempts(tx, uuid_format(session_id, id), &page->total, err);
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
