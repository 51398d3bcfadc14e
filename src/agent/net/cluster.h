/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - the private network of sessions whose kernels are on several nodes
 *
 * Each agent has one more namespace, the cluster namespace (cluster_setup.h). Kernels of such
 * sessions are joined to it by a second pair, "cluster0" in the kernel; a tunnel leads from it to
 * those of the other agents. It has no way to the node, and its rules let kernels of one session
 * reach each other, nothing else. The manager decides addresses and says who is where
 * (model/cluster_network.h).
 *
 * Everything belongs to the loop's thread; slow work is done in the loop's thread pool, and
 * callbacks come later, never from within a call.
 */
#ifndef AQ_AGENT_NET_CLUSTER_H
#define AQ_AGENT_NET_CLUSTER_H

#include "agent/net/net.h"
#include "base/arena.h"
#include "base/lists.h"
#include "base/strbuf.h"

#define CLUSTER_INTERFACE "cluster0"              /* of a kernel, in its namespace */
#define CLUSTER_UNREACHABLE "network-unreachable" /* kind of the error */

struct cluster_networks;
struct cluster_member;

struct cluster_settings {
    const char *mode;     /* "auto", "wireguard", "wireguard-go", "vxlan" or "none" */
    const char *id;       /* of this agent */
    const char *state;    /* directory of its key */
    const char *address;  /* by which other nodes reach this one */
    uint16_t port;        /* UDP: the first that is tried; agents of one machine need one each */
    bool is_host_offered; /* containers may use the node's own network */
    struct str_list rdma; /* devices available to sessions; outlives the cluster */
};

/* Detects what this node supports, without using it yet. Called once at start, it blocks for some
 * milliseconds. An unsupported mode is not an error: the offer is "none" with the reason.
 * 'settings' is borrowed for the call. 'on_reach' is called when cluster_list_reach() has changed,
 * and each minute.
 */
int cluster_new(struct net *net, const struct cluster_settings *settings,
                void (*on_reach)(void *data), void *data, struct cluster_networks **ret,
                struct aq_error *err);

/* Joined kernels stay joined; without any, namespace and tunnel are removed. To be called before
 * net_free(), which waits for it. Accepts NULL.
 */
void cluster_free(struct cluster_networks *cluster);

/* JSON of struct cluster_network_offer, for the manager. */
const char *cluster_get_offer(const struct cluster_networks *cluster);
/* "none: ..." or such, for administrators; NULL = nothing to say. */
const char *cluster_get_note(const struct cluster_networks *cluster);

/* Text of network.peers: agents that are checked all the time. -EINVAL. */
int cluster_set_peers(struct cluster_networks *cluster, const char *text, struct aq_error *err);
/* Ids of the agents that answer and of those that do not, in the arena. Agents that were not
 * checked yet are in neither list.
 */
void cluster_list_reach(const struct cluster_networks *cluster, struct arena *arena,
                        struct str_list *ret_reachable, struct str_list *ret_unreachable);

/* A session's kernels have moved, or there are more: text of session.network. Nothing happens
 * unless one of them is here. -EINVAL.
 */
int cluster_set_session(struct cluster_networks *cluster, const struct uuid *session_id,
                        const char *text, struct aq_error *err);

struct cluster_request {
    struct uuid session_id;
    const char *hostname;
    const char *network; /* kernel_spec.network */
    bool is_found;       /* of a former process: a list that this one left goes before */
};

/* Announces a kernel of such a session: from now on its other agents can reach this one. -EINVAL,
 * -EEXIST if its subnet is in use, -ENOTSUP without a tunnel.
 */
int cluster_open(struct cluster_networks *cluster, const struct cluster_request *request,
                 struct cluster_member **ret, struct aq_error *err);

/* Join its network, and ask the session's other agents for an echo. 'fn' comes once, with an error
 * of the kind CLUSTER_UNREACHABLE if one of them does not answer. 'endpoint' is borrowed until
 * cluster_close().
 */
void cluster_join(struct cluster_member *member, struct net_endpoint *endpoint, net_fn *fn,
                  void *data);

/* Takes over a kernel that the agent's previous process joined. */
void cluster_adopt(struct cluster_member *member, struct net_endpoint *endpoint);

/* The kernel leaves; cluster_join()'s callback is not called any longer. Accepts NULL. */
void cluster_close(struct cluster_member *member);

/* Frees the handle only: the agent ends while the kernel runs on. Accepts NULL. */
void cluster_leave(struct cluster_member *member);

/* Removes what no kernel has claimed, after all kernels were found. */
void cluster_sweep(struct cluster_networks *cluster);

#endif
