/* SPDX-License-Identifier: Apache-2.0 */
/* route_file.h - the proxy's file "routes": tickets that are good, and how agents were reached last
 *
 * JSON, in the state folder, for the proxy's user alone (0600). Tickets in it let who reads it reach
 * apps until they expire.
 */
#ifndef AQ_PROXY_ROUTE_FILE_H
#define AQ_PROXY_ROUTE_FILE_H

#include "base/error.h"

#define ROUTE_FILE "routes"
#define ROUTE_FILE_MAX (64u << 20)

struct routes;

/* Add what the file has and is good still; 0 without a file. -EINVAL for one that is damaged. */
int route_file_read(struct routes *routes, struct aq_error *err);
int route_file_write(const struct routes *routes, struct aq_error *err);

/* What a file says of an agent, for "aliquot doctor": called for each. -ENOENT without a file. */
typedef void route_file_way_fn(void *data, const char *agent_id, const char *way, const char *why);
int route_file_each_way(const char *state, route_file_way_fn *fn, void *data, struct aq_error *err);

#endif
