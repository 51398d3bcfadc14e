/* SPDX-License-Identifier: Apache-2.0 */
/* scheduling_feature.h - resource groups, presets and fair share: the state that its files share, and their tables of routes and GraphQL entries */
#ifndef AQ_MANAGER_SCHEDULING_SCHEDULING_FEATURE_H
#define AQ_MANAGER_SCHEDULING_SCHEDULING_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

struct scheduling_state {
    json_t *presets; /* presets.h */
};

API_ROUTES(scheduling_history);
API_ROUTES(resource);
API_ROUTES(check_presets);
API_ROUTES(preset);
API_ROUTES(resource_group);
API_ROUTES(fair_share);
API_ROUTES(shares);
API_ROUTES(share_spec);

GQL_ENTRIES(resource_group_v2);
GQL_ENTRIES(preset);

extern const struct gql_node resource_group_v2_node;

extern const struct feature scheduling_feature;

#endif
