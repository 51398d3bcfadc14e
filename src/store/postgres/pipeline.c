/* SPDX-License-Identifier: Apache-2.0 */
/* Statements on their way, and their answers. */
#include "store/postgres/postgres.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/vec.h"

void postgres_forget(struct postgres *pg)
{
    pg->waiting_count = 0;
}

static void postgres_name(const struct postgres_stmt *q, char ret[16])
{
    (void)snprintf(ret, 16, "s%u", q->id);
}

/* Before its first use on this connection. */
static int postgres_prepare_on_server(struct postgres *pg, struct postgres_stmt *q,
                                      struct aq_error *err)
{
    char name[16];
    int r = postgres_settle(pg, err);

    if (r < 0)
        return r;
    postgres_name(q, name);
    if (!PQsendPrepare(pg->conn, name, q->text, 0, NULL))
        return postgres_fail(pg, NULL, err);
    (void)vec_grow(&pg->waiting, &pg->waiting_cap, 1, sizeof(*pg->waiting));
    pg->waiting[pg->waiting_count++] = (struct postgres_waiting){ 0 };
    r = postgres_settle(pg, err);
    if (r == 0)
        q->prepared_on = pg->generation;
    return r;
}

static void postgres_fill(struct postgres_stmt *q)
{
    for (int i = 0; i < q->param_count; i++) {
        q->values[i] = q->params[i].value;
        q->lengths[i] = q->params[i].len;
        q->formats[i] = q->params[i].format;
    }
}

int postgres_send(struct postgres_stmt *q, const struct postgres_waiting *waiting,
                  struct aq_error *err)
{
    struct postgres *pg = postgres_of(q->stmt.db);
    char name[16];
    int ok, r = 0;

    if (q->id && q->prepared_on != pg->generation)
        r = postgres_prepare_on_server(pg, q, err);
    if (r < 0)
        return r;
    (void)vec_grow(&pg->waiting, &pg->waiting_cap, pg->waiting_count + 1, sizeof(*pg->waiting));
    postgres_fill(q);
    postgres_name(q, name);
    ok = q->id ? PQsendQueryPrepared(pg->conn, name, q->param_count, q->values, q->lengths,
                                     q->formats, 0)
               : PQsendQueryParams(pg->conn, q->text, q->param_count, NULL, q->values, q->lengths,
                                   q->formats, 0);
    if (!ok)
        return postgres_fail(pg, NULL, err);
    pg->waiting[pg->waiting_count++] = *waiting;
    return 0;
}

int postgres_send_text(struct postgres *pg, const char *text,
                       const struct postgres_waiting *waiting, struct aq_error *err)
{
    (void)vec_grow(&pg->waiting, &pg->waiting_cap, pg->waiting_count + 1, sizeof(*pg->waiting));
    if (!PQsendQueryParams(pg->conn, text, 0, NULL, NULL, NULL, NULL, 0))
        return postgres_fail(pg, NULL, err);
    pg->waiting[pg->waiting_count++] = *waiting;
    return 0;
}

/* An answer that is none of success. */
static int postgres_refuse(struct postgres *pg, const struct postgres_waiting *w,
                           const PGresult *result, struct aq_error *err)
{
    int r = postgres_fail(pg, result, err);

    return w->refuse && pg->sql.was_refused ? w->refuse(w->of, r, err) : r;
}

int postgres_await_result(struct postgres *pg, PGresult **ret, struct aq_error *err)
{
    int64_t end = clock_monotonic_usec() + pg->answer_msec * USEC_PER_MSEC;

    while (pg->answer_msec && PQisBusy(pg->conn)) {
        struct pollfd socket = { .fd = PQsocket(pg->conn), .events = POLLIN };
        int64_t left = end - clock_monotonic_usec();

        if (left <= 0) {
            pg->is_broken = true;
            return postgres_fail_connection(pg, "it does not answer", err);
        }
        (void)poll(&socket, 1, (int)(left / USEC_PER_MSEC) + 1);
        if (!PQconsumeInput(pg->conn))
            return postgres_fail(pg, NULL, err);
    }
    *ret = PQgetResult(pg->conn);
    return 0;
}

/* 0, or the first error; a statement after one that failed was skipped. */
static int postgres_take_answer(struct postgres *pg, const struct postgres_waiting *w, int before,
                                struct aq_error *err)
{
    PGresult *result = NULL;
    ExecStatusType status;
    int r = postgres_await_result(pg, &result, err);

    if (r < 0)
        return r;
    r = before;
    status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        if (before == 0 && w->is_commit && strcmp(PQcmdStatus(result), "COMMIT") != 0)
            r = aq_fail(err, EIO, "database: the transaction was rolled back");
        if (w->keep)
            w->keep->result = AQ_TAKE(result);
    } else if (before == 0) {
        r = postgres_refuse(pg, w, result, err);
    }
    PQclear(result);
    while ((result = PQgetResult(pg->conn)))
        PQclear(result);
    return r;
}

int postgres_settle(struct postgres *pg, struct aq_error *err)
{
    size_t count = pg->waiting_count;
    PGresult *result = NULL;
    int r = 0;

    if (count == 0)
        return 0;
    postgres_forget(pg);
    if (pg->is_broken)
        return postgres_fail_connection(pg, "the connection was ended", err);
    if (!PQpipelineSync(pg->conn))
        return postgres_fail(pg, NULL, err);
    for (size_t i = 0; i < count && !pg->is_broken; i++)
        r = postgres_take_answer(pg, &pg->waiting[i], r, err);
    if (pg->is_broken)
        return r;
    if (postgres_await_result(pg, &result, r < 0 ? NULL : err) < 0)
        return -EHOSTDOWN;
    if (r == 0 && PQresultStatus(result) != PGRES_PIPELINE_SYNC)
        r = postgres_fail(pg, result, err);
    PQclear(result);
    return r;
}
