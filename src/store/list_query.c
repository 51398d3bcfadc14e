/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the store: one way to make all list queries. */
#include "store/list_query.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/where.h"

void store_page_free(struct store_page *page)
{
    if (!page)
        return;
    arena_done(&page->arena);
    free(page);
}

/* Does a condition or an order, made of the table's fields, ask for what is joined? */
static bool list_asks_joined(const struct list_table *table, const char *sql)
{
    for (size_t i = 0; i < table->field_count; i++)
        if (table->fields[i].is_joined && strstr(sql, table->fields[i].column))
            return true;
    return false;
}

void list_add_source(struct strbuf *sql, const struct list_table *table, const char *from,
                     const char *way, const struct where *w, const char *order)
{
    strbuf_adds(sql, from);
    if (way)
        strbuf_addf(sql, " %s", way);
    if (table->joins && (list_asks_joined(table, w->sql.data) || list_asks_joined(table, order)))
        strbuf_adds(sql, table->joins);
    strbuf_adds(sql, w->sql.data);
}

/* ---- totals ---- */

static int list_read_number(struct store_tx *tx, const struct strbuf *sql, const struct where *w,
                            int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = strbuf_ok(sql) ? sql_prepare_built(tx->db, sql->data, &q, err) : aq_fail_oom(err);

    if (r < 0)
        return r;
    where_put_values(q, w);
    if ((r = sql_step(q, err)) > 0)
        *ret = sql_get_int(q);
    return AQ_MIN(r, 0);
}

/* Does a condition ask for nothing but columns of kinds? */
static bool list_is_of_kinds(const struct list_totals *totals, const char *sql)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    char word[64];

    for (const char *at = sql; (at = strstr(at, "s.")); at += 2) {
        if (at > sql && strchr(letters, at[-1]))
            continue; /* another alias */
        (void)snprintf(word, sizeof(word), " %.*s ", (int)(2 + strspn(at + 2, letters)), at);
        if (!strstr(totals->columns, word))
            return false;
    }
    return true;
}

/* The sum over kinds, and the rows that belong to none. */
static int list_sum_kinds(struct store_tx *tx, const struct list_table *table,
                          const struct where *w, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sums = STRBUF_INIT, rest = STRBUF_INIT;
    const struct list_totals *totals = table->totals;
    int64_t sum = 0;
    int r;

    strbuf_addf(&sums, "SELECT CAST(COALESCE(SUM(%s), 0) AS BIGINT) FROM ", totals->count);
    list_add_source(&sums, table, totals->from, NULL, w, "");
    strbuf_adds(&rest, "SELECT COUNT(*) FROM ");
    list_add_source(&rest, table, table->from, totals->rest_way, w, "");
    strbuf_addf(&rest, "%s%s", w->sql.len ? " AND " : " WHERE ", totals->rest);
    if ((r = list_read_number(tx, &sums, w, &sum, err)) == 0)
        r = list_read_number(tx, &rest, w, ret, err);
    *ret += sum;
    return r;
}

static int list_count_rows(struct store_tx *tx, const struct list_table *table,
                           const struct where *w, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;

    *ret = 0;
    if (!strbuf_ok(&w->sql))
        return aq_fail_oom(err);
    if (table->totals && list_is_of_kinds(table->totals, w->sql.data))
        return list_sum_kinds(tx, table, w, ret, err);
    strbuf_adds(&sql, "SELECT COUNT(*) FROM ");
    list_add_source(&sql, table, table->from, NULL, w, "");
    return list_read_number(tx, &sql, w, ret, err);
}

int list_count(struct store_tx *tx, const struct list_table *table, const struct store_query *q,
               const struct list_extra *extra, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(where_freep) struct where *w = where_new();
    int r = w ? where_build(w, table, q, extra, err) : aq_fail_oom(err);

    return r < 0 ? r : list_count_rows(tx, table, w, ret, err);
}

/* Room that is made without knowing that there are rows for it. */
#define MOST_ROWS_MAX 20000

