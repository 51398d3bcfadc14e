/* SPDX-License-Identifier: Apache-2.0 */
/* play_cluster.h - the machines of a run: one manager and many agents, and which of them are up */
#ifndef AQ_SIM_PLAY_PLAY_CLUSTER_H
#define AQ_SIM_PLAY_PLAY_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "simuv/simuv.h"

struct core;
struct play;
struct play_agent;
struct play_manager;

struct play_node {
    char *id, *ip;
    simuv_host host;
    struct play_agent *agent;
    bool is_down;           /* its daemon or the whole machine */
    bool is_drained;        /* that was acknowledged, and nobody asks for the opposite */
    int64_t disturbed_usec; /* simulated time of its last fault, or of the end of it */
};

struct play_cluster {
    struct play_manager *manager;
    simuv_host manager_host;
    struct play_node *nodes;
    int node_count;
    int64_t disturbed_usec; /* as of a node, of any host */
};

#define PLAY_NODE_CPUS 8
#define PLAY_NODE_MEMORY (INT64_C(16) << 30) /* bytes */

/* All are up; agents have not yet been heard of. */
void play_cluster_begin(struct play *play);

/* Ends it in order, with its real files. */
void play_cluster_end(struct play *play);

/* The manager's core, NULL while it is down. What calls it first enters manager_host. */
struct core *play_cluster_core(const struct play *play);

/* A fault of a node begins or ends now; of the manager if 'node' is NULL. */
void play_cluster_disturb(struct play *play, struct play_node *node);

/* No fault lasts, and nothing has been disturbed for so long. */
bool play_cluster_is_calm(const struct play *play, int64_t usec);

struct play_node *play_cluster_find(struct play *play, const char *agent_id);

#endif
