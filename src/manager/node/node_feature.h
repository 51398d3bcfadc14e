/* SPDX-License-Identifier: Apache-2.0 */
/* node_feature.h - agents, their devices, and managers: tables of routes and GraphQL entries in its files */
#ifndef AQ_MANAGER_NODE_NODE_FEATURE_H
#define AQ_MANAGER_NODE_NODE_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

API_ROUTES(agent);
API_ROUTES(agent_operation);
API_ROUTES(managers);
API_ROUTES(nodes);
API_ROUTES(orphan);

GQL_ENTRIES(agent);

extern const struct gql_node agent_node;

extern const struct feature node_feature;

#endif
