/* SPDX-License-Identifier: Apache-2.0 */
/* The measure of bench/store --server: a bare program in libpq's pipeline mode. */
#include "store_pipeline.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/uuid.h"

/* The statements of the store, as its engine sends them. */
#define CHANGED(text) "WITH changed AS (" text " RETURNING 1) SELECT 1 / COUNT(*) FROM changed"
#define HISTORY \
    "INSERT INTO session_history (session_seq, rank, version, at, status, reason) SELECT "
#define NUMBER_OF_PIPELINE "1000000"

enum pipeline_statement {
    PIPELINE_BEGIN,
    PIPELINE_COMMIT,
    PIPELINE_BEAT,
    PIPELINE_SESSION,
    PIPELINE_KERNEL,
    PIPELINE_SESSION_EVENT,
    PIPELINE_SESSION_STATUS,
    PIPELINE_SESSION_HISTORY,
    PIPELINE_KERNEL_STATUS,
    PIPELINE_KERNEL_HISTORY,
    PIPELINE_KERNEL_EVENT,
    PIPELINE_LEDGER,
    PIPELINE_ATTEMPT,
};

static const char *const texts[] = {
    [PIPELINE_BEGIN] = "BEGIN",
    [PIPELINE_COMMIT] = "COMMIT",
    [PIPELINE_BEAT] = CHANGED("UPDATE manager_lease SET beat = beat + 1 WHERE epoch = $1"),
    [PIPELINE_SESSION] = CHANGED(
        "INSERT INTO sessions (seq, id, name, type, status, version, result, priority,"
        " user_id, project_id, access_key, domain, resource_group, kernel_count, image,"
        " tag, cluster_mode, spec, reason, status_data, forced, created_at,"
        " status_changed_at, starts_at, running_at, array_id, array_index, booking_id,"
        " service_id, service_revision, replica_number, ratio_ppm, half_share) VALUES"
        " ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13,$14,$15,$16,$17,$18,$19,$20,$21,"
        "$22,$23,$24,$25,$26,$27,$28,$29,$30,$31,$32,$33)"),
    [PIPELINE_KERNEL] =
        "INSERT INTO kernels (session_seq, rank, id, role, role_index, status, version, attempt,"
        " agent_id, requested, alloc, service_ports, status_changed_at)"
        " VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$12,$13)",
    [PIPELINE_SESSION_EVENT] =
        "INSERT INTO session_events (number, at, name, session_seq, rank, reason, exit_code)"
        " SELECT $1, $2, $3, s.seq, -1, s.reason, (SELECT k.exit_code FROM kernels k"
        " WHERE k.session_seq = s.seq AND k.rank = 0) FROM sessions s WHERE s.id = $4",
    [PIPELINE_SESSION_STATUS] = CHANGED(
        "UPDATE sessions SET status = $1, version = version + 1, status_changed_at = $2,"
        " reason = CASE WHEN status = 'TERMINATING' AND reason IS NOT NULL THEN reason"
        "  ELSE COALESCE($3, CASE WHEN $4 THEN NULL ELSE reason END) END,"
        " status_data = COALESCE($5, status_data), result = COALESCE($6, result),"
        " retry = COALESCE($7, retry), rerun = COALESCE($8, rerun),"
        " running_at = COALESCE($9, running_at), terminated_at = $10,"
        " subnet = CASE WHEN $11 THEN NULL ELSE COALESCE($12, subnet) END"
        " WHERE id = $13 AND status = $14 AND version = $15"),
    [PIPELINE_SESSION_HISTORY] = HISTORY "seq, -1, $1, $2, $3, $4 FROM sessions WHERE id = $5",
    [PIPELINE_KERNEL_STATUS] = CHANGED(
        "UPDATE kernels SET status = $1, version = version + 1, status_changed_at = $2,"
        " reason = CASE WHEN status = 'TERMINATING' AND reason IS NOT NULL THEN reason"
        "  ELSE COALESCE($3, CASE WHEN $4 THEN NULL ELSE reason END) END,"
        " agent_id = CASE WHEN CAST($5 AS TEXT) IS NULL THEN agent_id ELSE NULLIF($6, '') END,"
        " alloc = CASE WHEN CAST($7 AS TEXT) IS NULL THEN alloc ELSE NULLIF($8, '') END,"
        " service_ports = COALESCE($9, service_ports), last_stat = COALESCE($10, last_stat),"
        " outputs = COALESCE($11, outputs), exit_code = COALESCE($12, exit_code),"
        " attempt = COALESCE(NULLIF($13, 0), attempt), terminated_at = $14"
        " WHERE id = $15 AND status = $16 AND version = $17"),
    [PIPELINE_KERNEL_HISTORY] = HISTORY
    "session_seq, rank, $1, $2, $3, $4 FROM kernels WHERE id = $5",
    [PIPELINE_KERNEL_EVENT] =
        "INSERT INTO session_events (number, at, name, reason, session_seq, rank, exit_code)"
        " SELECT $1, $2, $3, $4, session_seq, rank, exit_code FROM kernels WHERE id = $5",
    [PIPELINE_LEDGER] =
        "INSERT INTO allocations (session_seq, rank, version, slot, agent_id, amount, taken_at)"
        " SELECT k.session_seq, k.rank, k.version, r.key, k.agent_id, CAST(r.value AS BIGINT), $1"
        " FROM kernels k, json_each_text(CAST(k.requested AS JSON)) r"
        " WHERE k.id = $2 AND CAST(r.value AS BIGINT) <> 0",
    [PIPELINE_ATTEMPT] =
        "INSERT INTO session_attempts (session_seq, number, kind, first_at, last_at, attempts,"
        " detail) VALUES ($1, 1, $2, $3, $4, $5, $6)",
};

