/* SPDX-License-Identifier: Apache-2.0 */
/* account_feature.h - users, keypairs, domains, projects and policies: the state that its files share, and their tables of routes and GraphQL entries */
#ifndef AQ_MANAGER_ACCOUNT_ACCOUNT_FEATURE_H
#define AQ_MANAGER_ACCOUNT_ACCOUNT_FEATURE_H

#include "manager/account/password_rules.h"
#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

struct account_settings {
    struct password_rules password_rules;
    const char *signup_domain; /* of users who sign up; borrowed, NULL = nobody can */
};

API_ROUTES(user);
API_ROUTES(user_import);
API_ROUTES(keypair);
API_ROUTES(domain);
API_ROUTES(project);
API_ROUTES(policy);

GQL_ENTRIES(user);
GQL_ENTRIES(user_v2);
GQL_ENTRIES(user_v2_mutation);
GQL_ENTRIES(policy_v2);
GQL_ENTRIES(keypair);
GQL_ENTRIES(accounts);
GQL_ENTRIES(account_mutation);
GQL_ENTRIES(access_mutation);

extern const struct gql_node domain_node, group_node, resource_group_node, user_v2_node,
    project_v2_node, user_node, policy_v2_node;

extern const struct feature account_feature;

#endif
