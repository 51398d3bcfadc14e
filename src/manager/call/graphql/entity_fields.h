/* SPDX-License-Identifier: Apache-2.0 */
/* entity_fields.h - fields of GraphQL types whose objects begin with a row of an entity */
#ifndef AQ_MANAGER_CALL_GRAPHQL_ENTITY_FIELDS_H
#define AQ_MANAGER_CALL_GRAPHQL_ENTITY_FIELDS_H

#include "graphql/graphql.h"
#include "model/entity.h"

/* Fill in the resolvers of the type's fields that have none yet and that are members of the
 * entity, by their names in Backend.AI. 'resolvers' has one for each field of the schema.
 */
void entity_fields_resolve(struct gql_resolver *resolvers, const struct gql_type *type,
                           const struct entity *entity);

#endif
