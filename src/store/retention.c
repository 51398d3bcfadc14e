/* SPDX-License-Identifier: Apache-2.0 */
/* retention.c - removing rows that are older than anybody wants them */
#include "store/retention.h"

#include <errno.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "store/session_total.h"
#include "store/transaction.h"

/* Entities whose rows have a time of their own: nothing hangs on them. */
struct retention_table {
    const char *name, *key, *at;
};

static const struct retention_table retention_tables[RETENTION_ENTITY_COUNT] = {
    [RETENTION_USAGE] = { "removed_usage", "session_seq, rank, version, slot", "free_at" },
    [RETENTION_AGENT_HISTORY] = { "agent_history", "agent_id, at", "at" },
    [RETENTION_SERIES] = { "statistics_series", "owner, at", "at" },
    [RETENTION_AUDIT_LOG] = { "audit_log", "seq", "at" },
    [RETENTION_ERROR_LOGS] = { "error_logs", "seq", "at" },
    [RETENTION_EVENTS] = { "session_events", "number", "at" },
};

static const char *const retention_names[RETENTION_ENTITY_COUNT] = {
    [RETENTION_SESSIONS] = "sessions",     [RETENTION_HISTORY] = "history",
    [RETENTION_USAGE] = "usage",           [RETENTION_AGENT_HISTORY] = "agent-history",
    [RETENTION_SERIES] = "series",         [RETENTION_AUDIT_LOG] = "audit-log",
    [RETENTION_ERROR_LOGS] = "error-logs", [RETENTION_EVENTS] = "events",
};

const char *retention_entity_name(enum retention_entity entity)
{
    return retention_names[entity];
}

int retention_entity_parse(const char *text, enum retention_entity *ret)
{
    for (size_t i = 0; i < RETENTION_ENTITY_COUNT; i++)
        if (strcmp(text, retention_names[i]) == 0) {
            *ret = (enum retention_entity)i;
            return 0;
        }
    return -EINVAL;
}

/* ---- statements ---- */

