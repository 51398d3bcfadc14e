/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_network.h - the network in which a kernel's program listens, for connections to it */
#ifndef AQ_AGENT_KERNEL_KERNEL_NETWORK_H
#define AQ_AGENT_KERNEL_KERNEL_NETWORK_H

#include "agent/kernel/kernel.h"

/* The network namespace of a kernel that runs; *ret is the caller's, and -1 of a process of the node,
 * whose network is the agent's own. -ESRCH, of the kind "not-found", if it does not run here, or ends.
 */
int kernel_open_network(const struct local_kernel *k, int *ret, struct aq_error *err);

#endif
