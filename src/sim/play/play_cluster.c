/* SPDX-License-Identifier: Apache-2.0 */
/* The machines of a run: made, found, ended. */
#include "sim/play/play_cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/play/play.h"
#include "sim/play/play_agent.h"
#include "sim/play/play_disk.h"
#include "sim/play/play_manager.h"

#define MANAGER_IP "10.0.0.1"
#define LINK_PORT 8082

void play_cluster_begin(struct play *play)
{
    struct play_cluster *c = &play->cluster;

    play_disk_register();
    c->manager_host = simuv_add_host(MANAGER_IP);
    c->manager = play_manager_new(c->manager_host, MANAGER_IP, LINK_PORT);
    c->node_count = play->options.agents;
    c->nodes = aq_alloc_array((size_t)c->node_count, sizeof(*c->nodes));
    for (int i = 0; i < c->node_count; i++) {
        struct play_node *node = &c->nodes[i];

        node->id = aq_format("node-%d", i + 1);
        node->ip = aq_format("10.1.%d.%d", i / 250, i % 250 + 1);
        node->host = simuv_add_host(node->ip);
        node->agent = play_agent_new(node->host, node->ip,
                                     &(struct play_agent_spec){ .id = node->id,
                                                                .cpus = PLAY_NODE_CPUS,
                                                                .memory = PLAY_NODE_MEMORY,
                                                                .gpus = play->options.gpus },
                                     c->manager);
    }
    c->disturbed_usec = simuv_now_usec();
}

void play_cluster_end(struct play *play)
{
    struct play_cluster *c = &play->cluster;

    for (int i = 0; i < c->node_count; i++)
        play_agent_stop(c->nodes[i].agent);
    play_manager_free(c->manager);
}

struct core *play_cluster_core(const struct play *play)
{
    return play_manager_core(play->cluster.manager);
}

void play_cluster_disturb(struct play *play, struct play_node *node)
{
    play->cluster.disturbed_usec = simuv_now_usec();
    if (node)
        node->disturbed_usec = simuv_now_usec();
}

bool play_cluster_is_calm(const struct play *play, int64_t usec)
{
    return play->faults.active == 0 && simuv_now_usec() - play->cluster.disturbed_usec >= usec;
}

struct play_node *play_cluster_find(struct play *play, const char *agent_id)
{
    int number = atoi(agent_id + strlen("node-"));

    return number >= 1 && number <= play->cluster.node_count ? &play->cluster.nodes[number - 1]
                                                             : NULL;
}
