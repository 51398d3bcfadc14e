/* SPDX-License-Identifier: Apache-2.0 */
/* bench_database.h - a fresh database on a PostgreSQL server */
#ifndef AQ_BENCH_DATABASE_H
#define AQ_BENCH_DATABASE_H

#include <stdbool.h>

/* The URI of the database, owned by this, and of one from which it is made. */
struct bench_database {
    char *admin, *uri;
};

/* 'server' is a URI that has %s in place of a database's name. What the server says against it goes
 * to standard error. End it in any case.
 */
bool bench_database_make(struct bench_database *db, const char *server);
/* Drop it; nothing of one that was not made. */
void bench_database_drop(struct bench_database *db);

#endif
