/* SPDX-License-Identifier: Apache-2.0 */
/* folder_feature.h - folders: the state that its files share, and their tables of routes and
 * GraphQL entries
 */
#ifndef AQ_MANAGER_FOLDER_FOLDER_FEATURE_H
#define AQ_MANAGER_FOLDER_FOLDER_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"
#include "manager/folder/owner_policies.h"

struct folder_state {
    struct storage_hosts *hosts;
    struct folder_jobs *jobs;
    struct folder_recount *recount;
    struct folder_rights *rights;
    json_t *rules;                        /* folder_rules.h */
    json_t *policies[OWNER_POLICY_KINDS]; /* owner_policies.h */
    int64_t policies_since_usec;          /* the same: since when there is 'default' */
    bool has_automatic; /* a folder whose name begins with a dot exists or existed: else sessions
                           are made without asking the store for them */
};

API_ROUTES(folder_list);
API_ROUTES(folder_change);
API_ROUTES(folder_files);
API_ROUTES(folder_share);
API_ROUTES(folder_clone);
API_ROUTES(folder_admin);

GQL_ENTRIES(folder);
GQL_ENTRIES(folder_v2);
GQL_ENTRIES(folder_rule);
GQL_ENTRIES(owner_policy);
GQL_ENTRIES(storage_volume);
GQL_ENTRIES(quota_scope);

extern const struct gql_node folder_node, folder_v2_node;

extern const struct feature folder_feature;

#endif