/* How many rows there are at most if a page has room for so many, else -1. */
static int list_read_most(struct store_tx *tx, const struct store_query *query,
                          const struct list_extra *extra, int64_t *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    *ret = -1;
    if (!extra || !extra->most || query->offset || query->range)
        return 0;
    if ((r = sql_prepare(tx->db, extra->most, &q, err)) < 0 || (r = sql_step(q, err)) < 0)
        return r;
    *ret = sql_get_int(q);
    if (*ret > (query->limit ? query->limit : MOST_ROWS_MAX))
        *ret = -1;
    return 0;
}

static bool list_is_descending(const struct strbuf *sql)
{
    const char *comma = strbuf_ok(sql) ? strrchr(sql->data, ',') : NULL;

    return strbuf_ok(sql) && strstr(comma ? comma : sql->data, " DESC");
}

static int list_build_order(struct strbuf *sql, const struct list_table *table,
                            const struct store_query *q, const struct list_extra *extra,
                            struct aq_error *err)
{
    int r;

    strbuf_adds(sql, " ORDER BY ");
    if (q->order && q->order[0]) {
        r = order_compile(q->order, table->fields, table->field_count, sql, err);
        if (r < 0)
            return r;
        /* the same way, for an index to have it */
        strbuf_addf(sql, ", %s%s", table->tie,
                    table->indexes && list_is_descending(sql) ? " DESC" : "");
    } else {
        strbuf_adds(sql, extra && extra->order ? extra->order : table->order);
    }
    return strbuf_ok(sql) ? 0 : aq_fail_oom(err);
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

/* The walk that has rows in this order: by one column of the table, and by nothing else. */
static struct list_walk list_find_walk(const struct list_table *table, const struct store_query *q,
                                       const char *order)
{
    struct list_walk walk = { 0 };
    char want[2][96];

    for (size_t i = 0; i < table->index_count && !walk.index; i++) {
        const struct list_index *index = &table->indexes[i];
        bool is_tie = strcmp(index->column, table->tie) == 0;

        for (int falls = 0; falls < 2; falls++) {
            (void)snprintf(want[0], sizeof(want[0]), " ORDER BY %s%s", index->column,
                           falls ? " DESC" : "");
            (void)snprintf(want[1], sizeof(want[1]), " ORDER BY %s %s, %s%s", index->column,
                           falls ? "DESC" : "ASC", table->tie, falls ? " DESC" : "");
            if (strcmp(order, want[!is_tie]) != 0)
                continue;
            walk = (struct list_walk){
                .index = index, .beyond = falls ? ">=" : "<=", .is_falling = falls
            };
        }
    }
    if (walk.index)
        walk.way = list_is_own_index(walk.index, q) ? walk.index->of_user : walk.index->way;
    return walk;
}

/* Rows in the list are found by an index: of their user, or of what is asked of a column. */
static bool list_is_found(const struct list_table *table, const struct store_query *q,
                          const struct where *w)
{
    bool is_found = table->is_found || list_is_of_one(q) || q->name || q->id_count;

    for (size_t i = 0; i < table->index_count; i++)
        is_found |= !table->indexes[i].of_names && strstr(w->sql.data, table->indexes[i].column);
    return is_found;
}

/* Which way to walk for a page up to row 'end' of those in the list, if that is shorter than to
 * find and sort all of these. It passes by end * height / total rows, were they spread evenly; as
 * they need not be, it ends after some times as many, and the page is read by other means.
 */
static int list_choose_walk(struct store_tx *tx, const struct list_table *table,
                            const struct store_query *q, const struct where *w, const char *order,
                            int64_t end, int64_t total, struct list_walk *ret, struct aq_error *err)
{
    AQ_CLEANUP(sql_endp) struct sql_stmt *height_query = NULL;
    struct list_walk walk = list_find_walk(table, q, order);
    double passed, height;
    int r;

    *ret = (struct list_walk){ 0 };
    if (!walk.index)
        return 0;
    if ((r = sql_prepare(tx->db, table->height, &height_query, err)) < 0
        || (r = sql_step(height_query, err)) < 0)
        return r;
    height = (double)sql_get_int(height_query);
    passed = (double)end * height / (double)total;
    if (passed > (list_is_found(table, q, w) ? (double)total : height))
        return 0;
    if (!list_is_own_index(walk.index, q) && WALK_SPARE * passed + WALK_MIN < height)
        walk.entries = (int64_t)(WALK_SPARE * passed) + WALK_MIN;
    *ret = walk;
    return 0;
}

static void list_add_walk(struct strbuf *sql, const struct list_table *table, const struct where *w,
                          const char *order, const struct list_walk *walk)
{
    list_add_source(sql, table, table->from, walk->way, w, order);
    if (walk->entries)
        strbuf_addf(sql, "%s (%s, %s) %s (SELECT %s, %s FROM %s %s%s LIMIT 1 OFFSET %lld)",
                    w->sql.len ? " AND" : " WHERE", walk->index->column, table->tie, walk->beyond,
                    walk->index->column, table->tie, table->from, walk->way, order,
                    (long long)walk->entries);
    strbuf_adds(sql, order);
}

static void list_add_ordered(struct strbuf *sql, const struct list_table *table,
                             const struct where *w, const char *order)
{
    strbuf_addf(sql, "SELECT %s FROM ", table->tie);
    list_add_source(sql, table, table->from, NULL, w, order);
    strbuf_adds(sql, order);
}

/* All that match, and then their order: what is limited first cannot be ordered by an index. */
static void list_add_found(struct strbuf *sql, const struct list_table *table,
                           const struct where *w, const char *order, const struct list_walk *walk)
{
    const char *direction = walk->is_falling ? " DESC" : "";

    strbuf_addf(sql, "SELECT tie FROM (SELECT %s AS tie, %s AS place FROM ", table->tie,
                walk->index->column);
    list_add_source(sql, table, table->from, NULL, w, order);
    strbuf_addf(sql, " LIMIT %lld) a ORDER BY place%s, tie%s", (long long)INT64_MAX, direction,
                direction);
}

/* Of a part, what tells rows apart is found alone, and only the rows of the part are read whole. */
static int list_build_select(struct strbuf *sql, const struct list_table *table,
                             const struct list_extra *extra, const struct where *w,
                             const char *order, const struct list_walk *walk, bool is_part,
                             struct aq_error *err)
{
    const char *columns = extra && extra->columns ? extra->columns : table->columns;
    const char *joins = table->joins ? table->joins : "";

