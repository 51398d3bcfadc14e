/* SPDX-License-Identifier: Apache-2.0 */
/* How many sessions that have ended there are of each kind. */
#include "store/session_total.h"

int session_total_add(struct store_tx *tx, const struct uuid *id, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct sql_stmt *q;
    int r = sql_prepare(tx->db, SESSION_TOTAL_ADD("COUNT(*)") "id = ?" SESSION_TOTAL_END, &q, err);

    if (r < 0)
        return r;
    sql_put_uuid(q, id, text);
    return sql_run(q, err);
}

/* Each kind with what the rows count as and minus what is kept: nothing is left of it. */
int session_total_audit(struct store_tx *tx, struct strbuf *out, struct aq_error *err)
{
    static const char sql[] =
        "SELECT COUNT(*) FROM (SELECT 1 AS wrong FROM (SELECT " SESSION_TOTAL_KIND
        ", COUNT(*) AS n FROM sessions WHERE terminated_at IS NOT NULL GROUP BY " SESSION_TOTAL_KIND
        " UNION ALL SELECT " SESSION_TOTAL_KIND ", -sessions FROM session_totals) a"
        " GROUP BY " SESSION_TOTAL_KIND " HAVING SUM(n) <> 0) b";
    struct sql_stmt *q;
    int64_t wrong;
    int r = sql_prepare(tx->db, sql, &q, err);

    if (r < 0 || (r = sql_step(q, err)) < 0)
        return r;
    wrong = sql_get_int(q);
    sql_end(q);
    if (wrong)
        strbuf_addf(out, "the totals of %lld kinds of sessions are not those of their rows\n",
                    (long long)wrong);
    return wrong != 0;
}
