/* SPDX-License-Identifier: Apache-2.0 */
/* token.c - join tokens, agent certificates, settings, who may use what */
#include <errno.h>
#include <string.h>

#include "store/query.h"
#include "store/token.h"
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
              int64_t now_usec, struct aq_error *err)
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
    sql_put_text(q, agent_id);
    sql_put_text(q, agent_id);
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

int cert_save(struct store_tx *tx, const struct agent_cert *cert, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO agent_certs (serial, agent_id, issued_at, expires_at,"
                        " revoked_at) VALUES (?,?,?,?,?)",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, cert->serial);
    sql_put_text(q, cert->agent_id);
    sql_put_int(q, cert->issued_usec);
    sql_put_int(q, cert->expires_usec);
    sql_put_time(q, cert->revoked_usec);
    return sql_run(q, err);
}

#define CERT_COLUMNS "serial, agent_id, issued_at, expires_at, revoked_at"

static int token_read_cert(struct sql_stmt *q, struct agent_cert *ret, struct aq_error *err)
{
    struct row row = { .q = q };

    row_bounded(&row, ret->serial, sizeof(ret->serial));
    row_bounded(&row, ret->agent_id, sizeof(ret->agent_id));
    ret->issued_usec = sql_get_int(q);
    ret->expires_usec = sql_get_int(q);
    ret->revoked_usec = sql_get_int(q);
    return row_check(&row, "agent certificates", err);
}

int cert_find(struct store_tx *tx, const char *serial, struct agent_cert *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    struct agent_cert cert;
    int r = sql_prepare(tx->db, "SELECT " CERT_COLUMNS " FROM agent_certs WHERE serial = ?", &q,
                        err);

    if (r < 0)
        return r;
    sql_put_text(q, serial);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    if (r == 0)
        return aq_fail(err, ENOENT, "this cluster issued no certificate with serial %s", serial);
    r = token_read_cert(q, &cert, err);
    if (r == 0)
        *ret = cert;
    return r;
}

int cert_revoke_agent(struct store_tx *tx, const char *agent_id, int64_t now_usec,
                      struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "UPDATE agent_certs SET revoked_at = ? WHERE agent_id = ?"
                        " AND revoked_at IS NULL",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, now_usec);
    sql_put_text(q, agent_id);
    return sql_change(q, err);
}

int cert_list_revoked(struct store_tx *tx, int64_t now_usec,
                      int (*visit)(void *data, const struct agent_cert *cert), void *data,
                      struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT " CERT_COLUMNS " FROM agent_certs"
                        " WHERE revoked_at IS NOT NULL AND expires_at > ?"
                        " ORDER BY serial",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, now_usec);
    while ((r = sql_step(q, err)) > 0) {
        struct agent_cert cert;

        r = token_read_cert(q, &cert, err);
        if (r < 0)
            return r;
        r = visit(data, &cert);
        if (r < 0)
            return aq_fail(err, -r, "list of revoked certificates");
    }
    return r;
}

int setting_get(struct store_tx *tx, const char *key, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db, "SELECT value FROM settings WHERE key = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    r = sql_step(q, err);
    if (r <= 0)
        return r < 0 ? r : -ENOENT;
    strbuf_adds(out, sql_get_text(q));
    return 0;
}

int setting_set(struct store_tx *tx, const char *key, const char *value, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        "INSERT INTO settings (key, value) VALUES (?, ?)"
                        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    sql_put_text(q, value);
    return sql_run(q, err);
}

int setting_remove(struct store_tx *tx, const char *key, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, "DELETE FROM settings WHERE key = ?", &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, key);
    return sql_run(q, err);
}

static const char *const token_allow_kinds[] = { "domain", "project", "keypair" };

int resource_group_allow(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                         const char *whom, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = kind == ALLOW_DOMAIN ? store_check_domain(tx, whom, err) : 0;

    if (r == 0)
        r = sql_prepare(tx->db,
                        "INSERT INTO resource_group_access (resource_group, kind, whom)"
                        " VALUES (?,?,?) ON CONFLICT DO NOTHING",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, resource_group);
    sql_put_text(q, token_allow_kinds[kind]);
    sql_put_text(q, whom);
    return sql_run(q, err);
}

int resource_group_disallow(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                            const char *whom, struct aq_error *err)
{
    struct sql_stmt *q;
    int r = sql_prepare(tx->db,
                        resource_group ? "DELETE FROM resource_group_access"
                                         " WHERE kind = ? AND whom = ? AND resource_group = ?"
                                       : "DELETE FROM resource_group_access"
                                         " WHERE kind = ? AND whom = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, token_allow_kinds[kind]);
    sql_put_text(q, whom);
    if (resource_group)
        sql_put_text(q, resource_group);
    return sql_run(q, err);
}

int resource_group_is_allowed(struct store_tx *tx, const char *resource_group, enum allow_kind kind,
                              const char *whom, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(tx->db,
                        "SELECT 1 FROM resource_group_access"
                        " WHERE kind = ? AND whom = ? AND resource_group = ?",
                        &q, err);

    if (r < 0)
        return r;
    sql_put_text(q, token_allow_kinds[kind]);
    sql_put_text(q, whom);
    sql_put_text(q, resource_group);
    return sql_step(q, err);
}
