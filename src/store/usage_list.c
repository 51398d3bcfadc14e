/* SPDX-License-Identifier: Apache-2.0 */
/* usage_list.c - who held what, and for how long: the ledger's rows with their owners,
 * and those of sessions that were removed
 */
#include <errno.h>
#include <string.h>

#include "store/query.h"
#include "store/transaction.h"

int store_read_usage(struct store_tx *tx, int64_t since_usec, store_usage_fn visit, void *data,
                     struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare(
        tx->db,
        "SELECT s.resource_group, s.domain, s.project_id, s.user_id, a.slot, a.amount, a.taken_at,"
        " a.free_at FROM sessions s JOIN allocations a ON a.session_seq = s.seq"
        " WHERE s.status_changed_at >= ? OR s.terminated_at IS NULL"
        " UNION ALL SELECT resource_group, domain, project_id, user_id, slot, amount, taken_at,"
        " free_at FROM removed_usage WHERE free_at >= ?",
        &q, err);

    if (r < 0)
        return r;
    sql_put_int(q, since_usec);
    sql_put_int(q, since_usec);
    while ((r = sql_step(q, err)) > 0) {
        struct store_usage u = { .resource_group = sql_get_text(q), .domain = sql_get_text(q) };

        u.project = sql_get_uuid(q);
        u.user = sql_get_uuid(q);
        u.slot = sql_get_text(q);
        u.amount = sql_get_int(q);
        u.from_usec = sql_get_int(q);
        u.until_usec = sql_get_int(q);
        u.slot = u.slot ? slot_name_intern(u.slot, strlen(u.slot)) : NULL;
        r = u.slot ? visit(data, &u) : 0;
        if (r < 0)
            return r;
    }
    return r;
}
