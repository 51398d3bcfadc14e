/* SPDX-License-Identifier: Apache-2.0 */
/* host_network.h - kernels that use the network of their node
 *
 * Such a kernel has no namespace, no address and no packet filter of its own. The manager chose a
 * block of ports for it (model/cluster_network.h); two kernels of a node with the same ports do not
 * run at the same time. What it publishes is at the same port of the node.
 */
#ifndef AQ_AGENT_KERNEL_HOST_NETWORK_H
#define AQ_AGENT_KERNEL_HOST_NETWORK_H

#include <net/if.h>

#include "agent/kernel/kernel.h"
#include "model/cluster_network.h"
#include "model/service_port.h"

#define HOST_NETWORK_HOSTS "hosts" /* in config: its /etc/hosts */

struct host_network {
    struct arena arena;             /* of what follows */
    struct cluster_network network; /* of its session */
    const struct cluster_network_kernel *own;
    char interface[IF_NAMESIZE]; /* that has the address by which others reach it */
    uint16_t ports[SERVICE_PORTS_MAX];
    size_t port_count; /* that it publishes */
};

bool host_network_is_wanted(const struct local_kernel *k);

/* Set k->host. -ENOTSUP of the kind "no-host-network" where agent.toml does not offer it, -EINVAL
 * for a network that cannot be, or that has not this kernel.
 */
int host_network_open(struct local_kernel *k, struct aq_error *err);

/* Check that its ports, including those of its services, are free. -EADDRINUSE of the kind
 * "port-in-use": another kernel or a program of the node uses one of them.
 */
int host_network_check_ports(const struct local_kernel *k, const struct services *services,
                             struct aq_error *err);

/* Claim these ports for the kernel. */
void host_network_keep_ports(struct host_network *host, const struct services *services);

void host_network_close(struct local_kernel *k);

/* One of its own ports on the node. */
uint16_t host_network_port(const struct host_network *host, enum cluster_host_port which);

/* The lines of its /etc/hosts: the session's kernels, then what the node has. */
void host_network_add_hosts(const struct host_network *host, struct strbuf *out);

#endif
