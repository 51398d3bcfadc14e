/* SPDX-License-Identifier: Apache-2.0 */
/* bench_database.c - a fresh database on a PostgreSQL server */
#include "bench_database.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

static void bench_database_ignore_notice(void *data, const char *text)
{
    (void)data;
    (void)text;
}

static bool bench_database_run(const char *uri, const char *script)
{
    PGconn *conn = PQconnectdb(uri);
    PGresult *result;
    bool ok;

    (void)PQsetNoticeProcessor(conn, bench_database_ignore_notice, NULL);
    result = PQexec(conn, script);
    ok = PQresultStatus(result) == PGRES_COMMAND_OK;
    if (!ok)
        (void)fprintf(stderr, "PostgreSQL: %s", PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
    return ok;
}

bool bench_database_make(struct bench_database *db, const char *server)
{
    const char *at = strstr(server, "%s");
    int len = at ? (int)(at - server) : 0;

    if (!at)
        return false;
    db->admin = aq_format("%.*spostgres%s", len, server, at + 2);
    db->uri = aq_format("%.*saliquot_bench%s", len, server, at + 2);
    return db->admin && db->uri
           && bench_database_run(db->admin, "DROP DATABASE IF EXISTS aliquot_bench WITH (FORCE)")
           && bench_database_run(db->admin, "CREATE DATABASE aliquot_bench");
}

void bench_database_drop(struct bench_database *db)
{
    if (db->admin)
        (void)bench_database_run(db->admin, "DROP DATABASE IF EXISTS aliquot_bench WITH (FORCE)");
    free(db->admin);
    free(db->uri);
}
