/* SPDX-License-Identifier: Apache-2.0 */
/* session_feature.h - sessions and kernels: tables of routes and GraphQL entries in its files */
#ifndef AQ_MANAGER_SESSION_SESSION_FEATURE_H
#define AQ_MANAGER_SESSION_SESSION_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

API_ROUTES(array);
API_ROUTES(session_create);
API_ROUTES(session);
API_ROUTES(session_change);
API_ROUTES(session_end);
API_ROUTES(session_history);
API_ROUTES(session_idle);
API_ROUTES(session_list);
API_ROUTES(session_report);
API_ROUTES(session_retry);

GQL_ENTRIES(session);
GQL_ENTRIES(session_node);
GQL_ENTRIES(session_detail);
GQL_ENTRIES(session_mutation);
GQL_ENTRIES(session_total);
GQL_ENTRIES(kernel);
GQL_ENTRIES(session_v2);
GQL_ENTRIES(session_queue);

extern const struct gql_node session_node, agent_v2_node, session_v2_node, image_v2_node,
    kernel_node;

extern const struct feature session_feature;

#endif
