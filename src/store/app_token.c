/* SPDX-License-Identifier: Apache-2.0 */
/* app_token.c - see app_token.h */
#include "store/app_token.h"

#include <errno.h>
#include <stdio.h>

#include "store/transaction.h"

static int app_token_prune(struct store_tx *tx, int64_t now_usec, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM app_tokens WHERE expires_at <= ?", &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, now_usec);
    return sql_run(q, err);
}

int app_token_create(struct store_tx *tx, const unsigned char hash[APP_TOKEN_HASH_SIZE],
                     const struct app_token *token, int64_t now_usec, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = app_token_prune(tx, now_usec, err);

    if (r == 0)
        r = sql_prepare(tx->db,
                        "INSERT INTO app_tokens (hash, session_id, app, access_key, expires_at)"
                        " VALUES (?,?,?,?,?)",
                        &q, err);
    if (r < 0)
        return r;
    sql_put_blob(q, hash, APP_TOKEN_HASH_SIZE);
    sql_put_text(q, uuid_format(&token->session_id, id));
    sql_put_text(q, token->app);
    sql_put_text(q, token->access_key);
    sql_put_int(q, token->expires_usec);
    return sql_run(q, err);
}

int app_token_find(struct store_tx *tx, const unsigned char hash[APP_TOKEN_HASH_SIZE],
                   int64_t now_usec, struct app_token *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT session_id, app, access_key, expires_at FROM app_tokens"
                        " WHERE hash = ? AND expires_at > ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_blob(q, hash, APP_TOKEN_HASH_SIZE);
    sql_put_int(q, now_usec);
    if ((r = sql_step(q, err)) <= 0)
        return r;
    if (uuid_parse(sql_get_text(q), &ret->session_id) < 0)
        return aq_fail(err, EUCLEAN, "app_tokens has a session_id that is none");
    (void)snprintf(ret->app, sizeof(ret->app), "%s", sql_get_text(q));
    (void)snprintf(ret->access_key, sizeof(ret->access_key), "%s", sql_get_text(q));
    ret->expires_usec = sql_get_int(q);
    return 1;
}

int app_token_use(struct store_tx *tx, const unsigned char hash[APP_TOKEN_HASH_SIZE],
                  int64_t now_usec, struct app_token *ret, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = app_token_find(tx, hash, now_usec, ret, err);

    if (r <= 0 || (r = sql_prepare(tx->db, "DELETE FROM app_tokens WHERE hash = ?", &q, err)) < 0)
        return r;
    sql_put_blob(q, hash, APP_TOKEN_HASH_SIZE);
    return sql_change(q, err);
}
