/* SPDX-License-Identifier: Apache-2.0 */
/* list_range.c - parts of a list between two of its rows */
#include <errno.h>

#include "store/list_where.h"

int64_t store_range_place(const struct store_range *range, int64_t after, int64_t before,
                          int64_t *ret_count)
{
    int64_t between = AQ_MAX(before - after, 0), skipped = AQ_MIN(range->offset, between);
    int64_t count = AQ_MIN(range->limit, between - skipped);

    *ret_count = count;
    return range->is_from_end ? after + between - skipped - count : after + skipped;
}

/* Which row it is, counted from 1. */
static int list_find_place(const struct listing *list, const char *id, const char *field,
                           int64_t *ret, struct aq_error *err)
{
    const struct list_table *table = list->table;
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    strbuf_addf(&sql, "SELECT place FROM (SELECT %s AS id, ROW_NUMBER() OVER (%s) AS place FROM ",
                table->id ? table->id : table->tie, list->order.sql.data);
    listing_add_source(list, table->from, NULL, true, &sql);
    strbuf_adds(&sql, ") a WHERE id = ?");
    if ((r = sql_prepare_built(list->tx->db, sql.data, &q, err)) < 0)
        return r;
    where_put_values(q, &list->where);
    sql_put_text(q, id);
    if ((r = sql_step(q, err)) == 0)
        return aq_fail_field(err, EINVAL, field, "%s: '%.64s' is not in the list (any more)", field,
                             id);
    if (r > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

int listing_apply_range(struct listing *list, int64_t total, struct aq_error *err)
{
    const struct store_range *range = list->query.range;
    int64_t after = 0, before = total + 1;
    int r = 0;

    if (range->after)
        r = list_find_place(list, range->after, "after", &after, err);
    if (r == 0 && range->before)
        r = list_find_place(list, range->before, "before", &before, err);
    list->query.offset = store_range_place(range, after, before - 1, &list->query.limit);
    return r;
}
