/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.h - inside the store: one way to make all list queries */
#ifndef AQ_STORE_LIST_QUERY_H
#define AQ_STORE_LIST_QUERY_H

#include "store/filter.h"
#include "store/query.h"
#include "store/transaction.h"

/* One row of the answer into 'ret'. */
typedef int list_read_fn(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err);

/* In which way SQLite finds all rows in the order of a column, and those of one user where that is
 * another: "INDEXED BY ...".
 */
struct list_index {
    const char *column, *way, *of_user;
    bool of_names; /* filters of the column are mostly patterns, which no index helps to find */
};

/* A table of kinds of rows, with the table's own alias "s" and names of columns, and of how many
 * rows each has: where a condition asks for nothing but the columns of kinds, they are summed.
 */
struct list_totals {
    const char *from, *count;
    const char *const *columns; /* of a kind */
    size_t column_count;
    const char *rest; /* the condition of rows that belong to no kind, and how they are found */
    const char *rest_way;
};

/* Rows by a column that is never null, and where it is the same by the table's tie, the same way.
 */
struct list_sort {
    const char *column; /* NULL = there is none */
    bool is_falling;
};

/* What a table can be listed by. A NULL column is one that it does not have. */
struct list_table {
    const char *what;
    const char *columns, *from;
    /* A row of other tables for each, which is left out where neither filter nor order asks for
     * it; NULL = none.
     */
    const char *joins;
    const char *order;     /* by default; ends in a unique column */
    struct list_sort sort; /* the same where it can be an index's; then 'order' is NULL */
    const char *tie;       /* the unique column: what tells rows apart */
    /* Ways to take rows in an order without a sort, where enough of them are in the list; 'height'
     * is a constant query of how many rows there are about.
     */
    const struct list_index *indexes;
    size_t index_count;
    const char *height;
    bool is_found;                    /* what is asked for is found by an index of its own */
    const struct list_totals *totals; /* NULL = rows are always counted */
    const struct filter_field *fields;
    size_t field_count;

    const char *status;
    const char *(*status_name)(int status);
    int status_count;
    const char *domain, *project, *user, *access_key, *resource_group, *name, *id, *is_active;
    const char *action, *at;

    size_t row_size;
    list_read_fn *read;
};

/* -EMSGSIZE: the rows have more bytes than the query allows. list_check_page() fails so once they
 * have, and 0 before: ask it after each row.
 */
int list_fail_page(const struct store_query *query, struct aq_error *err);
int list_check_page(const struct store_query *query, const struct store_page *page,
                    struct aq_error *err);

/* 'extra' is a further condition with one parameter for each of its '?', or
 * NULL; 'columns', 'read', and 'order' or 'sort' override the table's.
 */
struct list_extra {
    const char *where, *columns, *order;
    struct list_sort sort;
    bool is_of_kinds; /* the condition asks for nothing but columns of kinds */
    bool is_found;    /* it finds few rows, by an index of its own */
    /* two rows in this order: of whole lists, which are then sorted here; NULL = never */
    int (*compare)(const void *a, const void *b);
    list_read_fn *read;
    /* a constant query that soon says how many rows there are at most: where that is no more
     * than are asked for, they are not counted; NULL = always counted
     */
    const char *most;
    const int64_t *total; /* how many rows there are, from list_count(); NULL = they are counted */
    const char *params[8];
    size_t param_count;
};

/* How many rows list_run() would find, without limit and offset. */
int list_count(struct store_tx *tx, const struct list_table *table, const struct store_query *q,
               const struct list_extra *extra, int64_t *ret, struct aq_error *err);

int list_run(struct store_tx *tx, const struct list_table *table, const struct store_query *q,
             const struct list_extra *extra, struct store_page **ret, struct aq_error *err);

#endif
