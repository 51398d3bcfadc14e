/* SPDX-License-Identifier: Apache-2.0 */
/* folder_feature.h - folders: tables of routes and GraphQL entries in its files */
#ifndef AQ_MANAGER_FOLDER_FOLDER_FEATURE_H
#define AQ_MANAGER_FOLDER_FOLDER_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

API_ROUTES(folder_list);
API_ROUTES(folder_change);
API_ROUTES(folder_files);
API_ROUTES(folder_share);
API_ROUTES(folder_clone);
API_ROUTES(folder_admin);

GQL_ENTRIES(folder);
GQL_ENTRIES(folder_v2);
GQL_ENTRIES(storage_volume);
GQL_ENTRIES(quota_scope);

extern const struct gql_node folder_node, folder_v2_node;

extern const struct feature folder_feature;

#endif
