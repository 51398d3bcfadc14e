/* SPDX-License-Identifier: Apache-2.0 */
/* postgres.h - inside the engine for PostgreSQL
 *
 * One connection in libpq's pipeline mode: statements are sent without waiting
 * for each other's answers, until somebody needs one. A statement that must
 * change a row is sent as
 *   WITH changed AS (... RETURNING 1) SELECT 1 / COUNT(*) FROM changed
 * so that none is an error of the server (division by zero): whatever comes
 * after it in the pipeline, COMMIT too, is skipped.
 * https://www.postgresql.org/docs/15/libpq-pipeline-mode.html
 */
#ifndef AQ_STORE_POSTGRES_H
#define AQ_STORE_POSTGRES_H

#include <libpq-fe.h>

#include "store/sql.h"

/* What was sent and not answered yet. */
struct postgres_waiting {
    sql_refuse_fn refuse; /* NULL = none */
    const void *of;
    struct postgres_stmt *keep; /* takes the result; NULL = nobody */
    bool is_commit;
};

struct postgres {
    struct sql sql; /* first */
    PGconn *conn;
    char *where, *session;
    unsigned lock_msec, answer_msec;
    bool read_only, is_foreign;
    bool is_broken;      /* the server said that it ends the connection */
    unsigned generation; /* counts connections: statements are prepared on one */
    unsigned statement_count;
    struct postgres_waiting *waiting;
    size_t waiting_count, waiting_cap;
};

struct postgres_param {
    const char *value; /* NULL = null */
    int len, format;   /* of bytes */
    char number[24];
};

struct postgres_stmt {
    struct sql_stmt stmt; /* first */
    char *text;           /* with $1 */
    char *fetch;          /* of a scan: for its next rows */
    unsigned id;          /* 0 = not kept on the server */
    unsigned prepared_on; /* generation, 0 = none */
    bool is_commit, wants_one;
    struct postgres_param *params;
    const char **values; /* three arrays as libpq wants them */
    int *lengths, *formats;
    int param_count;
    PGresult *result;
    int row; /* -1 = before the first */
};

struct postgres *postgres_of(struct sql *sql);

/* ---- text.c ---- */

/* The text of a statement for PostgreSQL: '?' as $1, $2 ..., '?N' as $N, hints to
 * SQLite's planner dropped, json_each() by its name. free() it.
 */
char *postgres_translate(const char *text, int *ret_params);

/* The same of a statement that must change a row. */
char *postgres_translate_one(const char *text);

/* The script of a migration, with PostgreSQL's types. */
char *postgres_translate_script(const char *script);

/* ---- failure.c ---- */

/* Fill 'err' from a result, or from the connection if that is NULL. */
int postgres_fail(struct postgres *pg, const PGresult *result, struct aq_error *err);

/* The connection is of no more use: 'text' says why. */
int postgres_fail_connection(struct postgres *pg, const char *text, struct aq_error *err);

/* ---- sessions.c: the members of struct sql_ops about other connections ---- */

/* SQL on the row manager_lease l: its holder has sessions; the server is at work on one's
 * transaction; the holder's clock.
 */
#define POSTGRES_HOLDER_HAS(CONDITION)                                  \
    "(l.incarnation <> '' AND EXISTS (SELECT 1 FROM pg_stat_activity a" \
    " WHERE a.datname = current_database()"                             \
    " AND starts_with(a.application_name, 'aliquot:' || l.incarnation)" CONDITION "))"
#define POSTGRES_HOLDER_HAS_SESSIONS POSTGRES_HOLDER_HAS("")
#define POSTGRES_HOLDER_IS_WORKING \
    POSTGRES_HOLDER_HAS(" AND a.backend_xid IS NOT NULL AND a.wait_event_type <> 'Client'")

#define POSTGRES_HOLDER_CLOCK                                      \
    "(CASE WHEN (to_jsonb(l) ->> 'clock_epoch')::bigint = l.epoch" \
    " THEN (to_jsonb(l) ->> 'clock_at')::bigint ELSE 0 END)"

int postgres_check_pooler(struct sql *db, struct aq_error *err);
int postgres_lock(struct sql *db, struct aq_error *err);
int postgres_unlock(struct sql *db, struct aq_error *err);
int postgres_end_lock_holder(struct sql *db, struct aq_error *err);
int postgres_count_protected_sessions(struct sql *db, const char *prefix, struct aq_error *err);
int postgres_count_working_sessions(struct sql *db, const char *prefix, struct aq_error *err);
int postgres_count_sessions(struct sql *db, const char *prefix, struct aq_error *err);
int postgres_end_idle_sessions(struct sql *db, const char *prefix, struct aq_error *err);
int postgres_end_sessions(struct sql *db, const char *prefix, struct aq_error *err);

/* The one value of the one row of a query, with a parameter unless that is NULL. */
int postgres_ask(struct sql *db, const char *query, const char *param, int64_t *ret,
                 struct aq_error *err);

/* ---- pipeline.c ---- */

/* Send the statement with the parameters that were put. */
int postgres_send(struct postgres_stmt *q, const struct postgres_waiting *waiting,
                  struct aq_error *err);

/* Send a text without parameters. */
int postgres_send_text(struct postgres *pg, const char *text,
                       const struct postgres_waiting *waiting, struct aq_error *err);

/* Wait for the answers to all that was sent; the first error. */
int postgres_settle(struct postgres *pg, struct aq_error *err);

/* Wait for a result of what was sent, or its end (NULL): at most pg->answer_msec. */
int postgres_await_result(struct postgres *pg, PGresult **ret, struct aq_error *err);

/* Drop what waits for answers that will never come. */
void postgres_forget(struct postgres *pg);

#endif
