/* SPDX-License-Identifier: Apache-2.0 */
/* Numbered changes of the schema. */
#include "store/migrate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fault.h"

/* May a program that knows 'count' migrations serve a database that has later ones? 1 or 0. */
static int migrate_allows_older(struct sql *db, size_t count, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, "SELECT oldest FROM schema_readers", &q, err);

    if (r == 0)
        r = sql_step(q, err);
    return r <= 0 ? r : sql_get_int(q) <= (int64_t)count;
}

static int migrate_check_one(const struct migration *m, int64_t number, const char *name,
                             const char *checksum, struct aq_error *err)
{
    if (number == m->number && strcmp(checksum, m->checksum) == 0)
        return 0;
    return aq_fail(err, EUCLEAN,
                   "migration %04lld '%s' of the database is not this program's '%s'; use the "
                   "program that made the database",
                   (long long)number, name, m->name);
}

/* Compare what was applied with the list; returns how many were, later ones too. */
static int migrate_check_applied(struct sql *db, const struct migration *list, size_t count,
                                 struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char last[64] = "";
    int64_t number = 0;
    size_t applied = 0;
    int r = sql_prepare_once(db,
                             "SELECT number, name, checksum FROM schema_migrations"
                             " ORDER BY number",
                             &q, err);

    while (r >= 0 && (r = sql_step(q, err)) > 0) {
        const char *name, *checksum;

        number = sql_get_int(q);
        name = sql_get_text(q);
        checksum = sql_get_text(q);
        (void)snprintf(last, sizeof(last), "%s", name);
        if (applied < count
            && (r = migrate_check_one(&list[applied], number, name, checksum, err)) < 0)
            return r;
        applied++;
    }
    if (r == 0 && applied > count)
        r = migrate_allows_older(db, count, err);
    if (r == 0 && applied > count)
        return aq_fail(err, EPROTO,
                       "the database was made by a newer program: it has migration %04lld '%s', "
                       "this one knows %zu; install the newer program or restore an older backup",
                       (long long)number, last, count);
    return r < 0 ? r : (int)applied;
}

int migrate_count_due(struct sql *db, const struct migration *list, size_t count,
                      struct aq_error *err)
{
    int applied = migrate_check_applied(db, list, count, err);

    return applied < 0 ? applied : AQ_MAX((int)count - applied, 0);
}

int migrate_check(struct sql *db, const struct migration *list, size_t count, struct aq_error *err)
{
    int applied = migrate_check_applied(db, list, count, err);

    if (applied < 0 || (size_t)applied == count)
        return AQ_MIN(applied, 0);
    return aq_fail(err, EPROTO,
                   "the database is of %s version: it has %d migrations, and this program "
                   "has %zu; use the program of its manager",
                   (size_t)applied < count ? "an older" : "a newer", applied, count);
}

/* Of the line "-- readers: NNNN" among the comments that the script begins with; 0 = none. */
static int64_t migrate_find_readers(const char *script)
{
    static const char mark[] = "-- readers: ";

    for (const char *line = script; strncmp(line, "--", 2) == 0;) {
        const char *end = strchr(line, '\n');

        if (strncmp(line, mark, strlen(mark)) == 0)
            return strtoll(line + strlen(mark), NULL, 10);
        if (!end)
            break;
        line = end + 1;
    }
    return 0;
}

static int migrate_set_readers(struct sql *db, int64_t oldest, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_once(db, "UPDATE schema_readers SET oldest = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, oldest);
    r = sql_step(q, err);
    return AQ_MIN(r, 0);
}

static int migrate_apply(struct sql *db, const struct migration *m, struct aq_error *err)
{
    int64_t readers = migrate_find_readers(m->script);
    struct sql_stmt *q;
    int r = sql_run_script(db, m->script, err);

    if (r == 0 && readers)
        r = migrate_set_readers(db, readers, err);
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
