/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_feature.h - the manager as a whole: the state that its files share, and their tables of
 * routes and GraphQL entries
 */
#ifndef AQ_MANAGER_CLUSTER_CLUSTER_FEATURE_H
#define AQ_MANAGER_CLUSTER_CLUSTER_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"
#include "manager/cluster/config_known.h"

struct cluster_state {
    struct config_settings settings; /* of the configuration tree */
    struct origin_rules own_origins; /* of manager.toml */
    char *openapi;                   /* the answer of GET /spec/openapi; NULL = not asked for yet */
    void (*on_change)(void *data);   /* cluster_follow_tree(); NULL = nobody does */
    void *on_change_data;
};

/* Put the configuration tree into effect; blocks. */
int config_load(struct api *api, struct aq_error *err);
/* Derive api->origins from those of manager.toml and the tree. */
void config_apply_origins(struct api *api);

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
