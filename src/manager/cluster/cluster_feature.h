/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_feature.h - the manager as a whole: tables of routes and GraphQL entries in its files */
#ifndef AQ_MANAGER_CLUSTER_CLUSTER_FEATURE_H
#define AQ_MANAGER_CLUSTER_CLUSTER_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

API_ROUTES(hello);
API_ROUTES(openapi);
API_ROUTES(manager);
API_ROUTES(error_log);
API_ROUTES(audit);
API_ROUTES(audit_log);
API_ROUTES(service);
API_ROUTES(retention);
API_ROUTES(config);

GQL_ENTRIES(audit);

extern const struct gql_node audit_node;

extern const struct feature cluster_feature;

#endif
