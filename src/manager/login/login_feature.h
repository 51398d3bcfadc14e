/* SPDX-License-Identifier: Apache-2.0 */
/* login_feature.h - logins and sign-up: the state that its files share, and their tables of routes
 * and GraphQL entries
 */
#ifndef AQ_MANAGER_LOGIN_LOGIN_FEATURE_H
#define AQ_MANAGER_LOGIN_LOGIN_FEATURE_H

#include "manager/call/feature.h"
#include "manager/call/graphql/node.h"

struct login_state {
    struct login_limits *limits;
    struct password_queue *passwords; /* NULL = nobody has logged in yet */
    struct signup *signup;            /* NULL = nobody can sign up */
    struct web_logins *web_logins;
};

API_ROUTES(auth);
API_ROUTES(auth_account);
API_ROUTES(signup);
API_ROUTES(ssh_keypair);
API_ROUTES(web_logins);

GQL_ENTRIES(login);

extern const struct gql_node login_node, login_attempt_node;

extern const struct feature login_feature;

#endif
