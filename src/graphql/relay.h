/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - global ids, cursors and pages of Relay's specifications
 *
 * A global id is base64("Type:id"), a cursor base64("Type:id") too or any
 * text the caller chooses. Readers take any type, and an id that is not
 * encoded at all.
 */
#ifndef AQ_GRAPHQL_RELAY_H
#define AQ_GRAPHQL_RELAY_H

#include "graphql/graphql.h"

/* base64("type:id") in 'arena'. */
const char *relay_global_id(struct arena *arena, const char *type, const char *id);

/* The id inside a global id, and its type ("" if 'text' was not encoded: a
 * raw UUID or anything that is not base64 of "type:id").
 */
const char *relay_global_id_parse(struct arena *arena, const char *text,
                                  const char **ret_type) AQ_UNTRUSTED;

/* For node(id:): the object type of that name, if it implements the interface Node. */
const struct gql_type *relay_node_type(const struct gql_schema *schema, const char *name);

/* The arguments first, after, last, before and offset of a connection: which part of a list. */
struct relay_part {
    const char *after, *before; /* ids inside the cursors; NULL = not given */
    int64_t limit, offset;      /* how many at most, and how many are left out before these */
    bool is_from_end;           /* 'last': counted back from 'before' or the end; the order stays */
};

/* 'max' bounds first and last (and is the default if neither is given).
 * -EINVAL with a text for the client: both first and last, negative or too
 * large numbers, 'before' with first, 'after' with last.
 */
int relay_part_parse(struct arena *arena, struct gql_value first, struct gql_value after,
                     struct gql_value last, struct gql_value before, struct gql_value offset,
                     int64_t max, struct relay_part *ret, struct aq_error *err);

/* A connection, for the field types below. */
struct relay_edge {
    const char *cursor;
    const void *node;
};
struct relay_connection {
    struct gql_value edges; /* of struct relay_edge */
    bool has_next, has_previous;
    const char *start_cursor, *end_cursor; /* NULL if there are no edges */
    int64_t count;                         /* all rows, not only the page's */
};

/* A row's id, as cursors and its global id have it; 'scratch' may hold it. */
typedef const char *relay_id_fn(const void *row, char scratch[64]);

/* Over 'count' structs of 'size' bytes, before which come 'first' of all 'total' rows. */
struct relay_connection *relay_connection_new(struct arena *arena, const char *type,
                                              relay_id_fn *id_of, const void *rows, size_t size,
                                              uint32_t count, int64_t first, int64_t total);

/* Entries for resolver tables. */
#define RELAY_EDGES GQL_VALUE_AT(struct relay_connection, edges)
#define RELAY_PAGE_INFO GQL_SELF
#define RELAY_COUNT GQL_COUNT_AT(struct relay_connection, count)
#define RELAY_NODE GQL_OBJECT_AT(struct relay_edge, node)
#define RELAY_CURSOR GQL_TEXT_AT(struct relay_edge, cursor)
#define RELAY_HAS_NEXT_PAGE GQL_BOOL_AT(struct relay_connection, has_next)
#define RELAY_HAS_PREVIOUS_PAGE GQL_BOOL_AT(struct relay_connection, has_previous)
#define RELAY_START_CURSOR GQL_TEXT_AT(struct relay_connection, start_cursor)
#define RELAY_END_CURSOR GQL_TEXT_AT(struct relay_connection, end_cursor)

#endif