struct pipeline_session {
    char number[24], id[UUID_TEXT_MAX], kernel[UUID_TEXT_MAX];
};

struct pipeline {
    PGconn *conn;
    struct pipeline_owner owner;
    struct pipeline_session *sessions;
    int64_t last_event;
};

/* ---- one statement ---- */

static void send_statement(struct pipeline *p, enum pipeline_statement statement, int count,
                           const char *const *values)
{
    char name[8];

    (void)snprintf(name, sizeof(name), "p%d", (int)statement);
    (void)PQsendQueryPrepared(p->conn, name, count, values, NULL, NULL, 0);
}

#define SEND(p, statement, ...)                                        \
    do {                                                               \
        const char *const values_[] = { __VA_ARGS__ };                 \
        send_statement(p, statement, (int)AQ_COUNT(values_), values_); \
    } while (0)

static bool prepare_all(struct pipeline *p)
{
    bool ok = PQstatus(p->conn) == CONNECTION_OK;

    for (size_t i = 0; ok && i < AQ_COUNT(texts); i++) {
        PGresult *result;
        char name[8];

        (void)snprintf(name, sizeof(name), "p%d", (int)i);
        result = PQprepare(p->conn, name, texts[i], 0, NULL);
        ok = PQresultStatus(result) == PGRES_COMMAND_OK;
        PQclear(result);
    }
    return ok && PQenterPipelineMode(p->conn);
}

struct pipeline *pipeline_open(const char *uri, const struct pipeline_owner *owner, size_t count)
{
    struct pipeline *p = aq_alloc(sizeof(*p));

    p->owner = *owner;
    p->sessions = aq_alloc_array(count, sizeof(*p->sessions));
    p->last_event = strtoll(NUMBER_OF_PIPELINE, NULL, 10);
    p->conn = PQconnectdb(uri);
    if (prepare_all(p))
        return p;
    (void)fprintf(stderr, "bench/store: %s", PQerrorMessage(p->conn));
    pipeline_close(p);
    return NULL;
}

void pipeline_close(struct pipeline *p)
{
    if (!p)
        return;
    PQfinish(p->conn);
    free(p->sessions);
    free(p);
}

/* ---- sessions ---- */

/* The next number of an event, and the time. */
static void write_now(struct pipeline *p, char number[24], char now[24])
{
    (void)snprintf(number, 24, "%lld", (long long)++p->last_event);
    (void)snprintf(now, 24, "%lld", (long long)clock_realtime_usec());
}

static void create_session(struct pipeline *p, size_t i)
{
    struct uuid session_id = uuid_random(), kernel_id = uuid_random();
    struct pipeline_session *s = &p->sessions[i];
    char name[32], event[24], now[24];

    write_now(p, event, now);
    (void)snprintf(s->number, sizeof(s->number), "%lld", atoll(NUMBER_OF_PIPELINE) + (long long)i);
    (void)snprintf(name, sizeof(name), "bare-%zu", i);
    (void)uuid_format(&session_id, s->id);
    (void)uuid_format(&kernel_id, s->kernel);
    SEND(p, PIPELINE_SESSION, s->number, s->id, name, "batch", "PENDING", "0", "UNDEFINED", "10",
         p->owner.user, p->owner.project, PIPELINE_ACCESS_KEY, "default", "default", "1", NULL,
         NULL, "single-node", PIPELINE_SPEC, NULL, NULL, "0", now, now, NULL, NULL, NULL, NULL,
         NULL, NULL, NULL, NULL, NULL, NULL);
    SEND(p, PIPELINE_KERNEL, s->number, "0", s->kernel, "main", "1", "PENDING", "0", "0", NULL,
         PIPELINE_SLOTS, NULL, NULL, now);
    SEND(p, PIPELINE_SESSION_EVENT, event, now, "session_enqueued", s->id);
}

