/* SPDX-License-Identifier: Apache-2.0 */
/* usage_total.c - how much was held in a time, summed by the database */
#include "store/usage_total.h"

#include <errno.h>
#include <stdlib.h>

#include "base/strbuf.h"
#include "store/transaction.h"

/* What rows are summed by. */
static const char *const usage_total_keys[] = {
    [USAGE_BY_DOMAIN] = "domain",
    [USAGE_BY_PROJECT] = "domain, project_id",
    [USAGE_BY_USER] = "domain, user_id",
    [USAGE_BY_RESOURCE_GROUP] = "resource_group",
};

static void usage_total_add_filters(const struct usage_total_query *query, struct strbuf *sql)
{
    strbuf_adds(sql, query->domain ? " AND o.domain = ?" : "");
    strbuf_adds(sql, query->resource_group ? " AND o.resource_group = ?" : "");
    strbuf_adds(sql, query->project_id ? " AND o.project_id = ?" : "");
    strbuf_adds(sql, query->user_id ? " AND o.user_id = ?" : "");
}

/* Rows of the ledger, cut to the time. */
static void usage_total_add_rows(const struct usage_total_query *query, struct strbuf *sql)
{
    long long from = query->from_usec, until = query->until_usec;

    strbuf_addf(sql,
                "SELECT o.domain AS domain, o.project_id AS project_id, o.user_id AS user_id,"
                " o.resource_group AS resource_group, o.seq AS seq, a.slot AS slot,"
                " a.amount AS amount,"
                " CASE WHEN a.taken_at < %lld THEN %lld ELSE a.taken_at END AS from_at,"
                " CASE WHEN a.free_at IS NULL OR a.free_at > %lld THEN %lld ELSE a.free_at END"
                " AS until_at FROM sessions o JOIN allocations a ON a.session_seq = o.seq"
                " WHERE (o.status_changed_at >= %lld OR o.terminated_at IS NULL)"
                " AND a.taken_at < %lld AND (a.free_at IS NULL OR a.free_at > %lld)",
                from, from, until, until, from, until, from);
    usage_total_add_filters(query, sql);
    strbuf_addf(sql,
                " UNION ALL SELECT o.domain, o.project_id, o.user_id, o.resource_group,"
                " o.session_seq, o.slot, o.amount,"
                " CASE WHEN o.taken_at < %lld THEN %lld ELSE o.taken_at END,"
                " CASE WHEN o.free_at > %lld THEN %lld ELSE o.free_at END"
                " FROM removed_usage o WHERE o.free_at > %lld AND o.taken_at < %lld",
                from, from, until, until, from, until);
    usage_total_add_filters(query, sql);
}

static bool usage_total_has(enum usage_by by, enum usage_by key)
{
    return by == key || (key == USAGE_BY_DOMAIN && by != USAGE_BY_RESOURCE_GROUP);
}

static void usage_total_add_key(const struct usage_total_query *query, enum usage_by key,
                                const char *column, struct strbuf *sql)
{
    if (usage_total_has(query->by, key))
        strbuf_addf(sql, "%s, ", column);
    else
        strbuf_addf(sql, "CAST(NULL AS TEXT) AS %s, ", column);
}

static int usage_total_prepare(struct store_tx *tx, const struct usage_total_query *query,
                               struct sql_stmt **ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    strbuf_adds(&sql, "SELECT t.domain, t.project_id, COALESCE(p.purged_name, p.name), t.user_id,"
                      " COALESCE(u.purged_email, u.email), t.resource_group, t.slot,"
                      " CAST(t.held AS TEXT), t.sessions FROM (SELECT ");
    usage_total_add_key(query, USAGE_BY_DOMAIN, "domain", &sql);
    usage_total_add_key(query, USAGE_BY_PROJECT, "project_id", &sql);
    usage_total_add_key(query, USAGE_BY_USER, "user_id", &sql);
    usage_total_add_key(query, USAGE_BY_RESOURCE_GROUP, "resource_group", &sql);
    strbuf_adds(&sql, "slot, SUM(CAST(amount AS DOUBLE PRECISION) * (until_at - from_at)) AS held,"
                      " COUNT(DISTINCT seq) AS sessions FROM (");
    usage_total_add_rows(query, &sql);
    strbuf_addf(&sql,
                ") h GROUP BY %s, slot) t LEFT JOIN projects p ON p.id = t.project_id"
                " LEFT JOIN users u ON u.id = t.user_id ORDER BY 1, 3, 5, 6, 2, 4, 7 LIMIT %d",
                usage_total_keys[query->by], USAGE_TOTAL_ROWS_MAX + 1);
    return sql_prepare_scan(tx->db, sql.data, ret, err);
}

static void usage_total_put(struct sql_stmt *q, const struct usage_total_query *query,
                            char project[UUID_TEXT_MAX], char user[UUID_TEXT_MAX])
{
    for (int i = 0; i < 2; i++) { /* of sessions there are, and of removed ones */
        if (query->domain)
            sql_put_text(q, query->domain);
        if (query->resource_group)
            sql_put_text(q, query->resource_group);
        if (query->project_id)
            sql_put_uuid(q, query->project_id, project);
        if (query->user_id)
            sql_put_uuid(q, query->user_id, user);
    }
}

int store_read_usage_total(struct store_tx *tx, const struct usage_total_query *query,
                           usage_total_fn visit, void *data, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    char project[UUID_TEXT_MAX], user[UUID_TEXT_MAX];
    size_t rows = 0;
    int r = usage_total_prepare(tx, query, &q, err);

    if (r < 0)
        return r;
    usage_total_put(q, query, project, user);
    while ((r = sql_step(q, err)) > 0) {
        struct usage_total row = { .domain = sql_get_text(q) };
        const char *held;

        row.project_id = sql_get_uuid(q);
        row.project = sql_get_text(q);
        row.user_id = sql_get_uuid(q);
        row.user = sql_get_text(q);
        row.resource_group = sql_get_text(q);
        row.slot = sql_get_text(q);
        held = sql_get_text(q);
        row.held = held ? strtod(held, NULL) : 0;
        row.sessions = sql_get_int(q);
        if (++rows > USAGE_TOTAL_ROWS_MAX)
            return aq_fail(err, E2BIG, "there are more than %d sums: ask for one domain or project",
                           USAGE_TOTAL_ROWS_MAX);
        if ((r = visit(data, &row)) < 0)
            return r;
    }
    return r;
}
