/* SPDX-License-Identifier: Apache-2.0 */
/* list_query.h - inside the store: one way to make all list queries */
#ifndef AQ_STORE_LIST_QUERY_H
#define AQ_STORE_LIST_QUERY_H

#include "store/filter.h"
#include "store/query.h"
#include "store/transaction.h"

/* One row of the answer into 'ret'. */
typedef int list_read_fn(struct store_tx *tx, struct row *row, void *ret, struct aq_error *err);

/* What a table can be listed by. A NULL column is one that it does not have. */
struct list_table {
    const char *what;
    const char *columns, *from;
    /* the table alone, for when neither filter nor order asks for what 'from' joins to it;
     * NULL = as 'from'
     */
    const char *bare_from;
    const char *order; /* by default; ends in a unique column */
    const char *tie;   /* that column: what tells rows apart */
    const struct filter_field *fields;
    size_t field_count;

    const char *status;
    const char *(*status_name)(int status);
    int status_count;
    const char *domain, *project, *user, *access_key, *resource_group, *name, *id, *is_active;

    size_t row_size;
    list_read_fn *read;
};

/* What a page that could not be read is refused for: no memory is -EMSGSIZE where its bytes
 * are limited.
 */
int list_fail_page(const struct store_query *query, int r, struct aq_error *err);

/* 'extra' is a further condition with one parameter for each of its '?', or
 * NULL; 'columns', 'read' and 'order' override the table's.
 */
struct list_extra {
    const char *where, *columns, *order;
    /* two rows in this order: of whole lists, which are then sorted here; NULL = never */
    int (*compare)(const void *a, const void *b);
    list_read_fn *read;
    /* a constant query that soon says how many rows there are at most: where that is no more
     * than are asked for, they are not counted; NULL = always counted
     */
    const char *most;
    const char *params[4];
    size_t param_count;
};

int list_run(struct store_tx *tx, const struct list_table *table, const struct store_query *q,
             const struct list_extra *extra, struct store_page **ret, struct aq_error *err);

#endif
