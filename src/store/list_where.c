/* SPDX-License-Identifier: Apache-2.0 */
/* The condition and the order of a list. */
#include "store/list_where.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct listing *listing_new(struct store_tx *tx, const struct list_table *table,
                            const struct store_query *query, const struct list_extra *extra)
{
    static const struct list_extra none = { .where = NULL };
    struct listing *list = aq_alloc(sizeof(*list));

    list->tx = tx;
    list->table = table;
    list->extra = extra ? extra : &none;
    list->query = *query;
    strbuf_init(&list->where.sql);
    strbuf_init(&list->order.sql);
    return list;
}

void listing_free(struct listing *list)
{
    strbuf_done(&list->where.sql);
    strbuf_done(&list->order.sql);
    arena_done(&list->where.arena);
    free(list);
}

/* ---- the condition ---- */

bool where_asks(const struct where *w, const char *column)
{
    for (size_t i = 0; i < w->column_count; i++)
        if (strcmp(w->columns[i], column) == 0)
            return true;
    return false;
}

static void where_note_column(struct where *w, const char *column)
{
    (void)arena_append(&w->arena, &w->columns, &w->column_count, &column, sizeof(column));
}

static void where_put_value(struct where *w, struct filter_value value)
{
    if (w->values.count == FILTER_VALUES_MAX)
        w->too_many = true;
    else
        w->values.items[w->values.count++] = value;
}

static void where_add_and(struct where *w)
{
    strbuf_adds(&w->sql, w->sql.len ? " AND " : " WHERE ");
}

/* One more condition, that starts with this column. */
static void where_add_column(struct where *w, const char *column)
{
    where_add_and(w);
    strbuf_adds(&w->sql, column);
    where_note_column(w, column);
}

static void where_add_equal(struct where *w, const char *column, const char *text)
{
    if (!column || !text)
        return;
    where_add_column(w, column);
    strbuf_adds(&w->sql, " = ?");
    where_put_value(w, (struct filter_value){ .text = text });
}

static void where_add_time(struct where *w, const char *column, const char *sign, int64_t usec)
{
    if (!column || !usec)
        return;
    where_add_column(w, column);
    strbuf_addf(&w->sql, " %s ?", sign);
    where_put_value(w, (struct filter_value){ .number = usec });
}

static void where_add_uuid(struct where *w, const char *column, const struct uuid *id)
{
    if (column && id)
        where_add_equal(w, column, uuid_format(id, arena_alloc(&w->arena, UUID_TEXT_MAX)));
}

static void where_add_statuses(struct where *w, const struct list_table *table, uint32_t statuses)
{
    const char *comma = "";

    if (!table->status || !statuses)
        return;
    where_add_column(w, table->status);
    strbuf_adds(&w->sql, " IN (");
    for (int i = 0; i < table->status_count; i++)
        if (statuses & (1u << i)) {
            strbuf_addf(&w->sql, "%s'%s'", comma, table->status_name(i));
            comma = ",";
        }
    strbuf_adds(&w->sql, comma[0] ? ")" : "'')");
}

/* Ids are ours, not untrusted text: written as literals. */
static void where_add_ids(struct where *w, const struct list_table *table,
                          const struct store_query *q)
{
    char text[UUID_TEXT_MAX];

    if (!table->id || !q->id_count)
        return;
    where_add_column(w, table->id);
    strbuf_adds(&w->sql, " IN (");
    for (size_t i = 0; i < q->id_count; i++)
        strbuf_addf(&w->sql, "%s'%s'", i ? "," : "", uuid_format(&q->ids[i], text));
    strbuf_addc(&w->sql, ')');
}

static void where_add_scope(struct where *w, const struct list_table *table,
                            const struct store_query *q)
{
    where_add_statuses(w, table, q->statuses);
    where_add_equal(w, table->domain, q->domain);
    where_add_equal(w, table->access_key, q->access_key);
    where_add_equal(w, table->resource_group, q->resource_group);
    where_add_equal(w, table->name, q->name);
    where_add_equal(w, table->action, q->action);
    where_add_time(w, table->at, ">=", q->since_usec);
    where_add_time(w, table->at, "<", q->until_usec);
    where_add_ids(w, table, q);
    if (table->is_active && q->is_active) {
        where_add_column(w, table->is_active);
        strbuf_addf(&w->sql, " = %d", q->is_active > 0);
    }
    where_add_uuid(w, table->project, q->project_id);
    where_add_uuid(w, table->user, q->user_id);
}

