/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered changes of the schema. */
#include "store/migrate.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"

/* Compare what was applied with the list; returns how many were. */
static int migrate_check_applied(struct sql *db, const struct migration *list, size_t count,
                                 struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    size_t applied = 0;
    int r = sql_prepare_once(db,
                             "SELECT number, name, checksum FROM schema_migrations"
                             " ORDER BY number",
                             &q, err);

    while (r >= 0 && (r = sql_step(q, err)) > 0) {
        int64_t number = sql_get_int(q);
        const char *name = sql_get_text(q), *checksum = sql_get_text(q);

        if (applied == count)
            return aq_fail(err, EPROTO,
                           "the database was made by a newer program: it has "
                           "migration %04lld '%s', this one knows %zu; install the newer "
                           "program or restore an older backup",
                           (long long)number, name, count);
        if (number != list[applied].number || strcmp(checksum, list[applied].checksum) != 0)
            return aq_fail(err, EUCLEAN,
                           "migration %04lld '%s' of the database is not this "
                           "program's '%s'; use the program that made the database",
                           (long long)number, name, list[applied].name);
        applied++;
    }
    return r < 0 ? r : (int)applied;
}

int migrate_check(struct sql *db, const struct migration *list, size_t count, struct aq_error *err)
{
    int applied = migrate_check_applied(db, list, count, err);

    if (applied < 0 || (size_t)applied == count)
        return AQ_MIN(applied, 0);
    return aq_fail(err, EPROTO,
                   "the database is of an older version: it has %d of this program's %zu "
                   "migrations; use the program of its manager",
                   applied, count);
}

static int migrate_apply(struct sql *db, const struct migration *m, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_run_script(db, m->script, err);

    if (r == 0)
        r = sql_prepare_once(db,
                             "INSERT INTO schema_migrations (number, name, checksum,"
                             " applied_at) VALUES (?, ?, ?, ?)",
                             &q, err);
    if (r < 0)
        return r;
    sql_put_int(q, m->number);
    sql_put_text(q, m->name);
    sql_put_text(q, m->checksum);
    sql_put_int(q, clock_realtime_usec());
    r = sql_run(q, err);
    if (r == 0)
        r = sql_settle(db, err);
    AQ_FAULT("store.migrate.written");
    return r < 0 ? r : sql_run_script(db, "COMMIT", err);
}

int migrate(struct sql *db, const struct migration *list, size_t count, struct aq_error *err)
{
    int applied, r;

    r = sql_run_script(db,
                       "CREATE TABLE IF NOT EXISTS schema_migrations ("
                       " number INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL,"
                       " checksum TEXT NOT NULL, applied_at INTEGER NOT NULL)",
                       err);
    if (r < 0)
        return r;
    applied = migrate_check_applied(db, list, count, err);
    if (applied < 0)
        return applied;
    for (size_t i = (size_t)applied; i < count; i++) {
        r = sql_run_script(db, "BEGIN", err);
        if (r == 0)
            r = migrate_apply(db, &list[i], err);
        if (r < 0) {
            if (db->ops->is_in_transaction(db))
                (void)sql_run_script(db, "ROLLBACK", NULL);
            (void)aq_error_wrap(err, "migration '%s'", list[i].name);
            return r;
        }
        AQ_FAULT("store.migrate.applied");
    }
    return 0;
}
