/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_internal.h - what the files of cluster.h share */
#ifndef AQ_AGENT_NET_CLUSTER_INTERNAL_H
#define AQ_AGENT_NET_CLUSTER_INTERNAL_H

#include "agent/net/cluster.h"
#include "agent/net/cluster_setup.h"
#include "agent/net/net_internal.h"
#include "base/host_port.h"
#include "model/agent.h"
#include "model/cluster_network.h"

#define CLUSTER_KEY_MAX 48 /* BASE64 of 32 bytes */

struct cluster_session {
    struct list link; /* what was updated last is last */
    struct uuid id;
    struct arena arena;
    const char *text;               /* the list, which all its kernels bring; in the arena */
    struct cluster_network network; /* in the arena, as is what follows */
    const char **needed;            /* other agents that have kernels of it */
    size_t needed_count;
    struct range subnet;
    size_t member_count;
};

enum member_state {
    MEMBER_OPEN,     /* without an endpoint yet */
    MEMBER_JOINING,  /* in the plan of version 'version' */
    MEMBER_REACHING, /* until all agents of its session have answered, or 'deadline_usec' */
    MEMBER_READY,
    MEMBER_FAILED,
};

struct cluster_member {
    struct list link;
    struct cluster_networks *cluster;
    struct cluster_session *session;
    enum member_state state;
    char hostname[NET_HOSTNAME_MAX + 1];
    uint32_t address;
    struct net_endpoint *endpoint; /* NULL while MEMBER_OPEN */
    uint64_t version;
    int64_t since_usec; /* of MEMBER_REACHING, monotonic: answers from then on count */
    net_fn *fn;
    void *data;
};

enum reach_state { REACH_UNKNOWN, REACH_YES, REACH_NO };

/* Another agent to which echo requests are sent. */
struct cluster_reach {
    char id[AGENT_ID_MAX + 1], endpoint[HOST_PORT_MAX];
    uint32_t address;
    bool is_checked;    /* all the time */
    bool is_wanted;     /* by a session or by peers, during an update */
    int64_t begin_usec; /* monotonic: it is not asked before */
    int64_t sent_usec;  /* of the check before, monotonic; 0 = none */
    int64_t answered_usec;
    int64_t whole_usec; /* of the latest answer to a packet of full size */
    unsigned lost, cut; /* checks in a row without an answer; where only small ones had one */
    enum reach_state state;
};

struct cluster_networks {
    struct net *net;
    enum cluster_mode mode;
    char id[AGENT_ID_MAX + 1], note[512];
    char private_key[CLUSTER_KEY_MAX], public_key[CLUSTER_KEY_MAX];
    char endpoint[HOST_PORT_MAX];
    struct str_list rdma;
    char host[INET6_ADDRSTRLEN]; /* of the node, where its network is offered; "" = it is not */
    char path[NET_DIRECTORY_PATH_MAX + 16];
    char *offer;
    uint16_t port;
    uint32_t local, mtu;
    struct list sessions, members;
    size_t left; /* members whose kernels run on */
    struct arena peers_arena;
    struct cluster_network peers;
    uint64_t wanted, current; /* versions of the plan: to be made, made */
    bool is_writing, has_failed;
    struct cluster_written written;
    struct cluster_reach *reach;
    size_t reach_count, reach_cap;
    void (*on_reach)(void *data);
    void *data;
    int64_t told_usec, checked_usec; /* monotonic */
    uv_timer_t timer;
    uv_poll_t poll; /* of 'socket' */
    int socket;     /* for echos, in the cluster namespace; -1 = not open */
    uint16_t sequence;
    bool is_freed;
};

/* ---- cluster_offer.c ---- */

#define CLUSTER_MTU_MIN 1280

/* Records for administrators that only packets up to this size reach an agent; 'why' says why. */
void cluster_offer_lower_mtu(struct cluster_networks *cluster, uint32_t mtu, const char *why);

/* Find mode, key, port and address. -errno if the state directory cannot be used. */
int cluster_offer_find(struct cluster_networks *cluster, const struct cluster_settings *settings,
                       struct aq_error *err);
/* Releases the port for other agents of this machine. */
void cluster_offer_release(struct cluster_networks *cluster);

/* ---- cluster_write.c ---- */

/* Bring the namespace up to date in the background; members that wait for it go on. */
void cluster_write_update(struct cluster_networks *cluster);

/* ---- cluster_reach.c ---- */

/* Ask, and wait for answers, as members and peers are now. */
void cluster_reach_update(struct cluster_networks *cluster);
/* Has the reachability sent again to a manager that has just connected. */
void cluster_reach_tell_soon(struct cluster_networks *cluster);
/* A socket in the cluster namespace, for worker threads: data points to a pointer to it. */
int cluster_reach_open_socket(const void *data, struct aq_error *err);
void cluster_reach_take_socket(struct cluster_networks *cluster, int fd);
/* The agent of this id, NULL = it is not asked. */
struct cluster_reach *cluster_reach_find(const struct cluster_networks *cluster, const char *id);

/* ---- cluster.c ---- */

/* The member is joined and all agents have answered (err NULL), or it cannot start. */
void cluster_member_end(struct cluster_member *member, const struct aq_error *err);
/* Has the agent kernels of the session? */
bool cluster_session_needs(const struct cluster_session *session, const char *agent_id);
/* The end of a job; frees what cluster_free() left. */
void cluster_job_ended(struct cluster_networks *cluster);

#endif
