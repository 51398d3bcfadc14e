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

#include "http/router.h"
#include "http/server.h"
#include "manager/core/core.h"
#include "manager/call/api.h"
#include "manager/call/caller.h"
#include "http/client_address.h"

struct api;

/* Open all features. The core must outlive the API. -EINVAL for a bad table; errors of the store.
 */
int api_new(struct core *core, struct api **ret, struct aq_error *err);
/* Believe proxies at these addresses for whom they ask; borrowed. Before the first request. */
void api_set_proxies(struct api *api, const struct address_list *proxies);
/* Remember so many requests that change something, of all keys. Before the first request. */
void api_set_remembered(struct api *api, size_t requests_max);
/* How this manager lets another one lead; without, it does not. */
void api_set_yield(struct api *api, api_yield_fn *yield, void *data);
/* End what has threads of its own, and have written what waits. Before core_stop(). */
void api_stop(struct api *api);
/* End the requests that wait for their turn, or for what core_stop() has finished; their clients
 * have gone. After core_stop().
 */
void api_end_requests(struct api *api);
/* After the server has ended every request. */
void api_free(struct api *api);
AQ_DEFINE_CLEANUP(struct api, api_free)

/* For server_options, with api_guard() (call/caller.h) and the api itself as guard_data. */
const struct router *api_get_router(const struct api *api);

/* The rows whose answers are kept (API_ANSWERED_ONCE), without data: for forward_options. */
int api_new_answered_once(struct router **ret, struct aq_error *err);

#endif
