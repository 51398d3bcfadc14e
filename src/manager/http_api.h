/* SPDX-License-Identifier: Apache-2.0 */
/* http_api.h - the manager's HTTP interface: the routes and GraphQL types of all features
 *
 * The routes are static tables, a file per resource; the role column of each
 * row decides who may call it, in one place (call/caller.c), and its body
 * column is the table that decodes its parameters. GET /aliquot/v1/routes writes the
 * same rows as documentation.
 */
#ifndef AQ_MANAGER_HTTP_API_H
#define AQ_MANAGER_HTTP_API_H

#include "http/network.h"
#include "http/router.h"
#include "http/server.h"
#include "manager/core/core.h"
#include "manager/call/caller.h"
#include "http/client_address.h"

struct api;
struct password_rules;
struct signup_rules;
struct transfer_limits;

/* The core must outlive the API. -ENOMEM, -EINVAL for a bad table. */
int api_new(struct core *core, struct api **ret, struct aq_error *err);
/* Believe proxies at these addresses for whom they ask; borrowed. Before the first request. */
void api_set_proxies(struct api *api, const struct address_list *proxies);
/* What new passwords must be, and how old they may get. Before the first request. */
void api_set_password_rules(struct api *api, const struct password_rules *rules);
/* Let people sign up, if the rules do; borrowed. -EINVAL names the setting. Before the first
 * request.
 */
int api_open_signup(struct api *api, const struct signup_rules *rules, struct aq_error *err);
/* How much may go into or out of a session at one time. Before the first request. */
void api_set_transfer_limits(struct api *api, const struct transfer_limits *limits);
/* How long code that is run in a session may take; 0 = any time. Before the first request. */
void api_set_execution_timeout(struct api *api, int64_t usec);
/* Networks that callbacks of sessions may reach, besides public addresses; borrowed. */
void api_allow_callbacks(struct api *api, const struct network *networks, size_t count);
/* Which web pages may use the API as long as the configuration tree says no others; the list is
 * borrowed. Returns the rules in effect, which change, for server_options.
 */
const struct origin_rules *api_set_origins(struct api *api, const struct origin_rules *own);
/* Remember so many requests that change something, of all keys. Before the first request. */
void api_set_remembered(struct api *api, size_t requests_max);
/* End what has threads of its own, and have written what waits. Before core_stop(). */
void api_stop(struct api *api);
/* After the server has ended every request. */
void api_free(struct api *api);
AQ_DEFINE_CLEANUP(struct api, api_free)

/* For server_options, with api_guard() (call/caller.h) and the api itself as guard_data. */
const struct router *api_get_router(const struct api *api);

#endif
