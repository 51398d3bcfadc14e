/* SPDX-License-Identifier: Apache-2.0 */
/* Registers logins and sign-up with the manager. */
#include "manager/login/login_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/account/account.h"
#include "manager/login/login.h"
#include "manager/login/signup.h"
#include "manager/login/web_logins.h"

static const struct route_table *const login_routes[] = {
    &auth_route_table,        &auth_account_route_table, &signup_route_table,
    &ssh_keypair_route_table, &web_logins_route_table,   NULL
};
static const struct gql_table *const login_gql[] = { &login_gql_table, NULL };
static const struct gql_node *const login_nodes[] = { &login_node, &login_attempt_node, NULL };

static int login_feature_open(struct api *api, struct aq_error *err)
{
    (void)err;
    api->login = aq_alloc(sizeof(*api->login));
    api->login->limits = login_limits_new();
    api->login->web_logins = web_logins_new(api);
    return 0;
}

static void login_feature_stop(struct api *api)
{
    web_logins_stop(api->login->web_logins);
    if (api->login->signup)
        signup_stop(api->login->signup);
    if (api->login->passwords)
        password_queue_stop(api->login->passwords);
}

static void login_feature_close(struct api *api)
{
    struct login_state *login = api->login;

    if (!login)
        return;
    signup_free(login->signup);
    password_queue_free(login->passwords);
    web_logins_free(login->web_logins);
    login_limits_free(login->limits);
    free(login);
}

int login_open_signup(struct api *api, const struct signup_rules *rules, struct aq_error *err)
{
    if (!rules->is_open)
        return 0;
    account_set_signup_domain(api, rules->domain);
    return signup_new(core_loop(api->core), rules, &api->login->signup, err);
}

const struct feature login_feature = {
    .name = "login",
    .routes = login_routes,
    .gql = login_gql,
    .nodes = login_nodes,
    .open = login_feature_open,
    .stop = login_feature_stop,
    .close = login_feature_close,
};
