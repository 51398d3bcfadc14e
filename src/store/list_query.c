/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the store: one way to make all list queries. */
#include "store/list_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "store/list_where.h"

void store_page_free(struct store_page *page)
{
    if (!page)
        return;
    if (page->done)
        page->done(page);
    arena_done(&page->arena);
    free(page);
}

/* ---- totals ---- */

static int list_read_number(const struct listing *list, const struct strbuf *sql, int64_t *ret,
                            struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = sql_prepare_built(list->tx->db, sql->data, &q, err);

    if (r < 0)
        return r;
    where_put_values(q, &list->where);
    if ((r = sql_step(q, err)) > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

static bool list_is_column_of_kinds(const struct list_totals *totals, const char *column)
{
    for (size_t i = 0; i < totals->column_count; i++)
        if (strcmp(totals->columns[i], column) == 0)
            return true;
    return false;
}

/* Does the condition ask for nothing but columns of kinds, and of what is joined to them? */
static bool list_is_of_kinds(const struct listing *list)
{
    const struct list_totals *totals = list->table->totals;
    const struct where *w = &list->where;

    if (!totals || (list->extra->where && !list->extra->is_of_kinds))
        return false;
    for (size_t i = 0; i < w->column_count; i++)
        if (!list_is_column_of_kinds(totals, w->columns[i]))
            return false;
    return true;
}

/* The sum over kinds, and the rows that belong to none. */
static int list_sum_kinds(const struct listing *list, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sums = STRBUF_INIT, rest = STRBUF_INIT;
    const struct list_totals *totals = list->table->totals;
    int64_t sum = 0;
    int r;

    strbuf_addf(&sums, "SELECT CAST(COALESCE(SUM(%s), 0) AS BIGINT) FROM ", totals->count);
    listing_add_source(list, totals->from, NULL, false, &sums);
    strbuf_adds(&rest, "SELECT COUNT(*) FROM ");
    listing_add_source(list, list->table->from, totals->rest_way, false, &rest);
    strbuf_addf(&rest, "%s%s", list->where.sql.len ? " AND " : " WHERE ", totals->rest);
    if ((r = list_read_number(list, &sums, &sum, err)) == 0)
        r = list_read_number(list, &rest, ret, err);
    *ret += sum;
    return r;
}

static int list_count_rows(const struct listing *list, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    *ret = 0;
    if (list_is_of_kinds(list))
        return list_sum_kinds(list, ret, err);
    strbuf_adds(&sql, "SELECT COUNT(*) FROM ");
    listing_add_source(list, list->table->from, NULL, false, &sql);
    return list_read_number(list, &sql, ret, err);
}

int list_count(struct store_tx *tx, const struct list_table *table, const struct store_query *q,
               const struct list_extra *extra, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(listing_freep) struct listing *list = listing_new(tx, table, q, extra);
    int r = listing_build_where(list, err);

    return r < 0 ? r : list_count_rows(list, ret, err);
}

/* Room that is made without knowing that there are rows for it. */
#define MOST_ROWS_MAX 20000

/* How many rows there are at most if a page has room for so many, else -1. */
static int list_read_most(const struct listing *list, int64_t *ret, struct aq_error *err)
{
    const struct store_query *query = &list->query;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    *ret = -1;
    if (!list->extra->most || query->offset || query->range)
        return 0;
    if ((r = sql_prepare(list->tx->db, list->extra->most, &q, err)) < 0
        || (r = sql_step(q, err)) < 0)
        return r;
    *ret = sql_get_int(q);
    if (*ret > (query->limit ? query->limit : MOST_ROWS_MAX))
        *ret = -1;
    return 0;
}

static bool list_is_of_one(const struct store_query *q)
{
    return q->user_id || q->access_key;
}

/* It has the rows of each user together, and the list is of one. */
static bool list_is_own_index(const struct list_index *index, const struct store_query *q)
{
    return index->of_user && list_is_of_one(q);
}

/* How much further than expected a walk goes. */
#define WALK_SPARE 4
#define WALK_MIN 16

/* A walk along an index in the order of a page. */
struct list_walk {
    const struct list_index *index; /* NULL = none: the engine may do as it likes */
    const char *way;
    const char *beyond; /* what is not further than another row */
    int64_t entries;    /* it ends after so many; 0 = with the page */
    bool is_falling;
    bool is_over; /* and has found too little: the index is not to be walked again */
};

/* The walk that has rows in the order of the list: by one column of the table, and nothing else. */
static struct list_walk list_find_walk(const struct listing *list)
{
    const struct list_sort *sort = &list->order.sort;
    const struct list_table *table = list->table;

    for (size_t i = 0; sort->column && i < table->index_count; i++) {
        const struct list_index *index = &table->indexes[i];

        if (strcmp(index->column, sort->column) == 0)
            return (struct list_walk){
                .index = index,
                .way = list_is_own_index(index, &list->query) ? index->of_user : index->way,
                .beyond = sort->is_falling ? ">=" : "<=",
                .is_falling = sort->is_falling,
            };
    }
    return (struct list_walk){ .index = NULL };
}

/* Rows in the list are found by an index: of their user, or of what is asked of a column. */
static bool list_is_found(const struct listing *list)
{
    const struct list_table *table = list->table;
    const struct store_query *q = &list->query;
    bool is_found = table->is_found || list->extra->is_found || list_is_of_one(q) || q->name
                    || q->id_count;

    for (size_t i = 0; i < table->index_count; i++)
        is_found |= !table->indexes[i].of_names
                    && where_asks(&list->where, table->indexes[i].column);
    return is_found;
}

/* Which way to walk for a page up to row 'end' of those in the list, if that is shorter than to
 * find and sort all of these. It passes by end * height / total rows, were they spread evenly; as
 * they need not be, it ends after some times as many, and the page is read by other means.
 */
static int list_choose_walk(const struct listing *list, int64_t end, int64_t total,
                            struct list_walk *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *height_query = NULL;
    struct list_walk walk = list_find_walk(list);
    double passed, height;
    int r;

    *ret = (struct list_walk){ 0 };
    if (!walk.index)
        return 0;
    if ((r = sql_prepare(list->tx->db, list->table->height, &height_query, err)) < 0
        || (r = sql_step(height_query, err)) < 0)
        return r;
    height = (double)sql_get_int(height_query);
    passed = (double)end * height / (double)total;
    if (passed > (list_is_found(list) ? (double)total : height))
        return 0;
    if (!list_is_own_index(walk.index, &list->query) && WALK_SPARE * passed + WALK_MIN < height)
        walk.entries = (int64_t)(WALK_SPARE * passed) + WALK_MIN;
    *ret = walk;
    return 0;
}

static void list_add_walk(const struct listing *list, const struct list_walk *walk,
                          struct strbuf *sql)
{
    const struct list_table *table = list->table;
    const char *order = list->order.sql.data;

    listing_add_source(list, table->from, walk->way, true, sql);
    if (walk->entries)
        strbuf_addf(sql, "%s (%s, %s) %s (SELECT %s, %s FROM %s %s%s LIMIT 1 OFFSET %lld)",
                    list->where.sql.len ? " AND" : " WHERE", walk->index->column, table->tie,
                    walk->beyond, walk->index->column, table->tie, table->from, walk->way, order,
                    (long long)walk->entries);
    strbuf_adds(sql, order);
}

/* All that match, and then their order: what is limited first cannot be ordered by an index. */
static void list_add_found(const struct listing *list, const struct list_walk *walk,
                           struct strbuf *sql)
{
    const char *direction = walk->is_falling ? " DESC" : "";

    strbuf_addf(sql, "SELECT tie FROM (SELECT %s AS tie, %s AS place FROM ", list->table->tie,
                walk->index->column);
    listing_add_source(list, list->table->from, NULL, true, sql);
    strbuf_addf(sql, " LIMIT %lld) a ORDER BY place%s, tie%s", (long long)INT64_MAX, direction,
                direction);
}

/* Of a part, what tells rows apart is found alone, and only the rows of the part are read whole. */
static void list_build_select(const struct listing *list, const struct list_walk *walk,
                              bool is_part, struct strbuf *sql)
{
    const struct list_table *table = list->table;
    const char *columns = list->extra->columns ? list->extra->columns : table->columns;
    const char *joins = table->joins ? table->joins : "", *order = list->order.sql.data;

    if (walk->index && !walk->is_over) { /* which is the order already */
        strbuf_addf(sql,
                    "SELECT %s FROM (SELECT tie, ROW_NUMBER() OVER () AS place FROM"
                    " (SELECT %s AS tie FROM ",
                    columns, table->tie);
        list_add_walk(list, walk, sql);
        strbuf_addf(sql, " LIMIT ? OFFSET ?) a) b JOIN %s ON %s = b.tie%s ORDER BY b.place",
                    table->from, table->tie, joins);
    } else if (is_part) {
        strbuf_addf(sql, "SELECT %s FROM %s%s WHERE (%s) IN (", columns, table->from, joins,
                    table->tie);
        if (walk->index) {
            list_add_found(list, walk, sql);
        } else {
            strbuf_addf(sql, "SELECT %s FROM ", table->tie);
            listing_add_source(list, table->from, NULL, true, sql);
            strbuf_adds(sql, order);
        }
        strbuf_addf(sql, " LIMIT ? OFFSET ?)%s", order);
    } else {
        strbuf_addf(sql, "SELECT %s FROM %s%s%s%s", columns, table->from, joins,
                    list->where.sql.data, order);
    }
}

static int list_read_rows(const struct listing *list, struct sql_stmt *q, size_t room,
                          struct store_page *page, struct aq_error *err)
{
    const struct list_table *table = list->table;
    list_read_fn *read = list->extra->read ? list->extra->read : table->read;
    struct row row = { .q = q, .arena = &page->arena };
    int r;

    if (!arena_has_room(&page->arena, room, table->row_size))
        return list_fail_page(&list->query, err);
    page->rows = arena_array(&page->arena, AQ_MAX(room, 1), table->row_size);
    while ((r = sql_step(q, err)) > 0 && page->count < room) {
        r = read(list->tx, &row, (char *)page->rows + page->count * table->row_size, err);
        if (r < 0 || (r = list_check_page(&list->query, page, err)) < 0)
            return r;
        page->count++;
    }
    return r < 0 ? r : row_check(&row, table->what, err);
}

static int list_check_query(const struct store_query *q, struct aq_error *err)
{
    if (q->limit < 0)
        return aq_fail_field(err, EINVAL, "limit", "limit must not be negative");
    if (q->offset < 0)
        return aq_fail_field(err, EINVAL, "offset", "offset must not be negative");
    if (q->id_count > STORE_IDS_MAX)
        return aq_fail(err, EINVAL, "more than %d ids", STORE_IDS_MAX);
    return 0;
}

/* Run the query of a page's rows. */
static int list_read_part(const struct listing *list, const struct list_walk *walk, bool is_part,
                          size_t room, struct store_page *page, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    list_build_select(list, walk, is_part, &sql);
    if ((r = sql_prepare_built(list->tx->db, sql.data, &q, err)) < 0)
        return r;
    where_put_values(q, &list->where);
    if (is_part) {
        sql_put_int(q, (int64_t)room);
        sql_put_int(q, list->query.offset);
    }
    return list_read_rows(list, q, room, page, err);
}

/* By the walk: 1 if the page is whole, else 0. */
static int list_read_walk(const struct listing *list, const struct list_walk *walk, size_t room,
                          struct store_page *page, struct aq_error *err)
{
    struct sql *db = list->tx->db;
    int r = db->ops->avoid_sorts ? sql_run_constant(db, db->ops->avoid_sorts, err) : 0;

    if (r == 0)
        r = list_read_part(list, walk, true, room, page, err);
    if (r == 0 && db->ops->allow_sorts)
        r = sql_run_constant(db, db->ops->allow_sorts, err);
    if (r < 0 || page->count == room)
        return r < 0 ? r : 1;
    page->count = 0;
    return 0;
}

/* Those of the page's rows that offset and limit leave; its total is known. */
static int list_read_page(struct listing *list, struct store_page *page, struct aq_error *err)
{
    const struct store_query *query = &list->query;
    int64_t room = AQ_MAX(page->total - query->offset, 0);
    struct list_walk walk = { 0 };
    bool is_part, is_sorted_here;
    int r = 0;

    if (query->limit || query->range)
        room = AQ_MIN(room, query->limit);
    page->first = query->offset;
    if (room == 0)
        return 0;
    is_part = room < page->total;
    is_sorted_here = !is_part && list->extra->compare && !(query->order && query->order[0]);
    if (is_sorted_here)
        listing_drop_order(list);
    if (is_part)
        r = list_choose_walk(list, query->offset + room, page->total, &walk, err);
    if (r == 0 && walk.index)
        r = list_read_walk(list, &walk, (size_t)room, page, err);
    if (r != 0)
        return AQ_MIN(r, 0);
    walk.is_over = true;
    r = list_read_part(list, &walk, is_part, (size_t)room, page, err);
    if (r == 0 && is_sorted_here)
        qsort(page->rows, page->count, list->table->row_size, list->extra->compare);
    return r;
}

int list_fail_page(const struct store_query *query, struct aq_error *err)
{
    return aq_fail_field(err, EMSGSIZE, "limit",
                         "the rows asked for have more than %zu bytes: ask for fewer",
                         query->bytes_max);
}

int list_check_page(const struct store_query *query, const struct store_page *page,
                    struct aq_error *err)
{
    return arena_is_over(&page->arena) ? list_fail_page(query, err) : 0;
}

int list_run(struct store_tx *tx, const struct list_table *table, const struct store_query *query,
             const struct list_extra *extra, struct store_page **ret, struct aq_error *err)
{
    AQ_CLEANUP(listing_freep) struct listing *list = listing_new(tx, table, query, extra);
    AQ_CLEANUP(store_page_freep) struct store_page *page = aq_alloc(sizeof(*page));
    int64_t most;
    int r;

    page->arena.limit = query->bytes_max;
    if ((r = list_check_query(query, err)) < 0 || (r = listing_build_where(list, err)) < 0
        || (r = listing_build_order(list, err)) < 0 || (r = list_read_most(list, &most, err)) < 0)
        return r;
    page->total = most;
    if (most < 0 && list->extra->total)
        page->total = *list->extra->total;
    else if (most < 0)
        r = list_count_rows(list, &page->total, err);
    if (r == 0 && query->range)
        r = listing_apply_range(list, page->total, err);
    if (r == 0)
        r = list_read_page(list, page, err);
    if (r < 0)
        return r;
    if (most >= 0)
        page->total = (int64_t)page->count;
    *ret = AQ_TAKE(page);
    return 0;
}
