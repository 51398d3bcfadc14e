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

struct cluster;
struct cluster_member;

struct cluster_settings {
    const char *mode;     /* "auto", "wireguard", "wireguard-go", "vxlan" or "none" */
    const char *id;       /* of this agent */
    const char *state;    /* directory of its key */
    const char *address;  /* by which other nodes reach this one */
    uint16_t port;        /* UDP: the first that is tried; agents of one machine need one each */
    bool is_host_offered; /* containers may use the node's own network */
    struct str_list rdma; /* devices that they may use; outlives the cluster */
};

/* Once at start, blocking for some milliseconds. What this node has is found and nothing of it is
 * used yet. An unsupported mode does not fail: the offer is "none" with the reason. 'settings'
 * is borrowed for the call. 'on_reach': cluster_list_reach() has changed, or a minute has passed.
 */
int cluster_new(struct net *net, const struct cluster_settings *settings,
                void (*on_reach)(void *data), void *data, struct cluster **ret,
                struct aq_error *err);

/* Kernels that are joined stay so; without any the namespace and the tunnel go. Before net_free(),
 * which waits for it. NULL is fine.
 */
void cluster_free(struct cluster *cluster);

/* JSON of struct cluster_network_offer, for the manager. */
const char *cluster_get_offer(const struct cluster *cluster);
/* "none: ..." or such, for administrators; NULL = nothing to say. */
const char *cluster_get_note(const struct cluster *cluster);

/* Text of network.peers: agents that are checked all the time. -EINVAL. */
int cluster_set_peers(struct cluster *cluster, const char *text, struct aq_error *err);
/* Ids of those that answer and that do not; not yet known ones are in neither. In the arena. */
void cluster_list_reach(const struct cluster *cluster, struct arena *arena,
                        struct str_list *ret_reachable, struct str_list *ret_unreachable);

/* A session's kernels have moved, or there are more: text of session.network. Nothing happens
 * unless one of them is here. -EINVAL.
 */
int cluster_set_session(struct cluster *cluster, const struct uuid *session_id, const char *text,
                        struct aq_error *err);

struct cluster_request {
    struct uuid session_id;
    const char *hostname;
    const char *network; /* kernel_spec.network */
    bool is_found;       /* of a former process: a list that this one left goes before */
};

/* A kernel of such a session will run here: other agents get through to us from now on. -EINVAL,
 * -EEXIST if its subnet is in use, -ENOTSUP without a tunnel.
 */
int cluster_open(struct cluster *cluster, const struct cluster_request *request,
                 struct cluster_member **ret, struct aq_error *err);

/* Join its network, and ask the session's other agents for an echo. 'fn' comes once, with an error
 * of the kind CLUSTER_UNREACHABLE if one of them does not answer. 'endpoint' is borrowed until
 * cluster_close().
 */
void cluster_join(struct cluster_member *member, struct net_endpoint *endpoint, net_fn *fn,
                  void *data);

/* It was joined by a former process. */
void cluster_adopt(struct cluster_member *member, struct net_endpoint *endpoint);

/* It leaves; cluster_join()'s callback does not come any more. NULL is fine. */
void cluster_close(struct cluster_member *member);

/* The agent ends and the kernel runs on: the handle is gone alone. NULL is fine. */
void cluster_leave(struct cluster_member *member);

/* After all kernels were found: remove what nobody claimed. */
void cluster_sweep(struct cluster *cluster);

#endif
