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

/* base64("type:id") in 'arena', NULL if memory is short. */
const char *relay_global_id(struct arena *arena, const char *type, const char *id);

/* The id inside a global id, and its type ("" if 'text' was not encoded: a
 * raw UUID or anything that is not base64 of "type:id"). NULL if memory is short.
 */
const char *relay_global_id_parse(struct arena *arena, const char *text,
                                  const char **ret_type) AQ_UNTRUSTED;

/* For node(id:): the object type of that name, if it implements the interface Node. */
const struct gql_type *relay_node_type(const struct gql_schema *schema, const char *name);

/* The arguments first, after, last, before and offset of a connection. */
struct relay_args {
    int64_t first, last, offset; /* -1 = not given */
    const char *after, *before;  /* ids inside the cursors; NULL = not given */
};

/* 'max' bounds first and last (and is the default if neither is given).
 * -EINVAL with a text for the client: both first and last, negative or too
 * large numbers, 'before' with first, 'after' with last.
 */
int relay_args_parse(struct arena *arena, struct gql_value first, struct gql_value after,
                     struct gql_value last, struct gql_value before, struct gql_value offset,
                     int64_t max, struct relay_args *ret, struct aq_error *err);

/* What to fetch: 'limit' rows beyond 'after' (before 'before' when
 * 'backward', in reversed order), 'offset' of them skipped. One row more than
 * the page, so that its presence tells whether there is a next one.
 */
struct relay_page {
    bool backward;
    const char *cursor; /* id to start beyond; NULL = from the end of that side */
    int64_t limit, offset;
};
struct relay_page relay_page_of(const struct relay_args *args);

/* A connection over the fetched rows, for the field types below. */
struct relay_edge {
    const char *cursor;
    const void *node;
};
struct relay_connection {
    struct gql_value edges; /* of struct relay_edge */
    bool has_next, has_previous;
    const char *start_cursor, *end_cursor; /* NULL if there are no edges */
    int64_t count;                         /* all rows, not only the page's; -1 = null */
};

/* 'rows' as fetched for 'page' ('count' up to page->limit); 'id_of' gives a
 * row's id for the cursor. NULL if memory is short.
 */
struct relay_connection *relay_connection_new(struct arena *arena, const struct relay_page *page,
                                              const char *type, const void *const *rows,
                                              uint32_t count, int64_t total,
                                              const char *(*id_of)(const void *row));

/* Entries for resolver tables. */
#define RELAY_EDGES GQL_VALUE_AT(struct relay_connection, edges)
#define RELAY_PAGE_INFO GQL_SELF
#define RELAY_COUNT GQL_GET(relay_get_count)
#define RELAY_NODE GQL_OBJECT_AT(struct relay_edge, node)
#define RELAY_CURSOR GQL_TEXT_AT(struct relay_edge, cursor)
#define RELAY_HAS_NEXT_PAGE GQL_BOOL_AT(struct relay_connection, has_next)
#define RELAY_HAS_PREVIOUS_PAGE GQL_BOOL_AT(struct relay_connection, has_previous)
#define RELAY_START_CURSOR GQL_TEXT_AT(struct relay_connection, start_cursor)
#define RELAY_END_CURSOR GQL_TEXT_AT(struct relay_connection, end_cursor)
struct gql_value relay_get_count(struct gql_get *get, const void *connection);

#endif
