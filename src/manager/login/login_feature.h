/* SPDX-License-Identifier: Apache-2.0 */
/* login_feature.h - logins and sign-up: tables of routes and GraphQL entries in its files */
#ifndef AQ_MANAGER_LOGIN_LOGIN_FEATURE_H
#define AQ_MANAGER_LOGIN_LOGIN_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

API_ROUTES(auth);
API_ROUTES(auth_account);
API_ROUTES(signup);
API_ROUTES(ssh_keypair);
API_ROUTES(web_logins);

GQL_ENTRIES(login);

extern const struct gql_node login_node, login_attempt_node;

extern const struct feature login_feature;

#endif
