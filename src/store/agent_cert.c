/* SPDX-License-Identifier: Apache-2.0 */
/* agent_cert.c - certificates of agents */

#include "store/agent_cert.h"
#include "store/query.h"
#include "store/transaction.h"

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

static int cert_read(struct sql_stmt *q, struct agent_cert *ret, struct aq_error *err)
{
    struct row row = { .q = q };

    row_bounded(&row, ret->serial, sizeof(ret->serial));
    row_bounded(&row, ret->agent_id, sizeof(ret->agent_id));
    ret->issued_usec = sql_get_int(q);
    ret->expires_usec = sql_get_int(q);
    ret->revoked_usec = sql_get_int(q);
    return row_check(&row, "agent certificates", err);
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

        r = cert_read(q, &cert, err);
        if (r < 0)
            return r;
        r = visit(data, &cert);
        if (r < 0)
            return aq_fail(err, -r, "list of revoked certificates");
    }
    return r;
}
