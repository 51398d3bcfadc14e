/* SPDX-License-Identifier: Apache-2.0 */
/* gql.h - POST /admin/gql: the schema of schema.graphql over memory and store
 *
 * A type is a file: its resolvers as a table of entries, which its feature registers.
 * Lists are read on the store's threads; what is asked of each object in a
 * list is answered for all of them at once.
 */
#ifndef AQ_MANAGER_CALL_GRAPHQL_GQL_H
#define AQ_MANAGER_CALL_GRAPHQL_GQL_H

#include "graphql/graphql.h"
#include "manager/call/feature.h"

/* The routes above, and types that belong to no feature. */
extern const struct feature gql_feature;

/* The engine for all requests, with what these features resolve; the list ends with NULL and is
 * borrowed. -EINVAL names a field without a resolver, or with two.
 */
int gql_new(const struct feature *const *features, struct gql_engine **ret, struct aq_error *err);

#endif
