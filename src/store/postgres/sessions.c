/* SPDX-License-Identifier: Apache-2.0 */
/* Other connections to the same database: poolers, locks, and sessions by their names. */
#include <errno.h>

#include "store/postgres/postgres.h"

/* Two numbers of ours; such locks are of one database. */
#define LOCK "1095522644, 1"        /* "AQT" */
#define POOLER_MARK "1095522644, 2" /* held shared, for the time of a check */

int postgres_ask(struct sql *db, const char *query, const char *param, int64_t *ret,
                 struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, query, &q, err);

    if (r < 0)
        return r;
    if (param)
        sql_put_text(q, param);
    r = sql_step(q, err);
    if (r > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

/* ---- poolers ---- */

/* A pooler that gives connections to transactions, not to clients, lends the one that has our lock
 * to the next client that asks: to a second connection of ours.
 */
static int postgres_find_pooler(struct postgres *pg, int64_t *ret_locks, struct aq_error *err)
{
    static const char query[] =
        "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    struct sql_conf conf = { .where = pg->where, .session = pg->session };
    AQ_CLEANUP(sql_closep) struct sql *other = NULL;
    int r = sql_open(pg->sql.ops, &conf, &other, err);

    return r < 0 ? r : postgres_ask(other, query, NULL, ret_locks, err);
}

int postgres_check_pooler(struct sql *db, struct aq_error *err)
{
    int64_t locks = 0, unlocked;
    int r = postgres_ask(db, "SELECT pg_advisory_lock_shared(" POOLER_MARK ") IS NULL", NULL,
                         &unlocked, err);

    if (r == 0)
        r = postgres_find_pooler(postgres_of(db), &locks, err);
    if (r == 0)
        r = postgres_ask(db, "SELECT pg_advisory_unlock_shared(" POOLER_MARK ")", NULL, &unlocked,
                         err);
    if (r < 0 || locks == 0)
        return r;
    return aq_fail(err, EINVAL,
                   "the database is behind a pooler that gives a connection to a transaction: "
                   "set its pool_mode to session, or connect to the server itself");
}

/* ---- one program at a time ---- */

int postgres_lock(struct sql *db, struct aq_error *err)
{
    int64_t got = 0;
    int r = postgres_ask(db, "SELECT pg_try_advisory_lock(" LOCK ")", NULL, &got, err);

    return r < 0 ? r : got != 0;
}

int postgres_unlock(struct sql *db, struct aq_error *err)
{
    int64_t had;

    return postgres_ask(db, "SELECT pg_advisory_unlock(" LOCK ")", NULL, &had, err);
}

int postgres_end_lock_holder(struct sql *db, struct aq_error *err)
{
    int64_t ended = 0;

    return postgres_ask(db,
                        "SELECT COUNT(pg_terminate_backend(l.pid, 5000)) FROM pg_locks l"
                        " JOIN pg_database d ON d.oid = l.database"
                        " WHERE l.locktype = 'advisory' AND d.datname = current_database()"
                        " AND (l.classid, l.objid) = (" LOCK ") AND l.pid <> pg_backend_pid()",
                        NULL, &ended, err);
}

/* ---- sessions by their names ----
 *
 * Each role sees the names of all sessions in pg_stat_activity. A pooler may append the client's
 * address to a name. wait_event_type is 'Client' while a session waits for its client to send the
 * next statement or to read the answer, also in the middle of a pipeline.
 */

#define NAMED                                                                               \
    " FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()" \
    " AND starts_with(application_name, ?)"
#define IS_IDLE " (backend_xid IS NULL OR wait_event_type = 'Client')"

static int postgres_count(struct sql *db, const char *query, const char *prefix,
                          struct aq_error *err)
{
    int64_t count = 0;
    int r = postgres_ask(db, query, prefix, &count, err);

    return r < 0 ? r : (int)count;
}

int postgres_count_protected_sessions(struct sql *db, const char *prefix, struct aq_error *err)
{
    return postgres_count(db,
                          "SELECT COUNT(*)" NAMED " AND NOT pg_has_role(usesysid, 'USAGE')"
                          " AND NOT pg_has_role('pg_signal_backend', 'USAGE')",
                          prefix, err);
}

int postgres_count_working_sessions(struct sql *db, const char *prefix, struct aq_error *err)
{
    return postgres_count(db, "SELECT COUNT(*)" NAMED " AND NOT" IS_IDLE, prefix, err);
}

int postgres_count_sessions(struct sql *db, const char *prefix, struct aq_error *err)
{
    return postgres_count(db, "SELECT COUNT(*)" NAMED, prefix, err);
}

int postgres_end_idle_sessions(struct sql *db, const char *prefix, struct aq_error *err)
{
    return postgres_count(db, "SELECT COUNT(pg_terminate_backend(pid))" NAMED " AND" IS_IDLE,
                          prefix, err);
}

int postgres_end_sessions(struct sql *db, const char *prefix, struct aq_error *err)
{
    return postgres_count(db, "SELECT COUNT(pg_terminate_backend(pid))" NAMED, prefix, err);
}
