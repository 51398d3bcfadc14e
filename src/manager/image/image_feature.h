/* SPDX-License-Identifier: Apache-2.0 */
/* image_feature.h - images and registries: the state that its files share, and their tables of
 * routes and GraphQL entries
 */
#ifndef AQ_MANAGER_IMAGE_IMAGE_FEATURE_H
#define AQ_MANAGER_IMAGE_IMAGE_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

struct image_state {
    json_t *aliases;       /* image_aliases.h */
    json_t *limits;        /* image_limits.h */
    json_t *catalogue;     /* of registries' images; image_catalogue.h */
    struct rescan *rescan; /* NULL = none is under way */
};

API_ROUTES(image);
API_ROUTES(image_aliases);
API_ROUTES(image_limits);
API_ROUTES(registry);

GQL_ENTRIES(image);
GQL_ENTRIES(image_node);
GQL_ENTRIES(image_mutation);
GQL_ENTRIES(registry);

extern const struct gql_node image_node, registry_node, registry_node_before;

extern const struct feature image_feature;

#endif
