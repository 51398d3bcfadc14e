/* SPDX-License-Identifier: Apache-2.0 */
/* feature.h - how a feature's directory becomes part of the manager's HTTP interface
 *
 * manager/feature_list.c lists all features. They are opened in that order, stopped and closed in the
 * reverse one, all on the loop's thread. A feature may use in open() what was opened before it;
 * requests come once all are open.
 */
#ifndef AQ_MANAGER_CALL_FEATURE_H
#define AQ_MANAGER_CALL_FEATURE_H

#include "manager/call/api.h"

struct gql_entity;
struct gql_node;
struct gql_same;
struct gql_table;

/* Routes of one file. The role column of a row is an enum api_role, perhaps with API_FREEZABLE; its
 * body column is the table that decodes the parameters.
 */
struct route_table {
    const struct route *routes;
    size_t count;
};

#define API_ROUTES(name) extern const struct route_table name##_route_table
#define API_ROUTES_END(name) \
    const struct route_table name##_route_table = { name##_routes, AQ_COUNT(name##_routes) }

/* Lists end with NULL or a zeroed row; what a feature lacks is NULL. */
struct feature {
    const char *name; /* its directory, or a part of call */
    const struct route_table *const *routes;
    const struct gql_table *const *gql;  /* resolvers of GraphQL fields */
    const struct gql_node *const *nodes; /* types that node(id) finds */
    const struct gql_entity *entities;
    const struct gql_same *same;
    /* Allocate the feature's state and load what it keeps in memory; may block. The error is why
     * the manager does not start; close() is called then, too.
     */
    int (*open)(struct api *api, struct aq_error *err);
    /* End threads and connections, and write what waits. The server has ended all requests that it
     * could, the core still runs.
     */
    void (*stop)(struct api *api);
    /* Free the state, which may be missing or half open. No request is left. */
    void (*close)(struct api *api);
};

#endif
