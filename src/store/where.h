/* SPDX-License-Identifier: Apache-2.0 */
/* where.h - inside the store: the condition of a list */
#ifndef AQ_STORE_WHERE_H
#define AQ_STORE_WHERE_H

#include "store/list_query.h"

/* Under construction: empty or " WHERE ...", with the values of its '?' in order. */
struct where {
    struct strbuf sql;
    struct filter_values values;
    struct arena arena;
    bool too_many;
};

struct where *where_new(void); /* NULL = no memory */
void where_free(struct where *w);
AQ_DEFINE_CLEANUP(struct where, where_free)

/* What 'q' and 'extra' (NULL = nothing) ask of the table's rows. */
int where_build(struct where *w, const struct list_table *table, const struct store_query *q,
                const struct list_extra *extra, struct aq_error *err);

/* The values of the condition, as the statement's next parameters. */
void where_put_values(struct sql_stmt *q, const struct where *w);

#endif