/* Run a statement, whose parameters are 'values': how many rows it changed. */
static int retention_change(struct store_tx *tx, const char *text, const int64_t *values,
                            size_t count, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare_once(tx->db, text, &q, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        sql_put_int(q, values[i]);
    return sql_change(q, err);
}

/* ---- rows with a time ---- */

static int retention_remove_dated(struct store_tx *tx, struct retention_piece *piece,
                                  struct aq_error *err)
{
    const struct retention_table *t = &retention_tables[piece->entity];
    const int64_t values[] = { piece->before_usec, RETENTION_ROWS_AT_A_TIME };
    AQ_CLEANUP(aq_freep) char *text = aq_format("DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s"
                                                " WHERE %s < ? ORDER BY %s LIMIT ?)",
                                                t->name, t->key, t->key, t->name, t->at, t->at);
    int r = retention_change(tx, text, values, AQ_COUNT(values), err);

    if (r < 0)
        return r;
    piece->removed += r;
    piece->is_last = r < RETENTION_ROWS_AT_A_TIME;
    return 0;
}

/* Entries go whatever their age once so many came after them: fewer of what users do as often as
 * they like, so that they cannot push out what administrators did.
 */
#define RETENTION_IS_OFTEN                                       \
    "(object_kind IN ('session', 'dotfile', 'bootstrap-script')" \
    " OR action IN ('update-full-name', 'update-password', 'update-ssh-key'))"
#define RETENTION_IS_BEYOND                                                       \
    "(seq <= (SELECT MAX(seq) FROM audit_log) - 10000000 OR (" RETENTION_IS_OFTEN \
    " AND seq <= (SELECT MAX(seq) FROM audit_log) - 1000000))"

/* The last of the next ones that go so; 0 = there are no more. */
static int retention_find_beyond(struct store_tx *tx, const struct retention_piece *piece,
                                 int64_t *ret, struct aq_error *err)
{
    static const char sql[] = "SELECT COALESCE(MAX(seq), 0) FROM (SELECT seq FROM audit_log"
                              " WHERE seq > ? AND seq <= (SELECT MAX(seq) FROM audit_log) - 1000000"
                              " AND " RETENTION_IS_BEYOND " ORDER BY seq LIMIT ?) a";
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, sql, &q, err);

    *ret = 0;
    if (r < 0)
        return r;
    sql_put_int(q, piece->place.row);
    sql_put_int(q, RETENTION_ROWS_AT_A_TIME);
    if ((r = sql_step(q, err)) > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

/* Those that stay are many, and are passed by once in a run. */
static int retention_remove_audit_log(struct store_tx *tx, struct retention_piece *piece,
                                      struct aq_error *err)
{
    static const char sql[] = "DELETE FROM audit_log WHERE seq > ? AND seq <= ?"
                              " AND " RETENTION_IS_BEYOND;
    int64_t values[] = { piece->place.row, 0 };
    int r = retention_remove_dated(tx, piece, err);

    if (r < 0 || !piece->is_last || (r = retention_find_beyond(tx, piece, &values[1], err)) < 0
        || !values[1])
        return r;
    r = retention_change(tx, sql, values, AQ_COUNT(values), err);
    if (r < 0)
        return r;
    piece->place.row = values[1];
    piece->removed += r;
    piece->is_last = r < RETENTION_ROWS_AT_A_TIME;
    return 0;
}

/* From the first on and without a hole: what comes after the first that stays was not removed. The
 * clock may have been wrong. The last one stays, and a million at most.
 */
static int retention_remove_events(struct store_tx *tx, struct retention_piece *piece,
                                   struct aq_error *err)
{
    static const char sql[] =
        "DELETE FROM session_events WHERE number < (SELECT COALESCE(MIN(CASE WHEN at >= ?"
        " AND number > (SELECT MAX(number) FROM session_events) - 1000000 THEN number END),"
        " MAX(number)) FROM (SELECT number, at FROM session_events ORDER BY number LIMIT ?) oldest)";
    const int64_t values[] = { piece->before_usec, RETENTION_ROWS_AT_A_TIME + 1 };
    int r = retention_change(tx, sql, values, AQ_COUNT(values), err);

    if (r < 0)
        return r;
    piece->removed += r;
    piece->is_last = r < RETENTION_ROWS_AT_A_TIME;
    return 0;
}

/* ---- sessions ---- */

#define RETENTION_HAS_ENDED "s.terminated_at IS NOT NULL"
#define RETENTION_IS_UNNEEDED                                                     \
    RETENTION_HAS_ENDED " AND s.seq < (SELECT MAX(seq) FROM sessions)"            \
                        " AND NOT EXISTS (SELECT 1 FROM session_dependencies d"   \
                        " JOIN sessions l ON l.seq = d.session_seq"               \
                        " WHERE d.depends_on = s.id AND l.terminated_at IS NULL)" \
                        " AND NOT EXISTS (SELECT 1 FROM array_dependencies d"     \
                        " JOIN sessions l ON l.seq = d.session_seq"               \
                        " WHERE d.array_id = s.array_id"                          \
                        " AND d.element = s.array_index"                          \
                        " AND l.terminated_at IS NULL)"                           \
                        " AND NOT EXISTS (SELECT 1 FROM allocations a"            \
                        " WHERE a.session_seq = s.seq AND a.free_at IS NULL)"
#define RETENTION_NEXT_SESSIONS(condition)                                                     \
    "SELECT s.status_changed_at, s.seq, s.kernel_count, CASE WHEN " condition                  \
    " THEN 1 ELSE 0 END FROM sessions s INDEXED BY sessions_changed WHERE s.status_changed_at" \
    " >= ? AND (s.status_changed_at > ? OR s.seq > ?) AND s.status_changed_at < ?"             \
    " ORDER BY s.status_changed_at, s.seq LIMIT ?"

/* Sessions to be looked at next. */
struct retention_chosen {
    struct strbuf rows; /* "12, 13": those that may go */
    int count;
    struct retention_place last; /* of all */
    bool is_end;                 /* there are no others */
};

static int retention_take_next(struct sql_stmt *q, struct retention_chosen *ret,
                               struct aq_error *err)
{
    int64_t kernels = 0;
    int seen = 0, r;

    while ((r = sql_step(q, err)) > 0) {
        struct retention_place place = { .at_usec = sql_get_int(q) };

        place.row = sql_get_int(q);
        kernels += sql_get_int(q);
        if (seen > 0 && kernels > RETENTION_KERNELS_AT_A_TIME)
            break;
        seen++;
        ret->last = place;
        if (sql_get_int(q))
            strbuf_addf(&ret->rows, "%s%lld", ret->count++ ? ", " : "", (long long)place.row);
    }
    ret->is_end = r == 0 && seen < RETENTION_SESSIONS_AT_A_TIME;
    return r;
}

static int retention_choose(struct store_tx *tx, const struct retention_piece *piece,
                            struct retention_chosen *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        piece->entity == RETENTION_SESSIONS
                            ? RETENTION_NEXT_SESSIONS(RETENTION_IS_UNNEEDED)
                            : RETENTION_NEXT_SESSIONS(RETENTION_HAS_ENDED),
                        &q, err);

    *ret = (struct retention_chosen){ .rows = STRBUF_INIT, .last = piece->place };
    if (r < 0)
        return r;
    sql_put_int(q, piece->place.at_usec);
    sql_put_int(q, piece->place.at_usec);
    sql_put_int(q, piece->place.row);
    sql_put_int(q, piece->before_usec);
    sql_put_int(q, RETENTION_SESSIONS_AT_A_TIME);
    return retention_take_next(q, ret, err);
}

/* Statements are 'head' rows 'tail', the rows being those of sessions. */
struct retention_statement {
    const char *head, *tail;
};

/* Of which a session may have any number of rows. */
static const struct retention_many {
    const char *name, *key;
    struct retention_statement rows;
} retention_many[] = {
    { "session_history", "session_seq, rank, version", { "session_seq IN (", ")" } }, /* first */
    { "statistics_series",
      "owner, at",
      { "owner IN (SELECT id FROM kernels WHERE session_seq IN (", "))" } },
    { "session_attempts", "session_seq, number", { "session_seq IN (", ")" } },
};

/* What goes at once. */
static const struct retention_statement retention_whole[] = {
    { "DELETE FROM session_history WHERE session_seq IN (", ");" },
    { "DELETE FROM session_idle WHERE session_seq IN (", ");" },
    { "DELETE FROM statistics_series WHERE owner IN (SELECT id FROM kernels WHERE session_seq IN (",
      "));" },
    { "DELETE FROM session_attempts WHERE session_seq IN (", ");" },
    { "DELETE FROM session_runs WHERE session_seq IN (", ");" },
    { "INSERT INTO removed_usage (session_seq, rank, version, slot, resource_group, domain,"
      " project_id, user_id, amount, taken_at, free_at) SELECT a.session_seq, a.rank, a.version,"
      " a.slot, s.resource_group, s.domain, s.project_id, s.user_id, a.amount, a.taken_at,"
      " a.free_at FROM sessions s JOIN allocations a ON a.session_seq = s.seq"
      " WHERE a.free_at > a.taken_at AND s.seq IN (",
      ");" },
    { "DELETE FROM allocations WHERE session_seq IN (", ");" },
    { "DELETE FROM session_dependencies WHERE session_seq IN (", ");" },
    { "DELETE FROM array_dependencies WHERE session_seq IN (", ");" },
    { "DELETE FROM session_dependencies WHERE depends_on IN (SELECT id FROM sessions"
      " WHERE seq IN (",
      "));" },
    { "DELETE FROM kernels WHERE session_seq IN (", ");" },
    { SESSION_TOTAL_ADD("-COUNT(*)") "seq IN (", ")" SESSION_TOTAL_END ";" },
    { "DELETE FROM sessions WHERE seq IN (", "); DELETE FROM session_totals WHERE sessions = 0;" },
};

/* At most 'max' rows of one of retention_many: how many. */
static int retention_remove_many(struct store_tx *tx, const struct retention_many *many,
                                 const char *rows, int64_t max, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = aq_format(
        "DELETE FROM %s WHERE (%s) IN (SELECT %s FROM %s WHERE %s%s%s LIMIT ?)", many->name,
        many->key, many->key, many->name, many->rows.head, rows, many->rows.tail);

    return retention_change(tx, text, &max, 1, err);
}

static int retention_count_many(struct store_tx *tx, const char *rows, int64_t *ret,
                                struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    *ret = 0;
    for (size_t i = 0; i < AQ_COUNT(retention_many); i++)
        strbuf_addf(&text, "%s(SELECT COUNT(*) FROM %s WHERE %s%s%s)", i ? " + " : "SELECT ",
                    retention_many[i].name, retention_many[i].rows.head, rows,
                    retention_many[i].rows.tail);
    r = sql_prepare_once(tx->db, text.data, &q, err);
    if (r == 0 && (r = sql_step(q, err)) > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

/* All that is left of them, in one message to a server. */
static int retention_remove_whole(struct store_tx *tx, const char *rows, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf script = STRBUF_INIT;

    for (size_t i = 0; i < AQ_COUNT(retention_whole); i++)
        strbuf_addf(&script, "%s%s%s", retention_whole[i].head, rows, retention_whole[i].tail);
    return sql_run_script(tx->db, script.data, err);
}

#define RETENTION_UNNEEDED_ARRAYS                                                  \
    "SELECT a.id FROM arrays a WHERE a.ended_at < ? AND NOT EXISTS"                \
    " (SELECT 1 FROM sessions s WHERE s.array_id = a.id) AND NOT EXISTS (SELECT 1" \
    " FROM array_dependencies d JOIN sessions l ON l.seq = d.session_seq"          \
    " WHERE d.array_id = a.id AND l.terminated_at IS NULL)"

/* Arrays that have ended go with their last element, unless a live session waits for them. */
static int retention_remove_arrays(struct store_tx *tx, int64_t before_usec, struct aq_error *err)
{
    int r = retention_change(
        tx, "DELETE FROM array_dependencies WHERE array_id IN (" RETENTION_UNNEEDED_ARRAYS ")",
        &before_usec, 1, err);

    if (r >= 0)
        r = retention_change(tx, "DELETE FROM arrays WHERE id IN (" RETENTION_UNNEEDED_ARRAYS ")",
                             &before_usec, 1, err);

    return AQ_MIN(r, 0);
}

/* The same of bookings that have finished. */
static int retention_remove_bookings(struct store_tx *tx, int64_t before_usec, struct aq_error *err)
{
    int r = retention_change(tx,
                             "DELETE FROM bookings WHERE finished_at < ? AND NOT EXISTS"
                             " (SELECT 1 FROM sessions s WHERE s.booking_id = bookings.id)",
                             &before_usec, 1, err);

    return AQ_MIN(r, 0);
}

#define RETENTION_ENDED_SERVICES                                            \
    "SELECT m.id FROM model_services m WHERE m.ended_at < ? AND NOT EXISTS" \
    " (SELECT 1 FROM sessions s WHERE s.service_id = m.id)"

/* Model services that have ended go with their last replica. */
static int retention_remove_services(struct store_tx *tx, int64_t before_usec, struct aq_error *err)
{
    static const char *const statements[] = {
        "DELETE FROM model_service_revisions WHERE service_id IN (" RETENTION_ENDED_SERVICES ")",
        "DELETE FROM model_service_history WHERE service_id IN (" RETENTION_ENDED_SERVICES ")",
        "DELETE FROM model_services WHERE id IN (" RETENTION_ENDED_SERVICES ")",
    };
    int r = 0;

    for (size_t i = 0; r >= 0 && i < AQ_COUNT(statements); i++)
        r = retention_change(tx, statements[i], &before_usec, 1, err);
    return AQ_MIN(r, 0);
}

/* 1 if they are gone; 0 if they have more rows than go at a time: some of these are. */
static int retention_remove_sessions(struct store_tx *tx, const char *rows, struct aq_error *err)
{
    int64_t left = RETENTION_ROWS_AT_A_TIME, count;
    int r = retention_count_many(tx, rows, &count, err);

    if (r < 0)
        return r;
    if (count <= left) {
        r = retention_remove_whole(tx, rows, err);
        AQ_FAULT("store.retention.sessions");
        return r < 0 ? r : 1;
    }
    for (size_t i = 0; r >= 0 && i < AQ_COUNT(retention_many) && left > 0; i++) {
        r = retention_remove_many(tx, &retention_many[i], rows, left, err);
        left -= AQ_MAX(r, 0);
    }
    return AQ_MIN(r, 0);
}

static int retention_remove_chosen(struct store_tx *tx, struct retention_piece *piece,
                                   const struct retention_chosen *chosen, struct aq_error *err)
{
    int r = 1;

    if (chosen->count > 0 && piece->entity == RETENTION_HISTORY) {
        r = retention_remove_many(tx, &retention_many[0], chosen->rows.data,
                                  RETENTION_ROWS_AT_A_TIME, err);
        piece->removed += AQ_MAX(r, 0);
        r = r < 0 ? r : r < RETENTION_ROWS_AT_A_TIME;
    } else if (chosen->count > 0) {
        r = retention_remove_sessions(tx, chosen->rows.data, err);
        piece->removed += r > 0 ? chosen->count : 0;
    }
    if (r > 0 && piece->entity == RETENTION_SESSIONS)
        r = retention_remove_arrays(tx, piece->before_usec, err) < 0
                    || retention_remove_bookings(tx, piece->before_usec, err) < 0
                    || retention_remove_services(tx, piece->before_usec, err) < 0
                ? -err->code
                : r;
    if (r > 0) {
        piece->place = chosen->last;
        piece->is_last = chosen->is_end;
    }
    return AQ_MIN(r, 0);
}

static int retention_remove_next_sessions(struct store_tx *tx, struct retention_piece *piece,
                                          struct aq_error *err)
{
    struct retention_chosen chosen;
    int r = retention_choose(tx, piece, &chosen, err);

    if (r == 0)
        r = retention_remove_chosen(tx, piece, &chosen, err);
    strbuf_done(&chosen.rows);
    return r;
}

/* ---- runs ---- */

static int retention_note_run(struct store_tx *tx, const struct retention_piece *piece,
                              struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(
        tx->db,
        "INSERT INTO retention_runs (entity, started_at, ended_at, removed) VALUES (?,?,?,?)"
        " ON CONFLICT (entity) DO UPDATE SET removed = excluded.removed +"
        " CASE WHEN retention_runs.started_at = excluded.started_at THEN retention_runs.removed"
        " ELSE 0 END, started_at = excluded.started_at, ended_at = excluded.ended_at",
        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, retention_names[piece->entity]);
    sql_put_int(q, piece->started_usec);
    sql_put_time(q, piece->is_last ? piece->now_usec : 0);
    sql_put_int(q, piece->removed);
    return sql_run(q, err);
}

static int retention_remove_rows(struct store_tx *tx, struct retention_piece *piece,
                                 struct aq_error *err)
{
    if (piece->entity == RETENTION_AUDIT_LOG)
        return retention_remove_audit_log(tx, piece, err);
    if (piece->entity == RETENTION_EVENTS)
        return retention_remove_events(tx, piece, err);
    if (retention_tables[piece->entity].name)
        return retention_remove_dated(tx, piece, err);
    return retention_remove_next_sessions(tx, piece, err);
}

/* A server that knows nothing of new tables would read all of them for each statement. */
int retention_remove(struct store_tx *tx, struct retention_piece *piece, struct aq_error *err)
{
    const struct sql_ops *ops = tx->db->ops;
    int r = ops->prefer_indexes ? sql_run_constant(tx->db, ops->prefer_indexes, err) : 0;

    piece->removed = 0;
    piece->is_last = false;
    if (r == 0)
        r = retention_remove_rows(tx, piece, err);
    if (r == 0 && ops->prefer_any)
        r = sql_run_constant(tx->db, ops->prefer_any, err);
    return r < 0 ? r : retention_note_run(tx, piece, err);
}

/* ---- what there is ---- */

/* Rows, those that would go with what is older than '?', time of the oldest. */
static const char retention_sessions_report[] =
    "SELECT (SELECT COUNT(*) FROM sessions)"
    " - (SELECT COUNT(*) FROM sessions INDEXED BY sessions_live_name WHERE terminated_at IS NULL),"
    " (SELECT COUNT(*) FROM sessions s WHERE s.status_changed_at < ? AND " RETENTION_IS_UNNEEDED
    "), (SELECT MIN(status_changed_at) FROM sessions WHERE terminated_at IS NOT NULL)";
static const char retention_history_report[] =
    "SELECT COUNT(*), (SELECT COUNT(*) FROM sessions s JOIN session_history h"
    " ON h.session_seq = s.seq WHERE s.status_changed_at < ? AND " RETENTION_HAS_ENDED "),"
    " MIN(at) FROM session_history";

static char *retention_format_report(enum retention_entity entity)
{
    const struct retention_table *t = &retention_tables[entity];

    if (!t->name)
        return aq_strdup(entity == RETENTION_SESSIONS ? retention_sessions_report
                                                      : retention_history_report);
    if (entity == RETENTION_AUDIT_LOG)
        return aq_strdup("SELECT COUNT(*), (SELECT COUNT(*) FROM audit_log WHERE at < ?"
                         " OR " RETENTION_IS_BEYOND "), MIN(at) FROM audit_log");
    return aq_format("SELECT COUNT(*), (SELECT COUNT(*) FROM %s WHERE %s < ?), MIN(%s) FROM %s",
                     t->name, t->at, t->at, t->name);
}

static int retention_count(struct store_tx *tx, enum retention_entity entity, int64_t before_usec,
                           struct retention_report *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *text = retention_format_report(entity);
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(tx->db, text, &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, before_usec);
    if ((r = sql_step(q, err)) > 0) {
        ret->rows = sql_get_int(q);
        ret->removable = sql_get_int(q);
        ret->oldest_usec = sql_get_int(q);
    }
    return AQ_MIN(r, 0);
}

int retention_read(struct store_tx *tx, enum retention_entity entity, int64_t before_usec,
                   bool count, struct retention_report *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    *ret = (struct retention_report){ 0 };
    r = count ? retention_count(tx, entity, before_usec, ret, err) : 0;
    if (r == 0)
        r = sql_prepare(tx->db,
                        "SELECT started_at, ended_at, removed FROM retention_runs"
                        " WHERE entity = ?",
                        &q, err);
    if (r < 0)
        return r;
    sql_put_text(q, retention_names[entity]);
    if ((r = sql_step(q, err)) > 0) {
        ret->started_usec = sql_get_int(q);
        ret->ended_usec = sql_get_int(q);
        ret->removed = sql_get_int(q);
    }
    return AQ_MIN(r, 0);
}
