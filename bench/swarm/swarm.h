/* SPDX-License-Identifier: Apache-2.0 */
/* swarm.h - a thousand agents in one process, over the real link
 *
 * Each node has a certificate of the cluster's authority, a connection (link/link.h), an allocation
 * map, and kernels that are entries of memory instead of processes. It answers as an agent does
 * (src/agent/kernel): what it reports of a kernel, when it acknowledges a message, what it sends
 * after a reconnect, and when a lease ends a kernel. What an agent keeps on its disk lives as long
 * as the swarm; 'restart' ends and starts a node without losing it. Thread of the loop.
 */
#ifndef AQ_BENCH_SWARM_H
#define AQ_BENCH_SWARM_H

#include <stdio.h>
#include <uv.h>

#include "alloc/alloc_map.h"
#include "base/map.h"
#include "link/link.h"

#define SWARM_NODES_MAX 10000

struct swarm_options {
    const char *ca;              /* folder of the authority */
    const char *const *managers; /* host:port each */
    size_t manager_count;
    size_t nodes, cores, gpus; /* nodes; cores and GPUs of each */
    const char *prefix;        /* of the names of nodes: "swarm-" */
    int64_t start_usec;        /* from kernel.create to RUNNING; 0 = at once */
    FILE *journal;             /* a line of JSON for each start and end; NULL = none */
};

/* Sums over all nodes since the start, and what is now. */
struct swarm_counts {
    size_t connected; /* nodes that were welcomed and have sent their inventory */
    size_t creating, running, ending, ended; /* kernels that are kept, by state */
    uint64_t welcomes, losses, refusals;     /* of connections */
    uint64_t starts, ends;                   /* of programs */
    uint64_t repeats;  /* starts of a kernel's attempt that had been started before */
    uint64_t overlaps; /* starts of a kernel that was running on another node */
    uint64_t rejected; /* kernel.create that was answered with ERROR */
    uint64_t leases_over;
};

struct swarm {
    uv_loop_t loop;
    struct swarm_options options;
    struct swarm_counts counts;
    struct node *nodes;
    struct map running; /* id of a kernel -> struct node where it runs */
    struct map started; /* id and attempt -> anything: attempts that were started once */
    struct slot_types *types;
    char *ca_cert;
    unsigned to_fail;  /* so many kernel.create more are answered with ERROR */
    bool is_mute;      /* kernels are accepted and stay CREATING */
    char refusal[256]; /* why the last node was refused for good; "" = none was */
};

struct node {
    struct swarm *swarm;
    char id[65];
    char *cert, *key; /* PEM */
    struct uuid incarnation;
    struct link_client *link;
    struct alloc_map *map;
    struct map kernels; /* id -> struct swarm_kernel */
    uv_timer_t heartbeat;
    char *slots, *devices; /* JSON, as in hello */
    uint64_t last_seq;
    int64_t heartbeat_seq, contact_usec; /* contact: CLOCK_BOOTTIME, 0 = none yet */
    int64_t epoch;                       /* of the latest leader, kept over a restart */
    bool is_connected, is_draining;
};

/* ---- node.c ---- */

/* Certificate, map, and a link that connects once the loop runs. */
int node_init(struct node *node, struct swarm *swarm, size_t number, struct pki_ca *ca,
              struct aq_error *err);
/* As an agent's process that ends and starts again on the same disk. */
int node_restart(struct node *node, struct aq_error *err);
void node_done(struct node *node);
/* Queue a message; what cannot be sent is in the next inventory. */
void node_send(struct node *node, const struct message *msg);

/* ---- swarm_kernel.c ---- */

struct swarm_kernel;

void swarm_kernel_on_create(struct node *node, const struct msg_kernel_create *create);
void swarm_kernel_on_restart(struct node *node, const struct msg_kernel_restart *restart);
void swarm_kernel_on_destroy(struct node *node, const struct msg_kernel_destroy *destroy);
void swarm_kernel_on_release(struct node *node, const struct msg_kernel_release *release);
void swarm_kernel_on_forget(struct node *node, const struct msg_kernel_forget *forget);
void swarm_kernel_on_describe(struct node *node, const struct msg_kernel_describe *describe);
/* Amounts of a kernel that runs are never changed here: the answer is an error. */
void swarm_kernel_on_resize(struct node *node, const struct msg_kernel_resize *resize);
/* As in the inventory of a heartbeat. */
void swarm_kernel_describe(const struct swarm_kernel *k, struct msg_kernel_status *ret);
/* A manager answered a heartbeat: other leases, and what waited for contact. */
void swarm_kernel_take_leases(struct node *node, const struct msg_heartbeat_reply *reply);
/* Start what can start now. */
void swarm_kernel_step_all(struct node *node);
/* End kernels whose lease is over. To be called each second. */
void swarm_kernel_check_leases(struct node *node);
/* Forget all of a node, without reports. */
void swarm_kernel_drop_all(struct node *node);

#endif
