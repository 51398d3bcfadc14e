/* SPDX-License-Identifier: Apache-2.0 */
/* migrate.h - numbered changes of the schema
 *
 * src/store/migrations/NNNN_imperative_name.sql, embedded by tools/embed-sql.
 * A released file is never edited: the database remembers the SHA-256 of each
 * that was applied.
 *
 * Managers of neighbouring versions serve one database in turn while a cluster
 * is upgraded, so a program also opens a database that is newer than itself,
 * unless schema_readers says that it is too old. A migration after which older
 * programs must not go on (a column that they have to fill, a value that they
 * do not know) has a line "-- readers: NNNN" in its first comment: the last
 * migration of the oldest program that may, most often its own number.
 */
#ifndef AQ_STORE_MIGRATE_H
#define AQ_STORE_MIGRATE_H

#include "store/sql.h"

struct migration {
    int64_t number; /* 1, 2, ... */
    const char *name;
    const char *checksum; /* SHA-256 of the script, hex */
    const char *script;
};

extern const struct migration store_migrations[];
extern const size_t store_migration_count;

/* Apply those that the database does not have, each in a transaction. -EPROTO
 * if it has more than 'count' and a program that knows 'count' is too old for it, -EUCLEAN if one
 * it has differs.
 */
int migrate(struct sql *db, const struct migration *list, size_t count, struct aq_error *err);

/* How many migrate() would apply, or its errors. The database is not empty. */
int migrate_count_due(struct sql *db, const struct migration *list, size_t count,
                      struct aq_error *err);

/* Has it all of them, and no other? -EPROTO or -EUCLEAN if not. */
int migrate_check(struct sql *db, const struct migration *list, size_t count, struct aq_error *err);

#endif
