/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - tokens by which an agent joins */
#include "store/token.h"
#include "store/query.h"
#include "store/transaction.h"

int token_create(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE],
                 const char *agent_id, int64_t now_usec, int64_t expires_usec, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO join_tokens (hash, agent_id, created_at, expires_at)"
                        " VALUES (?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_blob(q, hash, TOKEN_HASH_SIZE);
    sql_put_text(q, agent_id);
    sql_put_int(q, now_usec);
    sql_put_int(q, expires_usec);
    return sql_run(q, err);
}

int token_use(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE], const char *agent_id,
              const char *bound, int64_t now_usec, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE join_tokens SET used_at = ?, used_by = ? WHERE hash = ?"
                        " AND used_at IS NULL AND expires_at > ?"
                        " AND COALESCE(agent_id, ?) = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, now_usec);
    sql_put_text(q, agent_id);
    sql_put_blob(q, hash, TOKEN_HASH_SIZE);
    sql_put_int(q, now_usec);
    sql_put_text(q, bound);
    sql_put_text(q, bound);
    return sql_change(q, err);
}

int token_is_bound(struct store_tx *tx, const unsigned char hash[TOKEN_HASH_SIZE],
                   struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT 1 FROM join_tokens WHERE hash = ? AND agent_id IS NOT NULL",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_blob(q, hash, TOKEN_HASH_SIZE);
    return sql_step(q, err);
}
