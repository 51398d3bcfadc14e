/* SPDX-License-Identifier: Apache-2.0 */
/* The measure of bench/store --server: a bare program in libpq's pipeline mode. */
#include "store_pipeline.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/uuid.h"

static const char insert_session[] =
    "INSERT INTO sessions (seq, id, name, type, status, version, result, priority, user_id,"
    " project_id, access_key, domain, resource_group, kernel_count, spec, forced, created_at,"
    " status_changed_at) VALUES ($1, $2, $3, 'batch', 'PENDING', 1, 'UNDEFINED',"
    " 10, $4, $5, 'AKIAIOSFODNN7EXAMPLE', 'default', NULL, 1, $6, 0, $7, $7)";
static const char insert_kernel[] =
    "INSERT INTO kernels (session_seq, rank, id, role, role_index, status, version, attempt,"
    " requested, status_changed_at) VALUES ($1, 0, $2, 'main', 1, 'PENDING', 1, 0, $3, $4)";
static const char count_up[] = "UPDATE manager_lease SET beat = beat + 1 WHERE epoch = $1";
static const char spec[] = "{\"image\":\"\",\"command\":\"true\"}";
static const char slots[] = "{\"cpu\":1000000,\"mem\":1073741824}";

static bool prepare(PGconn *conn, const char *name, const char *text)
{
    PGresult *result = PQprepare(conn, name, text, 0, NULL);
    bool ok = PQresultStatus(result) == PGRES_COMMAND_OK;

    PQclear(result);
    return ok;
}

static void send_session(PGconn *conn, const struct pipeline_owner *owner, size_t seq)
{
    char number[24], id[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX], name[32], now[24];
    struct uuid session_id = uuid_random(), kernel_id = uuid_random();
    const char *session[] = {
        number, uuid_format(&session_id, id), name, owner->user, owner->project, spec, now
    };
    const char *of_kernel[] = { number, uuid_format(&kernel_id, kernel), slots, now };

    (void)snprintf(number, sizeof(number), "%zu", seq);
    (void)snprintf(name, sizeof(name), "bench-%zu", seq);
    (void)snprintf(now, sizeof(now), "%lld", (long long)clock_realtime_usec());
    (void)PQsendQueryPrepared(conn, "session", 7, session, NULL, NULL, 0);
    (void)PQsendQueryPrepared(conn, "kernel", 4, of_kernel, NULL, NULL, 0);
}

/* Answers up to the end of the pipeline; whether all were good. */
static bool take_answers(PGconn *conn)
{
    bool ok = true;

    for (;;) {
        PGresult *result = PQgetResult(conn);
        ExecStatusType status = PQresultStatus(result);

        PQclear(result);
        if (!result)
            continue; /* the end of one statement */
        if (status == PGRES_PIPELINE_SYNC)
            return ok;
        ok = ok && status == PGRES_COMMAND_OK;
    }
}

static bool send_commit(PGconn *conn, const struct pipeline_owner *owner, size_t first, size_t n)
{
    const char *epoch[] = { "1" };

    (void)PQsendQueryPrepared(conn, "begin", 0, NULL, NULL, NULL, 0);
    for (size_t i = 0; i < n; i++)
        send_session(conn, owner, first + i);
    (void)PQsendQueryPrepared(conn, "beat", 1, epoch, NULL, NULL, 0);
    (void)PQsendQueryPrepared(conn, "commit", 0, NULL, NULL, NULL, 0);
    return PQpipelineSync(conn) && take_answers(conn);
}

double pipeline_measure(const char *uri, const struct pipeline_owner *owner, size_t count,
                        size_t together)
{
    PGconn *conn = PQconnectdb(uri);
    bool ok = PQstatus(conn) == CONNECTION_OK && prepare(conn, "session", insert_session)
              && prepare(conn, "kernel", insert_kernel) && prepare(conn, "beat", count_up)
              && prepare(conn, "begin", "BEGIN") && prepare(conn, "commit", "COMMIT")
              && PQenterPipelineMode(conn);
    int64_t began = clock_monotonic_usec();
    size_t done = 0;

    while (ok && done < count) {
        ok = send_commit(conn, owner, 1000000 + done, together);
        done += together;
    }
    if (!ok)
        (void)fprintf(stderr, "bench/store: %s", PQerrorMessage(conn));
    PQfinish(conn);
    return ok ? (double)done * 1e6 / (double)(clock_monotonic_usec() - began) : -1;
}
