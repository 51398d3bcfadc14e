/* SPDX-License-Identifier: Apache-2.0 */
/* request_answer.c - what requests were answered */
#include "store/request_answer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/transaction.h"

/* sql_refuse_fn */
static int request_answer_refuse(const void *of, int r, struct aq_error *err)
{
    (void)of;
    return r == -EEXIST ? aq_fail(err, EALREADY, "this request was made before") : r;
}

int request_answer_add(struct store_tx *tx, const struct event *e, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO request_answers"
                        " (seq, access_key, request_key, digest, kept_at, status, body)"
                        " VALUES ((SELECT COALESCE(MAX(seq), 0) + 1 FROM request_answers),"
                        " ?,?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, e->answered.access_key);
    sql_put_text(q, e->answered.request_key);
    sql_put_text(q, e->answered.digest);
    sql_put_int(q, e->at_usec);
    sql_put_int(q, e->answered.status);
    sql_put_text(q, e->answered.body);
    return sql_change_one(q, request_answer_refuse, e, err);
}

void request_answer_done(struct request_answer *answer)
{
    free(answer->digest);
    free(answer->body);
    *answer = (struct request_answer){ .digest = NULL };
}

int request_answer_find(struct store_tx *tx, const char *access_key, const char *request_key,
                        struct request_answer *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT digest, status, body FROM request_answers"
                        " WHERE access_key = ? AND request_key = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, access_key);
    sql_put_text(q, request_key);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    *ret = (struct request_answer){ .digest = aq_strdup(sql_get_text(q)) };
    ret->status = (int)sql_get_int(q);
    ret->body = aq_strdup(sql_get_text(q));
    return 1;
}

int request_answers_prune(struct store_tx *tx, int64_t before_usec, int max, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "DELETE FROM request_answers WHERE seq IN (SELECT seq FROM"
                        " (SELECT seq, kept_at FROM request_answers ORDER BY seq LIMIT ?) oldest"
                        " WHERE kept_at < ?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, max);
    sql_put_int(q, before_usec);
    return sql_change(q, err);
}

int request_answers_trim(struct store_tx *tx, const char *access_key, int64_t keep, int max,
                         struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "DELETE FROM request_answers WHERE seq IN (SELECT seq FROM"
                        " (SELECT seq FROM request_answers WHERE access_key = ?"
                        " ORDER BY seq DESC LIMIT ? OFFSET ?) older ORDER BY seq LIMIT ?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, access_key);
    sql_put_int(q, INT32_MAX);
    sql_put_int(q, keep);
    sql_put_int(q, max);
    return sql_change(q, err);
}
