/* SPDX-License-Identifier: Apache-2.0 */
/* The condition of a list. */
#include "store/where.h"

#include <errno.h>
#include <stdlib.h>

struct where *where_new(void)
{
    struct where *w = calloc(1, sizeof(*w));

    if (w)
        strbuf_init(&w->sql);
    return w;
}

void where_free(struct where *w)
{
    strbuf_done(&w->sql);
    arena_done(&w->arena);
    free(w);
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

static void where_add_equal(struct where *w, const char *column, const char *text)
{
    if (!column || !text)
        return;
    where_add_and(w);
    strbuf_addf(&w->sql, "%s = ?", column);
    where_put_value(w, (struct filter_value){ .text = text });
}

static void where_add_time(struct where *w, const char *column, const char *sign, int64_t usec)
{
    if (!column || !usec)
        return;
    where_add_and(w);
    strbuf_addf(&w->sql, "%s %s ?", column, sign);
    where_put_value(w, (struct filter_value){ .number = usec });
}

static int where_add_uuid(struct where *w, const char *column, const struct uuid *id,
                          struct aq_error *err)
{
    char *text;

    if (!column || !id)
        return 0;
    if (!(text = arena_alloc(&w->arena, UUID_TEXT_MAX)))
        return aq_fail_oom(err);
    where_add_equal(w, column, uuid_format(id, text));
    return 0;
}

static void where_add_statuses(struct where *w, const struct list_table *table, uint32_t statuses)
{
    const char *comma = "";

    if (!table->status || !statuses)
        return;
    where_add_and(w);
    strbuf_addf(&w->sql, "%s IN (", table->status);
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
    where_add_and(w);
    strbuf_addf(&w->sql, "%s IN (", table->id);
    for (size_t i = 0; i < q->id_count; i++)
        strbuf_addf(&w->sql, "%s'%s'", i ? "," : "", uuid_format(&q->ids[i], text));
    strbuf_addc(&w->sql, ')');
}

static int where_add_scope(struct where *w, const struct list_table *table,
                           const struct store_query *q, struct aq_error *err)
{
    int r;

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
        where_add_and(w);
        strbuf_addf(&w->sql, "%s = %d", table->is_active, q->is_active > 0);
    }
    r = where_add_uuid(w, table->project, q->project_id, err);
    return r < 0 ? r : where_add_uuid(w, table->user, q->user_id, err);
}

int where_build(struct where *w, const struct list_table *table, const struct store_query *q,
                const struct list_extra *extra, struct aq_error *err)
{
    int r = where_add_scope(w, table, q, err);

    if (r < 0)
        return r;
    if (extra && extra->where) {
        where_add_and(w);
        strbuf_adds(&w->sql, extra->where);
        for (size_t i = 0; i < extra->param_count; i++)
            where_put_value(w, (struct filter_value){ .text = extra->params[i] });
    }
    if (q->filter && q->filter[0]) {
        where_add_and(w);
        r = filter_compile(q->filter, table->fields, table->field_count, &w->arena, &w->sql,
                           &w->values, err);
    }
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
