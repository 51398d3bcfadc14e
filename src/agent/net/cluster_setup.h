/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_setup.h - brings the cluster namespace of this agent to what a plan says
 *
 *   RUN/net/TAG/cluster/
 *     ns, sys    the namespace, as those of kernels
 *     log        what wireguard-go wrote
 *     peers      the newest network.peers (cluster.c)
 *     SESSION    the newest network of a session (cluster.c)
 *
 * Blocking, for worker threads, one call at a time.
 */
#ifndef AQ_AGENT_NET_CLUSTER_SETUP_H
#define AQ_AGENT_NET_CLUSTER_SETUP_H

#include "agent/net/cluster_plan.h"

#define CLUSTER_DIRECTORY "cluster" /* below RUN/net/TAG */

/* Texts that the machine has; "" = not known. Kept by the caller from one call to the next. */
struct cluster_written {
    struct strbuf rules, wireguard;
};

/* Namespace, tunnel, rules, peers, routes, and the ends of kernels: what is missing is made, what
 * is not in the plan is removed. A kernel that cannot be joined has its own error. 0, or -errno and
 * the next call goes on. *ret_ns is a descriptor of the namespace (-1 if there is none), which the
 * caller closes.
 */
int cluster_setup_apply(struct cluster_plan *plan, struct cluster_written *written, int *ret_ns,
                        struct aq_error *err);

/* Remove all of it: 'directory' is RUN/net/TAG. Nothing there is fine. */
void cluster_setup_remove(const char *directory, const char *tag);

#endif
