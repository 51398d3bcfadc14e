/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the store: one way to make all list queries. */
#include "store/list_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void store_page_free(struct store_page *page)
{
    if (!page)
        return;
    arena_done(&page->arena);
    free(page);
}

/* ---- the condition ---- */

/* A WHERE under construction, with the values of its '?' in order. */
struct where {
    struct strbuf sql;
    struct filter_values values;
    struct arena arena;
    bool too_many;
};

static struct where *list_where_new(void)
{
    struct where *w = calloc(1, sizeof(*w));

    if (w)
        strbuf_init(&w->sql);
    return w;
}

static void list_where_free(struct where *w)
{
    strbuf_done(&w->sql);
    arena_done(&w->arena);
    free(w);
}
AQ_DEFINE_CLEANUP(struct where, list_where_free)

static void list_put_value(struct where *w, struct filter_value value)
{
    if (w->values.count == FILTER_VALUES_MAX)
        w->too_many = true;
    else
        w->values.items[w->values.count++] = value;
}

static void list_add_and(struct where *w)
{
    strbuf_adds(&w->sql, w->sql.len ? " AND " : " WHERE ");
}

static void list_add_equal(struct where *w, const char *column, const char *text)
{
    if (!column || !text)
        return;
    list_add_and(w);
    strbuf_addf(&w->sql, "%s = ?", column);
    list_put_value(w, (struct filter_value){ .text = text });
}

static int list_add_uuid(struct where *w, const char *column, const struct uuid *id,
                         struct aq_error *err)
{
    char *text;

    if (!column || !id)
        return 0;
    if (!(text = arena_alloc(&w->arena, UUID_TEXT_MAX)))
        return aq_fail_oom(err);
    list_add_equal(w, column, uuid_format(id, text));
    return 0;
}

static void list_add_statuses(struct where *w, const struct list_table *table, uint32_t statuses)
{
    const char *comma = "";

    if (!table->status || !statuses)
        return;
    list_add_and(w);
    strbuf_addf(&w->sql, "%s IN (", table->status);
    for (int i = 0; i < table->status_count; i++)
        if (statuses & (1u << i)) {
            strbuf_addf(&w->sql, "%s'%s'", comma, table->status_name(i));
            comma = ",";
        }
    strbuf_adds(&w->sql, comma[0] ? ")" : "'')");
}

/* Ids are ours, not untrusted text: written as literals. */
static void list_add_ids(struct where *w, const struct list_table *table,
                         const struct store_query *q)
{
    char text[UUID_TEXT_MAX];

    if (!table->id || !q->id_count)
        return;
    list_add_and(w);
    strbuf_addf(&w->sql, "%s IN (", table->id);
    for (size_t i = 0; i < q->id_count; i++)
        strbuf_addf(&w->sql, "%s'%s'", i ? "," : "", uuid_format(&q->ids[i], text));
    strbuf_addc(&w->sql, ')');
}

static int list_add_scope(struct where *w, const struct list_table *table,
                          const struct store_query *q, struct aq_error *err)
{
    int r;

    list_add_statuses(w, table, q->statuses);
    list_add_equal(w, table->domain, q->domain);
    list_add_equal(w, table->access_key, q->access_key);
    list_add_equal(w, table->resource_group, q->resource_group);
    list_add_equal(w, table->name, q->name);
    list_add_ids(w, table, q);
    if (table->is_active && q->is_active) {
        list_add_and(w);
        strbuf_addf(&w->sql, "%s = %d", table->is_active, q->is_active > 0);
    }
    r = list_add_uuid(w, table->project, q->project_id, err);
    return r < 0 ? r : list_add_uuid(w, table->user, q->user_id, err);
}

static int list_build_where(struct where *w, const struct list_table *table,
                            const struct store_query *q, const struct list_extra *extra,
                            struct aq_error *err)
{
    int r = list_add_scope(w, table, q, err);

    if (r < 0)
        return r;
    if (extra && extra->where) {
        list_add_and(w);
        strbuf_adds(&w->sql, extra->where);
        for (size_t i = 0; i < extra->param_count; i++)
            list_put_value(w, (struct filter_value){ .text = extra->params[i] });
    }
    if (q->filter && q->filter[0]) {
        list_add_and(w);
        r = filter_compile(q->filter, table->fields, table->field_count, &w->arena, &w->sql,
                           &w->values, err);
    }
    if (r == 0 && w->too_many)
        r = aq_fail_field(err, EINVAL, "filter", "too many values");
    return r;
}

static void list_put_values(struct sql_stmt *q, const struct where *w)
{
    for (size_t i = 0; i < w->values.count; i++) {
        const struct filter_value *value = &w->values.items[i];

        if (value->text)
            sql_put_text(q, value->text);
        else
            sql_put_int(q, value->number);
    }
}

