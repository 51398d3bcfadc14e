/* SPDX-License-Identifier: Apache-2.0 */
/* Registers users, keypairs, domains, projects and policies with the manager. */
#include "manager/account/account_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/account/account.h"

static const struct route_table *const account_routes[] = { &user_route_table,
                                                            &user_import_route_table,
                                                            &keypair_route_table,
                                                            &domain_route_table,
                                                            &project_route_table,
                                                            &policy_route_table,
                                                            NULL };
static const struct gql_table *const account_gql[] = { &user_gql_table,
                                                       &user_v2_gql_table,
                                                       &user_v2_mutation_gql_table,
                                                       &policy_v2_gql_table,
                                                       &keypair_gql_table,
                                                       &accounts_gql_table,
                                                       &account_mutation_gql_table,
                                                       &access_mutation_gql_table,
                                                       NULL };
static const struct gql_node *const account_nodes[] = { &domain_node,         &group_node,
                                                        &resource_group_node, &user_v2_node,
                                                        &project_v2_node,     &user_node,
                                                        &policy_v2_node,      NULL };
static const struct gql_entity account_entities[] = {
    { SCHEMA_TYPE_Domain, &domain_entity },
    { SCHEMA_TYPE_Group, &project_entity },
    { SCHEMA_TYPE_KeyPair, &keypair_entity },
    { SCHEMA_TYPE_KeyPairResourcePolicy, &keypair_policy_entity },
    { SCHEMA_TYPE_ScalingGroup, &resource_group_entity },
    { SCHEMA_TYPE_User, &user_entity },
    { 0 },
};
static const struct gql_same account_same[] = {
    { SCHEMA_TYPE_Domain, SCHEMA_TYPE_DomainNode },
    { SCHEMA_TYPE_Group, SCHEMA_TYPE_GroupNode },
    { SCHEMA_TYPE_User, SCHEMA_TYPE_UserNode },
    { SCHEMA_TYPE_ScalingGroup, SCHEMA_TYPE_ScalingGroupNode },
    { 0 },
};

static int account_feature_open(struct api *api, struct aq_error *err)
{
    (void)err;
    api->account = aq_alloc(sizeof(*api->account));
    return 0;
}

static void account_feature_close(struct api *api)
{
    free(api->account);
}

void account_set_password_rules(struct api *api, const struct password_rules *rules)
{
    api->account->password_rules = *rules;
}

int account_check_password(const struct api *api, const char *field, const char *password,
                           struct aq_error *err)
{
    return password_rules_check(&api->account->password_rules, field, password, err);
}

int64_t account_password_max_age(const struct api *api)
{
    return api->account->password_rules.max_age_usec;
}

void account_set_signup_domain(struct api *api, const char *domain)
{
    api->account->signup_domain = domain;
}

const struct feature account_feature = {
    .name = "account",
    .routes = account_routes,
    .gql = account_gql,
    .nodes = account_nodes,
    .entities = account_entities,
    .same = account_same,
    .open = account_feature_open,
    .close = account_feature_close,
};
