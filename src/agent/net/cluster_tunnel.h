/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_tunnel.h - the device through which the cluster namespaces of agents reach each other
 *
 * It is created in the node's namespace, where its UDP socket stays, and moved into the cluster
 * namespace, where nothing else of the node is. Its first name is "aqwTAG"; wireguard-go keeps that
 * for its socket /var/run/wireguard/aqwTAG.sock, by which a later process of the agent finds the
 * daemon. Blocking, for worker threads, one call at a time.
 */
#ifndef AQ_AGENT_NET_CLUSTER_TUNNEL_H
#define AQ_AGENT_NET_CLUSTER_TUNNEL_H

#include "agent/net/cluster_plan.h"

/* The best mode that this node has: WireGuard of the Linux kernel, else wireguard-go, else
 * CLUSTER_NONE. Creates a device for a moment. 'err': why it is not a better one, and what to do;
 * code 0 = it is the best.
 */
enum cluster_mode cluster_tunnel_find_mode(const char *tag, struct aq_error *err);

/* 0 if this node has what 'mode' needs; else the error says what is missing. */
int cluster_tunnel_check_mode(enum cluster_mode mode, const char *tag, struct aq_error *err);

/* Make sure that the plan's device is in namespace 'ns' and works; *ret_new: it was created by
 * this call and is not configured. 'nl' is a route socket in 'ns'.
 */
int cluster_tunnel_ensure(const struct cluster_plan *plan, int ns, int nl, bool *ret_new,
                          struct aq_error *err);

/* Give WireGuard its key, port and peers: text of cluster_plan_add_wireguard(). */
int cluster_tunnel_configure(const struct cluster_plan *plan, int ns, const char *text,
                             struct aq_error *err);

/* End wireguard-go of the agent with this tag, and remove a device that was not moved yet. */
void cluster_tunnel_remove(const char *tag);

#endif
