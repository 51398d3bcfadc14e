/* SPDX-License-Identifier: Apache-2.0 */
/* Statements: parameters put, rows got. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/postgres/postgres.h"
#include "store/postgres/statement.h"

#define POSTGRES_FETCH_ROWS 1000

static struct postgres_stmt *postgres_stmt_of(struct sql_stmt *stmt)
{
    return (struct postgres_stmt *)stmt;
}

void postgres_statement_finish(struct sql_stmt *stmt)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    PQclear(q->result);
    free(q->text);
    free(q->fetch);
    free(q->params);
    free(q->values);
    free(q->lengths);
    free(q->formats);
    free(q);
}

/* The rows come by a cursor: the statement declares it, another one fetches. */
static void postgres_statement_make_scan(struct postgres *pg, struct postgres_stmt *q)
{
    unsigned id = ++pg->statement_count;
    char *text = aq_format("DECLARE c%u NO SCROLL CURSOR FOR %s", id, q->text);

    q->fetch = aq_format("FETCH %d FROM c%u", POSTGRES_FETCH_ROWS, id);
    free(q->text);
    q->text = text;
}

int postgres_statement_prepare(struct sql *db, const char *text, enum sql_use use,
                               struct sql_stmt **ret, struct aq_error *err)
{
    struct postgres_stmt *q = aq_alloc(sizeof(*q));
    size_t room;

    (void)err;
    q->row = -1;
    q->is_commit = strcmp(text, "COMMIT") == 0;
    q->text = postgres_translate(text, &q->param_count);
    room = (size_t)AQ_MAX(q->param_count, 1);
    q->params = aq_alloc_array(room, sizeof(*q->params));
    q->values = aq_alloc_array(room, sizeof(*q->values));
    q->lengths = aq_alloc_array(room, sizeof(*q->lengths));
    q->formats = aq_alloc_array(room, sizeof(*q->formats));
    if (use == SQL_KEPT)
        q->id = ++postgres_of(db)->statement_count;
    else if (use == SQL_SCAN)
        postgres_statement_make_scan(postgres_of(db), q);
    *ret = &q->stmt;
    return 0;
}

/* ---- parameters ---- */

static struct postgres_param *postgres_statement_param(struct sql_stmt *stmt, int at)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    assert(at < q->param_count);
    return &q->params[at];
}

int postgres_statement_put_int(struct sql_stmt *stmt, int at, int64_t value)
{
    struct postgres_param *p = postgres_statement_param(stmt, at);

    (void)snprintf(p->number, sizeof(p->number), "%" PRId64, value);
    p->value = p->number;
    p->format = 0;
    return 0;
}

int postgres_statement_put_text(struct sql_stmt *stmt, int at, const char *text)
{
    struct postgres_param *p = postgres_statement_param(stmt, at);

    p->value = text;
    p->format = 0;
    return 0;
}

int postgres_statement_put_blob(struct sql_stmt *stmt, int at, const void *bytes, size_t len)
{
    struct postgres_param *p = postgres_statement_param(stmt, at);

    p->value = bytes;
    p->len = (int)len;
    p->format = 1;
    return 0;
}

/* ---- running ---- */

/* The first rows, or all. */
static int postgres_statement_run(struct postgres_stmt *q, struct aq_error *err)
{
    struct postgres *pg = postgres_of(q->stmt.db);
    struct postgres_waiting keep = { .keep = q };
    int r = postgres_send(q, q->fetch ? &(struct postgres_waiting){ 0 } : &keep, err);

    if (r == 0 && q->fetch)
        r = postgres_send_text(pg, q->fetch, &keep, err);
    return r < 0 ? r : postgres_settle(pg, err);
}

static int postgres_statement_fetch(struct postgres_stmt *q, struct aq_error *err)
{
    struct postgres *pg = postgres_of(q->stmt.db);
    int r;

    PQclear(AQ_TAKE(q->result));
    q->row = -1;
    r = postgres_send_text(pg, q->fetch, &(struct postgres_waiting){ .keep = q }, err);
    return r < 0 ? r : postgres_settle(pg, err);
}

int postgres_statement_step(struct sql_stmt *stmt, struct aq_error *err)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);
    int r = 0;

    if (!q->result)
        r = postgres_statement_run(q, err);
    else if (q->fetch && q->row + 1 == POSTGRES_FETCH_ROWS)
        r = postgres_statement_fetch(q, err);
    return r < 0 ? r : ++q->row < PQntuples(q->result);
}

int postgres_statement_queue(struct sql_stmt *stmt, struct aq_error *err)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    return postgres_send(q, &(struct postgres_waiting){ .is_commit = q->is_commit }, err);
}

/* A text is always used in one way: it is changed for good. */
static void postgres_statement_want_one(struct postgres_stmt *q)
{
    char *text;

    if (q->wants_one)
        return;
    assert(!q->prepared_on);
    text = postgres_translate_one(q->text);
    free(q->text);
    q->text = text;
    q->wants_one = true;
}

int postgres_statement_queue_one(struct sql_stmt *stmt, sql_refuse_fn refuse, const void *of,
                                 struct aq_error *err)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    postgres_statement_want_one(q);
    return postgres_send(q, &(struct postgres_waiting){ .refuse = refuse, .of = of }, err);
}

void postgres_statement_reset(struct sql_stmt *stmt)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    PQclear(AQ_TAKE(q->result));
    q->row = -1;
}

int postgres_statement_changes(struct sql_stmt *stmt)
{
    return atoi(PQcmdTuples(postgres_stmt_of(stmt)->result));
}

/* ---- columns ---- */

bool postgres_statement_is_null(struct sql_stmt *stmt, int at)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    return PQgetisnull(q->result, q->row, at) != 0;
}

/* A condition is "t" or "f". */
int64_t postgres_statement_get_int(struct sql_stmt *stmt, int at)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);
    const char *text = PQgetvalue(q->result, q->row, at);

    return text[0] == 't' ? 1 : strtoll(text, NULL, 10);
}

const char *postgres_statement_get_text(struct sql_stmt *stmt, int at)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);

    return postgres_statement_is_null(stmt, at) ? NULL : PQgetvalue(q->result, q->row, at);
}

static int postgres_statement_digit(char c)
{
    return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

/* "\x0aff", written over by what it says; a column is got once. */
const void *postgres_statement_get_blob(struct sql_stmt *stmt, int at, size_t *ret_len)
{
    struct postgres_stmt *q = postgres_stmt_of(stmt);
    char *text = PQgetvalue(q->result, q->row, at);
    size_t len = (size_t)PQgetlength(q->result, q->row, at);

    *ret_len = 0;
    if (postgres_statement_is_null(stmt, at) || len < 2)
        return NULL;
    for (size_t i = 2; i + 1 < len; i += 2)
        text[(*ret_len)++] = (char)(postgres_statement_digit(text[i]) << 4
                                    | postgres_statement_digit(text[i + 1]));
    return text;
}
