/* SPDX-License-Identifier: Apache-2.0 */
/* group_options_gql.h - scheduler_opts of resource groups in GraphQL */
#ifndef AQ_MANAGER_ACCOUNT_GROUP_OPTIONS_GQL_H
#define AQ_MANAGER_ACCOUNT_GROUP_OPTIONS_GQL_H

#include "manager/call/graphql/resolve.h"

/* scheduler_opts of a resource group, the parent, with the members that it does not set. */
struct gql_value gql_group_options_get(struct gql_get *get, const void *parent);

#endif
