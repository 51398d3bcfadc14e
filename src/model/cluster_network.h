/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_network.h - the network of one session whose kernels are on several agents
 *
 * The manager decides it: a subnet, an address in it for each kernel, and how the agents reach each
 * other. Agents get it as JSON, with kernel.create and by session.network:
 *
 *   {"subnet": "10.214.64.0/28",
 *    "kernels": [{"hostname": "sub1", "address": "10.214.64.3", "agent": "a2"}],
 *    "agents": [{"id": "a2", "endpoint": "192.0.2.7:51871", "key": "BASE64",
 *                "address": "10.214.0.9"}]}
 *
 * In network.peers "subnet" and "kernels" are left out, and "address" is the receiver's own. Pure.
 */
#ifndef AQ_MODEL_CLUSTER_NETWORK_H
#define AQ_MODEL_CLUSTER_NETWORK_H

#include <netinet/in.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"

#define CLUSTER_NETWORK_KERNELS_MAX 1024
#define CLUSTER_NETWORK_POOL "10.214.0.0/16"

struct cluster_network_kernel {
    const char *hostname, *address;
    const char *agent; /* where it runs; NULL = it is not placed */
};

struct cluster_network_agent {
    const char *id;
    const char *endpoint; /* of its tunnel: "192.0.2.7:51871", "[2001:db8::7]:51871" */
    const char *key;      /* its public key, BASE64 of 32 bytes; NULL = the tunnel has none */
    const char *address;  /* of the agent itself in the network, to check the way to it */
};

struct cluster_network {
    const char *subnet;  /* NULL in network.peers */
    const char *address; /* network.peers: the receiver's own; NULL else */
    struct cluster_network_kernel *kernels;
    size_t kernel_count;
    struct cluster_network_agent *agents;
    size_t agent_count;
};

/* What an agent offers, in its hello. */
struct cluster_network_offer {
    const char *mode; /* "wireguard", "wireguard-go", "vxlan", "none" */
    const char *endpoint, *key;
    int64_t mtu;      /* inside */
    const char *note; /* why it is not better, or none; NULL = nothing to say */
};

/* An IPv4 range, or one address, in host byte order. */
struct cluster_range {
    uint32_t first;
    unsigned bits;
};

/* "10.214.64.0/28". -EINVAL, too if bits behind the prefix are set. */
int cluster_range_parse(const char *text, struct cluster_range *ret) AQ_UNTRUSTED;
bool cluster_range_has(const struct cluster_range *range, uint32_t address);
char *cluster_address_format(uint32_t address, char text[INET_ADDRSTRLEN]);

/* The text, of which all parts are in the arena. -EINVAL says what is wrong in it: names, addresses
 * outside the subnet, an address twice, more than CLUSTER_NETWORK_KERNELS_MAX kernels or agents.
 */
int cluster_network_parse(const char *text, struct arena *arena, struct cluster_network *ret,
                          struct aq_error *err) AQ_UNTRUSTED;
void cluster_network_write(const struct cluster_network *network, struct jsonw *w);

/* An unknown mode is "none". -EINVAL. */
int cluster_network_offer_parse(const char *text, struct arena *arena,
                                struct cluster_network_offer *ret,
                                struct aq_error *err) AQ_UNTRUSTED;
void cluster_network_offer_write(const struct cluster_network_offer *offer, struct jsonw *w);

#endif
