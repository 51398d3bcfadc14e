/* SPDX-License-Identifier: Apache-2.0 */
/* resource_group_access.c - who may use a resource group */
#include "store/resource_group_access.h"
#include "store/query.h"
#include "store/transaction.h"

static const char *const resource_group_access_kinds[] = { "domain", "project", "keypair" };

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
    sql_put_text(q, resource_group_access_kinds[kind]);
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
    sql_put_text(q, resource_group_access_kinds[kind]);
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
    sql_put_text(q, resource_group_access_kinds[kind]);
    sql_put_text(q, whom);
    sql_put_text(q, resource_group);
    return sql_step(q, err);
}