static void place_session(struct pipeline *p, size_t i)
{
    const struct pipeline_session *s = &p->sessions[i];
    char event[24], now[24];

    write_now(p, event, now);
    SEND(p, PIPELINE_KERNEL_STATUS, "SCHEDULED", now, NULL, "0", PIPELINE_AGENT, PIPELINE_AGENT,
         PIPELINE_ALLOC, PIPELINE_ALLOC, NULL, NULL, NULL, NULL, "0", NULL, s->kernel, "PENDING",
         "0");
    SEND(p, PIPELINE_LEDGER, now, s->kernel);
    SEND(p, PIPELINE_KERNEL_HISTORY, "1", now, "SCHEDULED", NULL, s->kernel);
    SEND(p, PIPELINE_SESSION_STATUS, "SCHEDULED", now, NULL, "0", NULL, NULL, NULL, NULL, NULL,
         NULL, "1", NULL, s->id, "PENDING", "0");
    SEND(p, PIPELINE_SESSION_HISTORY, "1", now, "SCHEDULED", NULL, s->id);
    SEND(p, PIPELINE_SESSION_EVENT, event, now, "session_scheduled", s->id);
    SEND(p, PIPELINE_ATTEMPT, s->number, "placed", now, now, "1", PIPELINE_CHOICES);
}

/* ---- transactions ---- */

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
        ok = ok && (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK);
    }
}

double pipeline_measure(struct pipeline *p, enum store_work work, size_t count, size_t together)
{
    int64_t began = clock_monotonic_usec();
    bool ok = true;

    for (size_t done = 0; ok && done < count; done += together) {
        send_statement(p, PIPELINE_BEGIN, 0, NULL);
        for (size_t i = done; i < AQ_MIN(count, done + together); i++) {
            if (work == STORE_CREATES)
                create_session(p, i);
            else
                place_session(p, i);
        }
        SEND(p, PIPELINE_BEAT, "1");
        send_statement(p, PIPELINE_COMMIT, 0, NULL);
        ok = PQpipelineSync(p->conn) && take_answers(p->conn);
    }
    if (!ok)
        (void)fprintf(stderr, "bench/store: %s", PQerrorMessage(p->conn));
    return ok ? (double)count * 1e6 / (double)(clock_monotonic_usec() - began) : -1;
}

/* ---- are they the same rows? ---- */

static bool is_same_table(PGconn *conn, const char *table, const char *number, const char *but)
{
    char query[800];
    PGresult *result;
    bool ok;

    (void)snprintf(
        query, sizeof(query),
        "SELECT COUNT(*) FILTER (WHERE bare) = COUNT(*) FILTER (WHERE NOT bare) AND COUNT(*) > 0"
        " AND 2 * COUNT(DISTINCT content) = COUNT(DISTINCT content || bare::text) FROM"
        " (SELECT %s >= " NUMBER_OF_PIPELINE " AS bare, (to_jsonb(t) - '{%s,%s}'::text[])::text"
        " AS content FROM %s t) rows",
        number, number, but, table);
    result = PQexec(conn, query);
    ok = PQresultStatus(result) == PGRES_TUPLES_OK && strcmp(PQgetvalue(result, 0, 0), "t") == 0;
    PQclear(result);
    if (!ok)
        (void)fprintf(stderr, "bench/store: the rows of %s differ%s\n", table,
                      PQerrorMessage(conn));
    return ok;
}

bool pipeline_wrote_same(struct pipeline *p)
{
    PGconn *conn = p->conn;

    return PQexitPipelineMode(conn)
           && is_same_table(conn, "sessions", "seq", "id,name,created_at,status_changed_at")
           && is_same_table(conn, "kernels", "session_seq", "id,status_changed_at")
           && is_same_table(conn, "allocations", "session_seq", "taken_at")
           && is_same_table(conn, "session_history", "session_seq", "at")
           && is_same_table(conn, "session_events", "session_seq", "number,at")
           && is_same_table(conn, "session_attempts", "session_seq", "first_at,last_at");
}