/* ---- the queries ---- */

/* What rows are chosen and counted from. */
static const char *list_key_source(const struct list_table *table, const struct store_query *q)
{
    bool is_bare = table->bare_from && !(q->filter && q->filter[0]) && !(q->order && q->order[0]);

    return is_bare ? table->bare_from : table->from;
}

static int list_count_rows(struct store_tx *tx, const struct list_table *table,
                           const struct store_query *query, const struct where *w, int64_t *ret,
                           struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int r;

    strbuf_addf(&sql, "SELECT COUNT(*) FROM %s%s", list_key_source(table, query), w->sql.data);
    if (!strbuf_ok(&sql) || !strbuf_ok(&w->sql))
        return aq_fail_oom(err);
    r = sql_prepare_once(tx->db, sql.data, &q, err);
    if (r < 0)
        return r;
    list_put_values(q, w);
    r = sql_step(q, err);
    if (r < 0)
        return r;
    *ret = sql_get_int(q);
    return 0;
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
    if (!extra || !extra->most || query->offset)
        return 0;
    if ((r = sql_prepare(tx->db, extra->most, &q, err)) < 0 || (r = sql_step(q, err)) < 0)
        return r;
    *ret = sql_get_int(q);
    if (*ret > (query->limit ? query->limit : MOST_ROWS_MAX))
        *ret = -1;
    return 0;
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
        strbuf_addf(sql, ", %s", table->tie);
    } else {
        strbuf_adds(sql, extra && extra->order ? extra->order : table->order);
    }
    return strbuf_ok(sql) ? 0 : aq_fail_oom(err);
}

/* Of a part, what tells rows apart is sorted alone, and only the rows of the
 * part are read and sorted whole.
 */
static int list_build_select(struct strbuf *sql, const struct list_table *table,
                             const struct store_query *query, const struct list_extra *extra,
                             const struct where *w, const char *order, bool is_part,
                             struct aq_error *err)
{
    const char *columns = extra && extra->columns ? extra->columns : table->columns;

    strbuf_addf(sql, "SELECT %s FROM %s", columns, table->from);
    if (is_part)
        strbuf_addf(sql, " WHERE (%s) IN (SELECT %s FROM %s%s%s LIMIT ? OFFSET ?)%s", table->tie,
                    table->tie, list_key_source(table, query), w->sql.data, order, order);
    else
        strbuf_addf(sql, "%s%s", w->sql.data, order);
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

/* Those of the page's rows that offset and limit leave; its total is known. */
static int list_read_page(struct store_tx *tx, const struct list_table *table,
                          const struct store_query *query, const struct list_extra *extra,
                          const struct where *w, const char *order, struct store_page *page,
                          struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf sql = STRBUF_INIT;
    AQ_CLEANUP(sql_endp) struct sql_stmt *q = NULL;
    int64_t room = AQ_MAX(page->total - query->offset, 0);
    bool is_part, is_sorted_here;
    int r;

    if (query->limit)
        room = AQ_MIN(room, query->limit);
    is_part = room < page->total;
    is_sorted_here = !is_part && extra && extra->compare && !(query->order && query->order[0]);
    if (is_sorted_here)
        order = "";
    if ((r = list_build_select(&sql, table, query, extra, w, order, is_part, err)) < 0
        || (r = sql_prepare_once(tx->db, sql.data, &q, err)) < 0)
        return r;
    list_put_values(q, w);
    if (is_part) {
        sql_put_int(q, room);
        sql_put_int(q, query->offset);
    }
    r = list_read_rows(tx, table, extra, q, (size_t)room, page, err);
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
    AQ_CLEANUP(list_where_freep) struct where *w = list_where_new();
    AQ_CLEANUP(strbuf_donep) struct strbuf order = STRBUF_INIT;
    int64_t most;
    int r;

    if (!page || !w)
        return aq_fail_oom(err);
    page->arena.limit = query->bytes_max;
    if ((r = list_check_query(query, err)) < 0
        || (r = list_build_where(w, table, query, extra, err)) < 0
        || (r = list_build_order(&order, table, query, extra, err)) < 0
        || (r = list_read_most(tx, query, extra, &most, err)) < 0)
        return list_fail_page(query, r, err);
    page->total = most;
    if (most < 0)
        r = list_count_rows(tx, table, query, w, &page->total, err);
    if (r == 0)
        r = list_read_page(tx, table, query, extra, w, order.data, page, err);
    if (r < 0)
        return list_fail_page(query, r, err);
    if (most >= 0)
        page->total = (int64_t)page->count;
    *ret = AQ_TAKE(page);
    return 0;
}
