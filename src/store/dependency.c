/* SPDX-License-Identifier: Apache-2.0 */
/* dependency.c - what sessions wait for: written, and the state of its rows */
#include "store/dependency.h"

#include <errno.h>

#include "model/session_array.h"
#include "store/transaction.h"

int dependency_insert(struct store_tx *tx, int64_t session_seq, const struct session_dependency *d,
                      struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        d->is_array ? "INSERT INTO array_dependencies (session_seq, array_id,"
                                      " element, condition) VALUES (?, ?, ?, ?)"
                                    : "INSERT INTO session_dependencies (session_seq, depends_on,"
                                      " condition) VALUES (?, ?, ?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, session_seq);
    sql_put_uuid(q, &d->id, text);
    if (d->is_array)
        sql_put_int(q, d->element);
    sql_put_text(q, dependency_condition_name(d->condition));
    return sql_run(q, err);
}

/* running_at, terminated_at and result of a session. */
static int dependency_read_session(struct sql_stmt *q, struct session_dependency *d)
{
    const char *result;

    d->has_run = sql_get_int(q) != 0;
    d->ended = sql_get_int(q) != 0;
    result = sql_get_text(q);
    return result && session_result_parse(result, &d->result) == 0 ? 0 : -EUCLEAN;
}

static int dependency_read_array(struct store_tx *tx, struct session_dependency *d,
                                 struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    int64_t size, succeeded;
    int r = sql_prepare(
        tx->db,
        "SELECT a.ended_at, a.size, a.succeeded, a.failed + a.cancelled + a.skipped,"
        " CASE WHEN ? = 0 OR a.next_position < a.size THEN 0 WHEN EXISTS (SELECT 1"
        " FROM sessions s WHERE s.array_id = a.id AND s.terminated_at IS NULL"
        " AND s.running_at IS NULL) THEN 0 ELSE 1 END FROM arrays a WHERE a.id = ?",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, d->condition == DEPENDENCY_START);
    sql_put_uuid(q, &d->id, id);
    if ((r = sql_step(q, err)) <= 0)
        return r < 0 ? r : aq_fail(err, ENOENT, "there is no array %s", id);
    d->ended = sql_get_int(q) != 0;
    size = sql_get_int(q);
    succeeded = sql_get_int(q);
    d->has_failed = sql_get_int(q) > 0;
    d->has_run = sql_get_int(q) != 0;
    d->result = !d->ended ? RESULT_UNDEFINED : succeeded == size ? RESULT_SUCCESS : RESULT_FAILURE;
    return 0;
}

/* An element without a row: waiting, or cancelled before it had one. */
static int dependency_read_unmade(struct store_tx *tx, struct session_dependency *d,
                                  struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    AQ_CLEANUP(array_set_done) struct array_set set = { 0 };
    char id[UUID_TEXT_MAX];
    const char *removed;
    int r = sql_prepare(tx->db, "SELECT cancelled_at, ended_at, removed FROM arrays WHERE id = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, &d->id, id);
    if ((r = sql_step(q, err)) <= 0)
        return r < 0 ? r : aq_fail(err, ENOENT, "there is no array %s", id);
    d->ended = sql_get_int(q) != 0;
    d->ended |= sql_get_int(q) != 0;
    removed = sql_get_text(q);
    if (!d->ended && removed && (r = array_set_parse(removed, INT32_MAX, &set, NULL, err)) < 0)
        return r;
    d->ended |= array_set_has(&set, d->element);
    d->result = RESULT_UNDEFINED;
    return 0;
}

int store_read_dependency(struct store_tx *tx, struct session_dependency *d, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char id[UUID_TEXT_MAX];
    int r;

    if (d->is_array && d->element == DEPENDENCY_ALL)
        return dependency_read_array(tx, d, err);
    r = sql_prepare(tx->db,
                    d->is_array ? "SELECT running_at, terminated_at, result FROM sessions"
                                  " WHERE array_id = ? AND array_index = ?"
                                : "SELECT running_at, terminated_at, result FROM sessions"
                                  " WHERE id = ?",
                    &q, err);
    if (r < 0)
        return r;
    sql_put_uuid(q, &d->id, id);
    if (d->is_array)
        sql_put_int(q, d->element);
    if ((r = sql_step(q, err)) < 0)
        return r;
    if (r == 0)
        return d->is_array ? dependency_read_unmade(tx, d, err)
                           : aq_fail(err, ENOENT, "there is no session %s", id);
    return dependency_read_session(q, d) == 0
               ? 0
               : aq_fail(err, EUCLEAN, "the row of session %s has no valid result", id);
}
