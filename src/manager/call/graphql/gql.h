/* SPDX-License-Identifier: Apache-2.0 */
/* gql.h - POST /admin/gql: the schema of schema.graphql over memory and store
 *
 * A type is a file: its resolvers as a table of entries, listed in gql.c.
 * Lists are read on the store's threads; what is asked of each object in a
 * list is answered for all of them at once.
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_GQL_H
#define AQ_MANAGER_CALL_GRAPHQL_GQL_H

#include "graphql/graphql.h"
#include "manager/call/api.h"

API_ROUTES(gql);

/* The engine for all requests. -EINVAL names a field without a resolver. */
int gql_new(struct gql_engine **ret, struct aq_error *err);

#endif
