/* SPDX-License-Identifier: Apache-2.0 */
/* list_where.h - inside the store: the condition and the order of a list
 *
 * Both are text of SQL and, beside it, what the text asks for: how a list is counted and which
 * index it walks is decided by the latter.
 */
#ifndef AQ_STORE_LIST_WHERE_H
#define AQ_STORE_LIST_WHERE_H

#include "store/list_query.h"

struct where {
    struct strbuf sql;           /* empty, or " WHERE ..." */
    struct filter_values values; /* of its '?', in order */
    const char **columns;        /* that it asks for, of the listed table; in the arena */
    size_t column_count;
    bool asks_joined; /* and for those of a joined table */
    bool too_many;    /* values */
    struct arena arena;
};

struct list_order {
    struct strbuf sql;     /* empty, or " ORDER BY ..." */
    struct list_sort sort; /* what it sorts by, if it is that alone */
    bool asks_joined;
};

/* A list that is being read: what is asked for, and the parts of its statements. */
struct listing {
    struct store_tx *tx;
    const struct list_table *table;
    const struct list_extra *extra; /* not NULL */
    struct store_query query;
    struct where where;
    struct list_order order;
};

/* Free it. */
struct listing *listing_new(struct store_tx *tx, const struct list_table *table,
                            const struct store_query *query, const struct list_extra *extra);
void listing_free(struct listing *list);
AQ_DEFINE_CLEANUP(struct listing, listing_free)

/* What its query and 'extra' ask of the table's rows. -EINVAL, field "filter". */
int listing_build_where(struct listing *list, struct aq_error *err);

/* The order that they ask for, or the table's. -EINVAL, field "order". */
int listing_build_order(struct listing *list, struct aq_error *err);

/* Rows as they come. */
void listing_drop_order(struct listing *list);

/* Does the condition ask for this column of the listed table? */
bool where_asks(const struct where *w, const char *column);

/* The values of the condition, as the statement's next parameters. */
void where_put_values(struct sql_stmt *q, const struct where *w);

/* Rows are chosen, in the list's order if 'is_ordered', or counted, from: 'from' in this way (NULL
 * = any), what is joined, and the condition.
 */
void listing_add_source(const struct listing *list, const char *from, const char *way,
                        bool is_ordered, struct strbuf *sql);

/* Set limit and offset of the query to what its range means in a list of 'total' rows. */
int listing_apply_range(struct listing *list, int64_t total, struct aq_error *err);

#endif
