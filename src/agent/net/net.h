/* SPDX-License-Identifier: Apache-2.0 */
/* net.h - networks of kernels on this node
 *
 * Each kernel has a network namespace, joined to the node by a veth pair. The
 * node routes: there is no bridge, so no kernel sees another's frames, and
 * one table of ours in nftables (nft_rules.h) decides what may pass: outwards
 * with the node's address, between kernels of one session, from published
 * ports inwards; nothing else. A kernel has no IPv6.
 *
 * What exists is found in directories of the runtime directory, which a machine's
 * restart empties:
 *
 *   RUN/net/lock             flock()ed while a subnet of the pool is chosen
 *   RUN/net/TAG/             TAG: 6 hex digits of whose network it is
 *     lock                   flock()ed by the living agent
 *     slice                  its part of the pool
 *     KERNEL/                one endpoint
 *       record               what it is; written last, see endpoint_record.h
 *       ns                   the namespace
 *       sys                  a sysfs of it: a user namespace cannot mount one
 *       hosts, resolv.conf   for the container's /etc
 *
 * Names of interfaces are "aqTAG-NNNNNN", the table's is "aliquot_TAG". So an
 * agent that was killed finds everything of its own again: what net_adopt()
 * does not claim after a start, net_sweep() removes.
 *
 * Everything belongs to the loop's thread; slow work is done in the loop's
 * thread pool, and callbacks come later, never from within a call.
 */
#ifndef AQ_AGENT_NET_NET_H
#define AQ_AGENT_NET_NET_H

#include <net/if.h>
#include <netinet/in.h>
#include <uv.h>

#include "base/error.h"
#include "base/uuid.h"

#define NET_INTERFACE "eth0" /* of a kernel, in its namespace */
#define NET_PORTS_MAX 32     /* published by one kernel */
#define NET_HOSTNAME_MAX 63
#define NET_PATH_MAX 256

struct net;
struct net_endpoint;

struct net_settings {
    const char *identity;        /* of this agent on this machine: its id and directory */
    const char *run_dir;         /* on a tmpfs; made if it is not there */
    const char *pool;            /* "10.213.0.0/16": addresses of kernels of all agents here */
    const char *const *dns;      /* name servers, NULL-terminated; NULL or empty = the node's */
    const char *const *denied;   /* "ADDRESS[/BITS]" that kernels cannot reach, besides the usual */
    const char *const *allowed;  /* "ADDRESS[/BITS][:PORT]" that they can in spite of that */
    uint16_t port_min, port_max; /* of the node, to publish ports of kernels on */
    int64_t connections_max;     /* of a kernel at a time; 0 = no limit */
    int64_t port_rest_usec;      /* before a published port is used again */
    uint16_t tunnel_port;        /* UDP: kernels send nothing to this one and those that follow it,
                                    which tunnels between nodes have; 0 = none */
};

/* What the file agent.toml has by default. */
#define NET_POOL "10.213.0.0/16"
#define NET_PORT_MIN 30000
#define NET_PORT_MAX 31000
#define NET_CONNECTIONS_MAX 16384
#define NET_PORT_REST_USEC INT64_C(60000000)
#define NET_TUNNEL_PORT 51871

#define NET_TUNNEL_PORTS 16 /* agents of one machine that have a tunnel */

struct net_port {
    uint16_t inside, outside; /* of the kernel, of the node; TCP */
};

struct net_request {
    struct uuid kernel_id, session_id;
    const char *hostname;  /* "main1"; other kernels of the session here find it by that */
    bool is_closed;        /* it answers, and begins no connection to anybody */
    const uint16_t *ports; /* to publish */
    size_t port_count;
};

/* Borrowed from the endpoint. */
struct net_info {
    char namespace_path[NET_PATH_MAX]; /* for the container's configuration */
    char hosts_path[NET_PATH_MAX];     /* to be mounted at /etc/hosts, read-only */
    char resolv_path[NET_PATH_MAX];    /* to be mounted at /etc/resolv.conf, read-only */
    char sys_path[NET_PATH_MAX];       /* a sysfs that shows this network, for /sys */
    char address[INET_ADDRSTRLEN];     /* of the kernel; the node can connect to it */
    char link[IF_NAMESIZE];            /* the node's end of the pair */
    struct net_port ports[NET_PORTS_MAX];
    size_t port_count;
};

/* 'err' NULL = it is there. */
typedef void net_fn(void *data, const struct aq_error *err);

/* Once at start, blocking for some milliseconds: take a part of the pool, put
 * the table in place, find what a former process left. -EPERM without the
 * rights, -ENOENT without nft, -ENOSPC if the pool is used up, -EBUSY if an
 * agent of the same identity runs; the text says what to do.
 */
int net_new(uv_loop_t *loop, const struct net_settings *settings, struct net **ret,
            struct aq_error *err);

/* Wait for work under way and free. Networks that are open stay; without any
 * the table goes, and with it whatever was changed on the machine. NULL is fine.
 */
void net_free(struct net *net);

/* Make a kernel's network. net_get_info() holds when 'fn' came without an
 * error; after an error only net_close() is left to do.
 * -EEXIST if the kernel has one, -ENOSPC without a free address or port.
 */
int net_open(struct net *net, const struct net_request *request, net_fn *fn, void *data,
             struct net_endpoint **ret, struct aq_error *err);

/* Take over the network of a kernel that a former process opened. -ENOENT if
 * there is none, or not all of it.
 */
int net_adopt(struct net *net, const struct uuid *kernel_id, struct net_endpoint **ret,
              struct aq_error *err);

/* After all net_adopt(): remove what nobody claimed. */
void net_sweep(struct net *net);

/* Remove the network; the handle is gone. May come before net_open()'s
 * callback, which then does not come. 'fn' may be NULL. Whatever fails is
 * logged and tried again by the next start.
 */
void net_close(struct net_endpoint *endpoint, net_fn *fn, void *data);

const struct net_info *net_get_info(const struct net_endpoint *endpoint);

/* Kernels must not reach this host: the manager's name or address. Looked up
 * now, in the background.
 */
void net_deny(struct net *net, const char *host);

/* Processes of this group of the node fetch images: they reach no loopback, link-local or
 * denied address and none of the node's own, but name servers and net_admit_registry().
 */
uint32_t net_get_pull_group(const struct net *net);

/* Images are fetched from here wherever it is. 'port' 0 = 80 and 443. As net_deny(). */
void net_admit_registry(struct net *net, const char *host, uint16_t port);

/* Why there are restrictions on this node, for 'agent info'; "" = none. */
const char *net_get_note(const struct net *net);

#endif
