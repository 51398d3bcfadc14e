/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_routes.h - the address, routes and (VXLAN) neighbours of the tunnel's device
 *
 * Blocking, for worker threads.
 */
#ifndef AQ_AGENT_NET_CLUSTER_ROUTES_H
#define AQ_AGENT_NET_CLUSTER_ROUTES_H

#include "agent/net/cluster_plan.h"

/* Bring them to the plan: what is not in it is removed. 'nl' is a route socket in the cluster
 * namespace.
 */
int cluster_routes_write(const struct cluster_plan *plan, int nl, struct aq_error *err);

#endif
