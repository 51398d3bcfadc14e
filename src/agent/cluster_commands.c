/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_commands.c - the network between nodes: what the manager says of it, and is told */
#include <stdlib.h>

#include "accel/protocol.h"
#include "agent/agent_internal.h"
#include "agent/identity.h"
#include "agent/settings/net_settings.h"
#include "base/arena.h"
#include "base/fault.h"
#include "base/log.h"

void cluster_commands_set_session(struct agent_daemon *agent, const struct msg_session_network *msg)
{
    struct aq_error err = { 0 };

    AQ_FAULT("agent.session-network.received");
    if (agent->cluster
        && cluster_set_session(agent->cluster, &msg->session_id, msg->network, &err) < 0)
        log_error("cannot change the network of a session: %s", err.text);
}

void cluster_commands_set_peers(struct agent_daemon *agent, const struct msg_network_peers *msg)
{
    struct aq_error err = { 0 };

    if (agent->cluster && cluster_set_peers(agent->cluster, msg->network, &err) < 0)
        log_error("cannot check the ways to other agents: %s", err.text);
}

static void cluster_commands_on_reach(void *data)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct agent_daemon *agent = data;
    struct message msg = { .type = MSG_NETWORK_REACH };

    cluster_list_reach(agent->cluster, &arena, &msg.network_reach.reachable,
                       &msg.network_reach.unreachable);
    if (agent->link && link_client_is_connected(agent->link))
        agent_send(agent, &msg);
}

/* A missing device does not stop the agent: sessions that need RDMA are placed elsewhere. */
static void cluster_commands_find_rdma(struct agent_daemon *agent)
{
    const struct conf_list *wanted = &agent->settings->network_rdma;
    const char *root = getenv(ACCEL_ROOT_VARIABLE);
    struct aq_error err = { 0 };

    if (rdma_find(root ? root : "", (const char *const *)wanted->items, wanted->count, &agent->rdma,
                  &err)
        < 0)
        log_warning("not offering RDMA devices: %s", err.text);
}

void cluster_commands_start(struct agent_daemon *agent)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    AQ_CLEANUP(link_identity_done) struct link_identity identity = { .id = NULL };
    struct cluster_settings settings;
    struct aq_error err = { 0 };
    bool has_manager;

    if (!agent->net)
        return;
    cluster_commands_find_rdma(agent);
    has_manager = identity_load(agent->settings, &identity, NULL) == 0;
    net_settings_fill_cluster(&settings, agent->settings, has_manager ? &identity.manager : NULL,
                              &arena);
    settings.rdma = agent->rdma.names;
    if (cluster_new(agent->net, &settings, cluster_commands_on_reach, agent, &agent->cluster, &err)
        < 0)
        log_warning("no network to other nodes: %s", err.text);
    else if (cluster_get_note(agent->cluster))
        log_info("network to other nodes: %s", cluster_get_note(agent->cluster));
}
