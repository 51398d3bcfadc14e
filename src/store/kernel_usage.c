/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_usage.c - which kernels held what in a time, and what they used */
#include "store/kernel_usage.h"

#include <errno.h>

#include "base/strbuf.h"
#include "store/transaction.h"

/* Sessions there are, and after them those that were removed. */
static const char *const kernel_usage_selects[] = {
    "SELECT k.id, o.project_id, o.domain, COALESCE(p.purged_name, p.name), o.name, o.access_key,"
    " COALESCE(u.purged_email, u.email), a.agent_id, o.image, o.spec, k.status, k.last_stat,"
    " o.created_at, k.terminated_at, k.status_changed_at, a.slot, a.amount, a.taken_at, a.free_at,"
    " o.seq, k.rank, a.version FROM sessions o JOIN kernels k ON k.session_seq = o.seq"
    " JOIN allocations a ON a.session_seq = k.session_seq AND a.rank = k.rank"
    " LEFT JOIN users u ON u.id = o.user_id LEFT JOIN projects p ON p.id = o.project_id"
    " WHERE (o.status_changed_at >= ? OR o.terminated_at IS NULL) AND a.taken_at < ?"
    " AND (a.free_at IS NULL OR a.free_at > ?)",
    " UNION ALL SELECT NULL, o.project_id, o.domain, COALESCE(p.purged_name, p.name), NULL, NULL,"
    " COALESCE(u.purged_email, u.email), NULL, NULL, NULL, 'TERMINATED', NULL,"
    " o.taken_at, o.free_at, o.free_at, o.slot, o.amount, o.taken_at, o.free_at,"
    " o.session_seq, o.rank, o.version FROM removed_usage o"
    " LEFT JOIN users u ON u.id = o.user_id LEFT JOIN projects p ON p.id = o.project_id"
    " WHERE o.free_at >= ? AND o.taken_at < ? AND o.free_at > ?",
};

static int kernel_usage_prepare(struct store_tx *tx, const struct kernel_usage_query *query,
                                struct sql_stmt **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    for (size_t s = 0; s < AQ_COUNT(kernel_usage_selects); s++) {
        strbuf_adds(&sql, kernel_usage_selects[s]);
        strbuf_adds(&sql, query->domain ? " AND o.domain = ?" : "");
        strbuf_adds(&sql, query->user_id ? " AND o.user_id = ?" : "");
        for (size_t i = 0; i < query->project_count; i++)
            strbuf_adds(&sql, i ? ", ?" : " AND o.project_id IN (?");
        strbuf_adds(&sql, query->project_count ? ")" : "");
    }
    strbuf_adds(&sql, " ORDER BY 2, 20, 21, 22, 16"); /* project, session, kernel, version, slot */
    return sql_prepare_scan(tx->db, sql.data, ret, err);
}

/* What kernel_usage_prepare() left open; texts of ids are put into 'user' and 'projects'. */
static void kernel_usage_put(struct sql_stmt *q, const struct kernel_usage_query *query,
                             char user[UUID_TEXT_MAX],
                             char projects[KERNEL_USAGE_PROJECTS_MAX][UUID_TEXT_MAX])
{
    for (size_t s = 0; s < AQ_COUNT(kernel_usage_selects); s++) {
        sql_put_int(q, query->from_usec);
        sql_put_int(q, query->until_usec);
        sql_put_int(q, query->from_usec);
        if (query->domain)
            sql_put_text(q, query->domain);
        if (query->user_id)
            sql_put_uuid(q, query->user_id, user);
        for (size_t i = 0; i < query->project_count; i++)
            sql_put_uuid(q, &query->project_ids[i], projects[i]);
    }
}

static void kernel_usage_read_row(struct sql_stmt *q, struct kernel_usage *ret)
{
    ret->kernel_id = sql_get_uuid(q);
    ret->project_id = sql_get_uuid(q);
    ret->domain = sql_get_text(q);
    ret->project = sql_get_text(q);
    ret->session = sql_get_text(q);
    ret->access_key = sql_get_text(q);
    ret->email = sql_get_text(q);
    ret->agent = sql_get_text(q);
    ret->image = sql_get_text(q);
    ret->spec = sql_get_text(q);
    ret->status = sql_get_text(q);
    ret->last_stat = sql_get_text(q);
    ret->created_usec = sql_get_int(q);
    ret->terminated_usec = sql_get_int(q);
    ret->changed_usec = sql_get_int(q);
    ret->slot = sql_get_text(q);
    ret->amount = sql_get_int(q);
    ret->from_usec = sql_get_int(q);
    ret->until_usec = sql_get_int(q);
    ret->session_row = sql_get_int(q);
    ret->rank = sql_get_int(q);
}

int store_read_kernel_usage(struct store_tx *tx, const struct kernel_usage_query *query,
                            kernel_usage_fn visit, void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char user[UUID_TEXT_MAX], projects[KERNEL_USAGE_PROJECTS_MAX][UUID_TEXT_MAX];
    int r = kernel_usage_prepare(tx, query, &q, err);

    if (r < 0)
        return r;
    kernel_usage_put(q, query, user, projects);
    while ((r = sql_step(q, err)) > 0) {
        struct kernel_usage row;

        kernel_usage_read_row(q, &row);
        if ((r = visit(data, &row)) < 0)
            return r;
    }
    return r;
}
