/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - inside the loading: tables as events; load_session.c has those of sessions */
#ifndef AQ_STORE_LOAD_H
#define AQ_STORE_LOAD_H

#include "store/store.h"
#include "store/transaction.h"

struct entity_table;

/* Rows that belong to those of a table, read beside them in the same order. */
struct load_scan {
    struct sql_stmt *q;
    struct row row;
    int64_t seq;       /* of the session that the row belongs to, ... */
    struct uuid owner; /* ... or of the user or model service */
    bool is_at_end;
};

struct loader {
    struct store_tx *tx;
    const char *page; /* JSON object with rows of sessions as keys: these alone; NULL = all */
    store_visit_fn visit;
    void *data;
    struct load_scan memberships, kernels, dependencies, array_dependencies;
    struct load_scan revisions, tokens; /* of model services */
    struct session_dependency last; /* of array_dependencies: elements of an array share theirs */
};

/* Of sessions s that live, and of what is joined with them. */
struct load_query {
    const char *columns, *joined, *where, *order;
};

/* A table: the columns, and how one row becomes the members of an event. */
struct load_table {
    const char *what, *query;
    enum event_kind kind;
    /* NULL: 'rows' says all. */
    int (*read)(struct loader *l, struct row *row, struct event *e, struct aq_error *err);
    int (*begin)(struct loader *l, struct aq_error *err); /* NULL = nothing beside it */
    const struct entity_table *rows; /* of the struct at this offset in the event: instead of
                                        'query'; 'read' follows, and takes no column */
    size_t offset;
    const struct load_query *of_sessions; /* instead of 'query' */
};

/* On to the next row: 1, or 0 at the end. */
int load_scan_step(struct load_scan *scan, struct aq_error *err);

/* Visit the rows of a table. */
int load_table(struct loader *l, const struct load_table *table, struct aq_error *err);

/* Release what is left of the scans, in any case. */
void load_end(struct loader *l);

/* ---- load_session.c ---- */

extern const struct load_table load_session_table;

/* The query over all sessions that live, or over those of the loader's page. */
int load_session_prepare(const struct loader *l, const struct load_query *query,
                         struct sql_stmt **ret, struct aq_error *err);

#endif
