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
 * Of a session with the host network it has the addresses of the nodes and the first of
 * CLUSTER_HOST_PORTS ports that each kernel has there, and neither "subnet" nor "agents":
 *
 *   {"mode": "host", "kernels": [{"hostname": "sub1", "address": "192.0.2.7", "agent": "a2",
 *                                 "port": 20480}]}
 *
 * In network.peers "subnet" and "kernels" are left out, and "address" is the receiver's own. Pure.
 */
#ifndef AQ_MODEL_CLUSTER_NETWORK_H
#define AQ_MODEL_CLUSTER_NETWORK_H

#include <netinet/in.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"

#define CLUSTER_NETWORK_KERNELS_MAX 1024
#define CLUSTER_NETWORK_POOL "10.214.0.0/16"
#define CLUSTER_NETWORK_HOST "host" /* value of 'mode' */

/* Ports of kernels with the host network, on their nodes: each has a few neighbours. */
#define CLUSTER_HOST_PORT_FIRST 20000
#define CLUSTER_HOST_PORT_LAST 29999
enum cluster_host_port {
    CLUSTER_HOST_SSH,
    CLUSTER_HOST_TENSORFLOW,
    CLUSTER_HOST_TORCH, /* of the session's first kernel, as the next two */
    CLUSTER_HOST_TORCHRUN,
    CLUSTER_HOST_JAX,
    CLUSTER_HOST_FREE, /* from here on the program's own */
    CLUSTER_HOST_PORTS = 8
};

struct cluster_network_kernel {
    const char *hostname, *address;
    const char *agent; /* where it runs; NULL = it is not placed */
    int64_t port;      /* with the host network: its first; 0 else */
};

struct cluster_network_agent {
    const char *id;
    const char *endpoint; /* of its tunnel: "192.0.2.7:51871", "[2001:db8::7]:51871" */
    const char *key;      /* its public key, BASE64 of 32 bytes; NULL = the tunnel has none */
    const char *address;  /* of the agent itself in the network, to check the way to it */
};

struct cluster_network {
    const char *mode;    /* CLUSTER_NETWORK_HOST; NULL = a private network */
    const char *subnet;  /* NULL in network.peers, and with the host network */
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
    const char *host; /* address of the node, where containers may use its network; NULL = not */
    struct str_list rdma; /* devices available to sessions: "mlx5_0" */
    int64_t mtu;          /* inside */
    const char *note;     /* why a better mode is not available; NULL = none */
};

/* An IPv4 range, or one address, in host byte order. */
struct cluster_range {
    uint32_t first;
    unsigned bits;
};

/* True for what can be the name of an RDMA device, as "mlx5_0". */
bool cluster_network_is_device(const char *text);

/* "10.214.64.0/28"; without a prefix one address. -EINVAL, too if bits behind the prefix are set. */
int cluster_range_parse(const char *text, struct cluster_range *ret) AQ_UNTRUSTED;
bool cluster_range_has(const struct cluster_range *range, uint32_t address);
char *cluster_address_format(uint32_t address, char text[INET_ADDRSTRLEN]);

/* The text, of which all parts are in the arena. -EINVAL says what is wrong in it: names, addresses
 * outside the subnet, an address twice, more than CLUSTER_NETWORK_KERNELS_MAX kernels or agents.
 */
int cluster_network_parse(const char *text, struct arena *arena, struct cluster_network *ret,
                          struct aq_error *err) AQ_UNTRUSTED;
void cluster_network_write(const struct cluster_network *network, struct jsonw *w);
bool cluster_network_is_host(const struct cluster_network *network);
/* The kernel of that name; NULL = it has none. */
const struct cluster_network_kernel *cluster_network_find(const struct cluster_network *network,
                                                          const char *hostname);

/* An unknown mode is "none". -EINVAL. */
int cluster_network_offer_parse(const char *text, struct arena *arena,
                                struct cluster_network_offer *ret,
                                struct aq_error *err) AQ_UNTRUSTED;
void cluster_network_offer_write(const struct cluster_network_offer *offer, struct jsonw *w);

#endif
