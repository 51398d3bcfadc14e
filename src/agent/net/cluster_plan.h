/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_plan.h - what the cluster namespace of this agent ought to be, as a whole
 *
 * cluster_write.c makes it on the loop's thread from what is open; a worker thread brings the
 * machine to it (cluster_setup.h). Texts and arrays are in the arena. Addresses are in host byte
 * order.
 */
#ifndef AQ_AGENT_NET_CLUSTER_PLAN_H
#define AQ_AGENT_NET_CLUSTER_PLAN_H

#include <net/if.h>

#include "agent/net/pool.h"
#include "base/arena.h"
#include "base/strbuf.h"

#define CLUSTER_DEVICE "tunnel0"             /* in the cluster namespace, to the other agents */
#define CLUSTER_GATEWAY UINT32_C(0xa9fe0101) /* 169.254.1.1: the other end of each of these */
#define CLUSTER_LINK_PREFIX "k"              /* of that end's name */
#define CLUSTER_VNI UINT32_C(0x0a1140)

enum cluster_mode { CLUSTER_NONE, CLUSTER_WIREGUARD, CLUSTER_WIREGUARD_GO, CLUSTER_VXLAN };

/* "none", "wireguard", "wireguard-go", "vxlan" */
const char *cluster_plan_mode_name(enum cluster_mode mode);

/* Another agent. */
struct cluster_peer {
    const char *id, *key, *endpoint;
    uint32_t address;  /* its own; 0 = none */
    uint32_t *kernels; /* addresses of those of our sessions that are there */
    size_t kernel_count;
};

/* A kernel that is here. */
struct cluster_join {
    char link[IF_NAMESIZE]; /* the end in the cluster namespace */
    const char *namespace_path;
    uint32_t address;
    struct range subnet;
    struct aq_error err; /* set by cluster_setup_apply(); code 0 = it is there */
};

struct cluster_plan {
    struct arena arena;
    enum cluster_mode mode;
    const char *path; /* directory of the namespace */
    const char *tag;  /* of this agent's network */
    const char *id;   /* of this agent */
    const char *private_key;
    uint32_t address;      /* of this agent in the network; 0 = not known yet */
    uint32_t local;        /* VXLAN: of the node, from which it sends */
    uint32_t mtu;          /* inside */
    uint16_t port;         /* UDP, of the node */
    struct range *subnets; /* of sessions, each once */
    size_t subnet_count;
    struct cluster_peer *peers;
    size_t peer_count;
    struct cluster_join *joins;
    size_t join_count;
};

/* The table of nftables in the cluster namespace: kernels of one session reach each other, the
 * tunnel may ask this end for an echo, nothing else passes. Pure.
 */
void cluster_plan_add_rules(const struct cluster_plan *plan, struct strbuf *out);

/* A configuration for "wg syncconf". Pure. */
void cluster_plan_add_wireguard(const struct cluster_plan *plan, struct strbuf *out);

/* The address of the VXLAN interface of an agent: the same on all nodes. */
void cluster_plan_make_mac(const char *id, uint8_t ret[6]);

#endif