    if (walk->index && !walk->is_over) { /* which is the order already */
        strbuf_addf(sql,
                    "SELECT %s FROM (SELECT tie, ROW_NUMBER() OVER () AS place FROM"
                    " (SELECT %s AS tie FROM ",
                    columns, table->tie);
        list_add_walk(sql, table, w, order, walk);
        strbuf_addf(sql, " LIMIT ? OFFSET ?) a) b JOIN %s ON %s = b.tie%s ORDER BY b.place",
                    table->from, table->tie, joins);
    } else if (is_part) {
        strbuf_addf(sql, "SELECT %s FROM %s%s WHERE (%s) IN (", columns, table->from, joins,
                    table->tie);
        if (walk->index)
            list_add_found(sql, table, w, order, walk);
        else
            list_add_ordered(sql, table, w, order);
        strbuf_addf(sql, " LIMIT ? OFFSET ?)%s", order);
    } else {
        strbuf_addf(sql, "SELECT %s FROM %s%s%s%s", columns, table->from, joins, w->sql.data,
                    order);
    }
    return strbuf_ok(sql) ? 0 : aq_fail_oom(err);
}

static int list_read_rows(struct store_tx *tx, const struct list_table *table,
                          const struct list_extra *extra, struct sql_stmt *q, size_t room,
                          struct store_page *page, struct aq_error *err)
{
    list_read_fn *read = extra && extra->read ? extra->read : table->read;
    struct row row = { .q = q, .arena = &page->arena };
    int r;

