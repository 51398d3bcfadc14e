/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in the order of --sort. */
#include "cli/output/row_order.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "cli/opt.h"

#define KEYS_MAX 16

struct row_order_key {
    const struct column *column;
    bool is_descending;
};

struct row_order {
    const struct output *output;
    struct row_order_key keys[KEYS_MAX];
    size_t count;
};

struct row_order_row {
    json_t *row;
    size_t index;
};

static int row_order_parse(const struct output *o, const struct column *columns,
                           struct row_order *ret, struct aq_error *err)
{
    *ret = (struct row_order){ .output = o };
    for (const char *at = o->sort; at;) {
        bool is_descending = at[0] == '-';
        size_t len = strcspn(at += is_descending, ",");
        const struct column *column = output_find_column(columns, at, len);

        if (!column)
            return output_fail_unknown_column(columns, "--sort", at, len, err);
        if (ret->count == KEYS_MAX)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--sort takes at most %d columns",
                                KEYS_MAX);
        ret->keys[ret->count++] = (struct row_order_key){
            column,
            is_descending != output_is_age(column, at, len),
        };
        at = at[len] ? at + len + 1 : NULL;
    }
    return 0;
}

int row_order_needs(const struct output *o, const struct column *columns, uint64_t *ret,
                    struct aq_error *err)
{
    struct row_order order;
    int r = row_order_parse(o, columns, &order, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < order.count; i++)
        *ret |= UINT64_C(1) << (order.keys[i].column - columns);
    return 0;
}

/* As it is shown; "cpu=10" comes after "cpu=2". */
static int row_order_compare_cells(const struct output *o, const struct column *column,
                                   const json_t *a, const json_t *b)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf x = STRBUF_INIT, y = STRBUF_INIT;

    cell_write(o, column, a, &x);
    cell_write(o, column, b, &y);
    return strverscmp(x.data, y.data);
}

static bool row_order_is_missing(const json_t *value)
{
    return !value || json_is_null(value);
}

static int row_order_compare_values(const struct output *o, const struct column *column,
                                    const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);

        return (x > y) - (x < y);
    }
    if (row_order_is_missing(a) || row_order_is_missing(b)) /* goes last */
        return row_order_is_missing(a) - row_order_is_missing(b);
    if (json_is_string(a) && json_is_string(b))
        return column->kind == COLUMN_TIME ? strcmp(json_string_value(a), json_string_value(b))
                                           : strverscmp(json_string_value(a), json_string_value(b));
    return row_order_compare_cells(o, column, a, b);
}

static int row_order_compare_rows(const void *a, const void *b, void *data)
{
    const struct row_order_row *x = a, *y = b;
    const struct row_order *order = data;

    for (size_t i = 0; i < order->count; i++) {
        const struct column *column = order->keys[i].column;
        int c = row_order_compare_values(order->output, column,
                                         json_object_get(x->row, column->key),
                                         json_object_get(y->row, column->key));

        if (c)
            return order->keys[i].is_descending ? -c : c;
    }
    return (x->index > y->index) - (x->index < y->index);
}

int row_order_sort(const struct output *o, const struct column *columns, const json_t *rows,
                   json_t **ret, struct aq_error *err)
{
    size_t count = json_array_size(rows);
    AQ_CLEANUP(aq_freep) struct row_order_row *sorted = NULL;
    struct row_order order;
    json_t *list;
    int r = row_order_parse(o, columns, &order, err);

    if (r < 0)
        return r;
    sorted = aq_alloc_array(count + 1, sizeof(*sorted));
    list = json_array();
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct row_order_row){ json_array_get(rows, i), i };
    if (order.count)
        qsort_r(sorted, count, sizeof(*sorted), row_order_compare_rows, &order);
    for (size_t i = 0; i < count; i++)
        (void)json_array_append(list, sorted[i].row);
    *ret = list;
    return 0;
}
