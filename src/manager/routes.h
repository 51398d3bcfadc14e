/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the manager's HTTP interface: REST (api/) and GraphQL (gql/)
 *
 * The routes are static tables, a file per resource; the role column of each
 * row decides who may call it, in one place (request/access.c), and its body
 * column is the table that decodes its parameters. GET /aliquot/v1/routes writes the
 * same rows as documentation.
 */
#ifndef AQ_MANAGER_ROUTES_H
#define AQ_MANAGER_ROUTES_H

#include "http/router.h"
#include "http/server.h"
#include "manager/core/core.h"
#include "manager/request/access.h"
#include "manager/request/client_address.h"

struct api;

/* The core must outlive the API. -ENOMEM, -EINVAL for a bad table. */
int api_new(struct core *core, struct api **ret, struct aq_error *err);
/* Believe proxies at these addresses for whom they ask; borrowed. Before the first request. */
void api_set_proxies(struct api *api, const struct address_list *proxies);
/* End what has threads of its own. Before core_stop(). */
void api_stop(struct api *api);
/* After the server has ended every request. */
void api_free(struct api *api);
AQ_DEFINE_CLEANUP(struct api, api_free)

/* For server_options, with api_guard() (request/access.h) and the api itself as guard_data. */
const struct router *api_get_router(const struct api *api);

#endif