    page->rows = arena_array(&page->arena, AQ_MAX(room, 1), table->row_size);
    if (!page->rows)
        return aq_fail_oom(err);
    while ((r = sql_step(q, err)) > 0 && page->count < room) {
        r = read(tx, &row, (char *)page->rows + page->count * table->row_size, err);
        if (r < 0)
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
static int list_read_part(struct store_tx *tx, const struct list_table *table,
                          const struct store_query *query, const struct list_extra *extra,
                          const struct where *w, const char *order, const struct list_walk *walk,
                          bool is_part, size_t room, struct store_page *page, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r = list_build_select(&sql, table, extra, w, order, walk, is_part, err);

    if (r < 0 || (r = sql_prepare_built(tx->db, sql.data, &q, err)) < 0)
        return r;
    where_put_values(q, w);
    if (is_part) {
        sql_put_int(q, (int64_t)room);
        sql_put_int(q, query->offset);
    }
    return list_read_rows(tx, table, extra, q, room, page, err);
}

/* By the walk: 1 if the page is whole, else 0. */
static int list_read_walk(struct store_tx *tx, const struct list_table *table,
                          const struct store_query *query, const struct list_extra *extra,
                          const struct where *w, const char *order, const struct list_walk *walk,
                          size_t room, struct store_page *page, struct aq_error *err)
{
    const struct sql_ops *ops = tx->db->ops;
    int r = ops->avoid_sorts ? sql_run_constant(tx->db, ops->avoid_sorts, err) : 0;

    if (r == 0)
        r = list_read_part(tx, table, query, extra, w, order, walk, true, room, page, err);
    if (r == 0 && ops->allow_sorts)
        r = sql_run_constant(tx->db, ops->allow_sorts, err);
    if (r < 0 || page->count == room)
        return r < 0 ? r : 1;
    page->count = 0;
    return 0;
}

/* Those of the page's rows that offset and limit leave; its total is known. */
static int list_read_page(struct store_tx *tx, const struct list_table *table,
                          const struct store_query *query, const struct list_extra *extra,
                          const struct where *w, const char *order, struct store_page *page,
                          struct aq_error *err)
{
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
    is_sorted_here = !is_part && extra && extra->compare && !(query->order && query->order[0]);
    if (is_sorted_here)
        order = "";
    if (is_part)
        r = list_choose_walk(tx, table, query, w, order, query->offset + room, page->total, &walk,
                             err);
    if (r == 0 && walk.index)
        r = list_read_walk(tx, table, query, extra, w, order, &walk, (size_t)room, page, err);
    if (r != 0)
        return AQ_MIN(r, 0);
    walk.is_over = true;
    r = list_read_part(tx, table, query, extra, w, order, &walk, is_part, (size_t)room, page, err);
    if (r == 0 && is_sorted_here)
        qsort(page->rows, page->count, table->row_size, extra->compare);
    return r;
}

int list_fail_page(const struct store_query *query, int r, struct aq_error *err)
{
    if (r != -ENOMEM || !query->bytes_max)
        return r;
    return aq_fail_field(err, EMSGSIZE, "limit",
                         "the rows asked for have more than %zu bytes: ask for fewer",
                         query->bytes_max);
}

int list_run(struct store_tx *tx, const struct list_table *table, const struct store_query *query,
             const struct list_extra *extra, struct store_page **ret, struct aq_error *err)
{
    AQ_CLEANUP(store_page_freep) struct store_page *page = calloc(1, sizeof(*page));
    AQ_CLEANUP(where_freep) struct where *w = where_new();
    AQ_CLEANUP(strbuf_donep) struct strbuf order = STRBUF_INIT;
    struct store_query part = *query;
    int64_t most;
    int r;

    if (!page || !w)
        return aq_fail_oom(err);
    page->arena.limit = query->bytes_max;
    if ((r = list_check_query(query, err)) < 0 || (r = where_build(w, table, query, extra, err)) < 0
        || (r = list_build_order(&order, table, query, extra, err)) < 0
        || (r = list_read_most(tx, query, extra, &most, err)) < 0)
        return list_fail_page(query, r, err);
    page->total = most;
    if (most < 0 && extra && extra->total)
        page->total = *extra->total;
    else if (most < 0)
        r = list_count_rows(tx, table, w, &page->total, err);
    if (r == 0 && query->range)
        r = list_apply_range(tx, table, w, order.data, page->total, &part, err);
    if (r == 0)
        r = list_read_page(tx, table, &part, extra, w, order.data, page, err);
    if (r < 0)
        return list_fail_page(query, r, err);
    if (most >= 0)
        page->total = (int64_t)page->count;
    *ret = AQ_TAKE(page);
    return 0;
}
