/* SPDX-License-Identifier: Apache-2.0 */
/* node.h - rows as nodes of Relay: node(id), X_node(id) and X_nodes
 *
 * They are the rows of the other lists, by the same queries and for the same callers.
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_NODE_H
#define AQ_MANAGER_CALL_GRAPHQL_NODE_H

#include "graphql/relay.h"
#include "manager/call/graphql/permission.h"
#include "manager/call/graphql/resolve.h"
#include "store/filter.h"

/* The most that 'first' and 'last' may be, and what they are if not given. */
#define NODES_MAX 100

/* For gql_limits.cost: a list of which a cursor's place is found by numbering it whole. */
#define NODES_COST (5 * GQL_COST_READ)

/* A member of a newer filter or order that is not called as our field is (newer.h). */
struct newer_word {
    const char *name, *field;
};

/* What a list is asked for. */
struct gql_node_part {
    const char *filter, *order; /* mini language; NULL = all, in the default order */
    struct relay_part part;
};

struct gql_node {
    uint32_t type; /* SCHEMA_TYPE_ of the node */
    relay_id_fn *id_of;

    /* Of rows of the store. */
    gql_list_fn *list;
    size_t row_size;
    /* Narrow the query to what the caller may see, and to the row of this id unless it is NULL. */
    int (*narrow)(struct gql_fetch *fetch, const char *id, struct aq_error *err);
    /* What a project's scope is; NULL = what belongs to it. */
    int (*narrow_to_project)(struct gql_fetch *fetch, const struct uuid *id, struct aq_error *err);
    bool is_unowned; /* by a domain, a project or a user: the only scope is 'system' */

    /* Of others: resolve to the row of this id, given with this type. */
    int (*get)(struct gql_call *call, const char *id, uint32_t type);
    const struct filter_field *fields; /* of these rows, in memory; NULL = 'filter' and 'order' are
                                          refused */
    size_t field_count;

    const struct permission_list *permissions; /* NULL = it has none */
    const struct newer_word *newer_words;
    size_t newer_word_count;
};

struct feature;

/* The features whose nodes there are, ending with NULL; borrowed. Before the first request. */
void gql_node_set_features(const struct feature *const *features);
/* The node of a SCHEMA_TYPE_; NULL = no feature has it. */
const struct gql_node *gql_node_find(uint32_t type);

/* The connection that the call asks for of all 'count' rows, an array: of those that its 'filter'
 * finds, in its 'order'.
 */
struct gql_value gql_node_connect(struct gql_call *call, const struct gql_node *node,
                                  const void *rows, size_t size, uint32_t count);

/* The page {items, total_count} of them that the call asks for by its first four arguments: limit,
 * offset, filter and order.
 */
struct gql_value gql_node_page(struct gql_call *call, const struct gql_node *node, const void *rows,
                               size_t size, uint32_t count);

/* Of a page that was read. */
struct gql_value gql_node_connect_page(const struct gql_fetch *fetch, const void *rows,
                                       size_t count, int64_t first, int64_t total);

/* The arguments of an X_nodes, and the node's own narrowing, into the query. */
int gql_node_read_args(struct gql_fetch *fetch, struct store_range *range, struct aq_error *err);
/* Resolve to the node whose id is the first argument, to the connection of a node's rows, to the
 * global id.
 */
int gql_node_get(struct gql_call *call);
int gql_node_list(struct gql_call *call);
struct gql_value gql_node_get_id(struct gql_get *get, const void *parent);
/* Resolve each parent to the row of its id, of those that the caller may see by one; else null. */
int gql_node_load(struct gql_call *call, const struct gql_node *node,
                  const struct uuid *(*id_of)(const void *parent));
/* The same for lists: 'ids_of' gives the ids of a parent's rows and how many. Rows that the caller
 * may not see are left out.
 */
int gql_node_load_lists(struct gql_call *call, const struct gql_node *node,
                        const struct uuid *(*ids_of)(const struct gql_call *call,
                                                     const void *parent, size_t *ret_count));
/* Of a type of connections, what its edges lead to. */
const struct gql_node *gql_node_of_connection(const struct gql_type *connection);

/* Of two ids that both must be, the one; no rows if they differ. */
void gql_node_set_uuid(struct gql_fetch *fetch, const struct uuid **member, const struct uuid *id);

/* The query asks for the row of this UUID alone. */
int gql_node_set_id(struct gql_fetch *fetch, const char *id, struct aq_error *err);

/* node(id) and the other queries for nodes; what nodes of one type have of another. */
GQL_ENTRIES(node);
GQL_ENTRIES(node_related);

/* Fields of a node's connection, as entries. */
/* clang-format off */
#define NODE_CONNECTION(type)                                                                      \
    { SCHEMA_FIELD_##type##Connection_pageInfo, RELAY_PAGE_INFO },                                 \
    { SCHEMA_FIELD_##type##Connection_edges, RELAY_EDGES },                                        \
    { SCHEMA_FIELD_##type##Connection_count, RELAY_COUNT },                                        \
    { SCHEMA_FIELD_##type##Edge_node, RELAY_NODE },                                                \
    { SCHEMA_FIELD_##type##Edge_cursor, RELAY_CURSOR }
/* clang-format on */

#endif