static void where_add_extra(struct where *w, const struct list_extra *extra)
{
    if (!extra->where)
        return;
    where_add_and(w);
    strbuf_adds(&w->sql, extra->where);
    for (size_t i = 0; i < extra->param_count; i++)
        where_put_value(w, (struct filter_value){ .text = extra->params[i] });
}

static int where_add_filter(struct where *w, const struct list_table *table, const char *filter,
                            struct aq_error *err)
{
    int r;

    where_add_and(w);
    r = filter_compile(filter, table->fields, table->field_count, &w->arena, &w->sql, &w->values,
                       err);
    for (size_t i = 0; r == 0 && i < table->field_count; i++) {
        const struct filter_field *field = &table->fields[i];

        if (!(w->values.fields & UINT64_C(1) << i))
            continue;
        if (field->is_joined)
            w->asks_joined = true;
        else /* rows that belong to the listed one are found by what tells that apart */
            where_note_column(w, field->within ? table->tie : field->column);
    }
    return r;
}

int listing_build_where(struct listing *list, struct aq_error *err)
{
    const struct store_query *q = &list->query;
    struct where *w = &list->where;
    int r = 0;

    where_add_scope(w, list->table, q);
    where_add_extra(w, list->extra);
    if (q->filter && q->filter[0])
        r = where_add_filter(w, list->table, q->filter, err);
    if (r == 0 && w->too_many)
        r = aq_fail_field(err, EINVAL, "filter", "too many values");
    return r;
}

void where_put_values(struct sql_stmt *q, const struct where *w)
{
    for (size_t i = 0; i < w->values.count; i++) {
        const struct filter_value *value = &w->values.items[i];

        if (value->text)
            sql_put_text(q, value->text);
        else
            sql_put_int(q, value->number);
    }
}

/* ---- the order ---- */

static int order_add_asked(struct list_order *order, const struct list_table *table,
                           const char *text, struct aq_error *err)
{
    struct order by;
    bool falls;
    int r = order_read(text, table->fields, table->field_count, &by, err);

    if (r < 0)
        return r;
    order_write(&by, &order->sql);
    for (size_t i = 0; i < by.count; i++)
        order->asks_joined |= by.items[i].field->is_joined;
    falls = by.items[by.count - 1].is_descending;
    /* the same way, for an index to have it */
    strbuf_addf(&order->sql, ", %s%s", table->tie, table->indexes && falls ? " DESC" : "");
    if (by.count == 1 && by.items[0].field->is_never_null)
        order->sort = (struct list_sort){ by.items[0].field->column, falls };
    return 0;
}

static void order_add_sort(struct list_order *order, const struct list_table *table,
                           const struct list_sort *sort)
{
    const char *direction = sort->is_falling ? " DESC" : "";

    strbuf_addf(&order->sql, "%s%s", sort->column, direction);
    if (strcmp(sort->column, table->tie) != 0)
        strbuf_addf(&order->sql, ", %s%s", table->tie, direction);
    order->sort = *sort;
}

int listing_build_order(struct listing *list, struct aq_error *err)
{
    const struct list_extra *extra = list->extra;
    const struct list_table *table = list->table;
    struct list_order *order = &list->order;

    strbuf_adds(&order->sql, " ORDER BY ");
    if (list->query.order && list->query.order[0])
        return order_add_asked(order, table, list->query.order, err);
    if (extra->order)
        strbuf_adds(&order->sql, extra->order);
    else if (extra->sort.column)
        order_add_sort(order, table, &extra->sort);
    else if (table->sort.column)
        order_add_sort(order, table, &table->sort);
    else
        strbuf_adds(&order->sql, table->order);
    return 0;
}

void listing_drop_order(struct listing *list)
{
    strbuf_clear(&list->order.sql);
    list->order.sort = (struct list_sort){ .column = NULL };
    list->order.asks_joined = false;
}

/* ---- both ---- */

void listing_add_source(const struct listing *list, const char *from, const char *way,
                        bool is_ordered, struct strbuf *sql)
{
    strbuf_adds(sql, from);
    if (way)
        strbuf_addf(sql, " %s", way);
    if (list->table->joins && (list->where.asks_joined || (is_ordered && list->order.asks_joined)))
        strbuf_adds(sql, list->table->joins);
    strbuf_adds(sql, list->where.sql.data);
}
