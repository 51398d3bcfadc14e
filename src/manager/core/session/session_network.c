/* SPDX-License-Identifier: Apache-2.0 */
/* session_network.c - what agents are told of the network of a session whose kernels are on several
 *
 * The list of a session's kernels and agents has a version, which grows when a kernel gets or
 * leaves its place and when an agent has another end of its tunnel. kernel.create carries it;
 * agents whose kernels were created with an older one get session.network.
 */
#include "manager/core/session/session_network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

/* The agent of a kernel that holds its resources; NULL = it holds none. */
static const char *session_network_agent_of(const struct session_entry *l, size_t rank)
{
    const struct kernel *k = &l->s.kernels[rank];

    return kernel_is_holding(k->status) ? k->agent_id : NULL;
}

static bool session_network_is_listed(const struct cluster_network *network, const char *agent_id)
{
    for (size_t i = network->agent_count; i-- > 0;) /* kernels of consecutive ranks are mostly on
                                                       one agent */
        if (strcmp(network->agents[i].id, agent_id) == 0)
            return true;
    return false;
}

static void session_network_add_agent(struct core *core, struct cluster_network *network,
                                      const char *agent_id)
{
    const struct agent_entry *a = agent_entry_find(core, agent_id);

    if (a && agent_network_class(a) && !session_network_is_listed(network, agent_id))
        network->agents[network->agent_count++] = agent_network_describe(a, &core->scratch);
}

/* The whole list as JSON, in core->scratch. */
static const char *session_network_write(struct core *core, const struct session_entry *l)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct cluster_network network = {
        .subnet = l->s.subnet,
        .kernels = arena_array(&core->scratch, l->s.kernel_count, sizeof(*network.kernels)),
        .kernel_count = l->s.kernel_count,
        .agents = arena_array(&core->scratch, l->s.kernel_count, sizeof(*network.agents)),
    };

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const char *agent_id = session_network_agent_of(l, i);
        char address[INET_ADDRSTRLEN], hostname[KERNEL_HOSTNAME_MAX];

        network.kernels[i] = (struct cluster_network_kernel){
            .hostname = arena_strdup(&core->scratch, kernel_hostname(&l->s.kernels[i], hostname)),
            .address = arena_strdup(
                &core->scratch,
                cluster_address_format(l->network.subnet.first + 1 + (uint32_t)i, address)),
            .agent = agent_id,
        };
        if (agent_id)
            session_network_add_agent(core, &network, agent_id);
    }
    cluster_network_write(&network, &w);
    return arena_strdup(&core->scratch, text.data);
}

/* The same with the host network: by the addresses of the nodes. */
static const char *session_network_write_host(struct core *core, const struct session_entry *l)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);
    struct cluster_network network = {
        .mode = CLUSTER_NETWORK_HOST,
        .kernels = arena_array(&core->scratch, l->s.kernel_count, sizeof(*network.kernels)),
    };

    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const char *agent_id = session_network_agent_of(l, i);
        const struct agent_entry *a = agent_id ? agent_entry_find(core, agent_id) : NULL;
        char hostname[KERNEL_HOSTNAME_MAX];

        if (!a || !a->network || !a->network->offer.host)
            continue;
        network.kernels[network.kernel_count++] = (struct cluster_network_kernel){
            .hostname = arena_strdup(&core->scratch, kernel_hostname(&l->s.kernels[i], hostname)),
            .address = a->network->offer.host,
            .agent = agent_id,
            .port = session_entry_host_port(core, l, i),
        };
    }
    cluster_network_write(&network, &w);
    return arena_strdup(&core->scratch, text.data);
}

/* For kernel.create, which all kernels of a start get with the same list. */
static const char *session_network_keep(struct core *core, struct session_entry *l)
{
    if (!l->start.network || l->start.network_version != l->network.version) {
        free(l->start.network);
        l->start.network = aq_strdup(session_entry_uses_host_network(l)
                                         ? session_network_write_host(core, l)
                                         : session_network_write(core, l));
        l->start.network_version = l->network.version;
    }
    return l->start.network;
}

static bool session_network_is_spread(const struct session_entry *l)
{
    for (size_t i = 1; i < l->s.kernel_count; i++) {
        const char *a = l->s.kernels[0].agent_id, *b = l->s.kernels[i].agent_id;

        if (a && b && strcmp(a, b) != 0)
            return true;
    }
    return false;
}

/* Agents of older versions offer no network. */
static bool session_network_has_agents(const struct core *core, const struct session_entry *l)
{
    const struct agent_entry *a = agent_entry_find(core, l->s.kernels[0].agent_id);

    return a && agent_network_class(a);
}

int session_network_make(struct core *core, struct session_entry *l, const char **ret,
                         struct aq_error *err)
{
    *ret = NULL;
    if (l->s.subnet && l->network.subnet.bits) {
        *ret = session_network_keep(core, l);
        return 0;
    }
    if (!session_entry_uses_host_network(l)
        && (!session_entry_needs_network(l) || !session_network_is_spread(l)
            || !session_network_has_agents(core, l)))
        return 0;
    if (!session_entry_has_subnet_share(core, l))
        return aq_fail_field(err, ENOSPC, "cluster-pool",
                             "the sessions of one user have at most half of the addresses for "
                             "networks between agents: end some of yours, ask for fewer kernels, "
                             "or have [network] cluster-pool in manager.toml enlarged");
    return aq_fail_field(err, ENOSPC, "cluster-pool",
                         "no range of %zu addresses is free for the network between its agents: "
                         "end sessions, or enlarge [network] cluster-pool in manager.toml",
                         l->s.kernel_count + 2);
}

/* Notes that the agent has the newest list for all kernels of the session on it. */
static void session_network_mark(struct session_entry *l, const char *agent_id)
{
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const char *other = session_network_agent_of(l, i);

        if (other && strcmp(other, agent_id) == 0)
            l->kernels[i].network_version = l->network.version;
    }
}

void session_network_follow(struct core *core, struct session_entry *l)
{
    struct message msg = { .type = MSG_SESSION_NETWORK,
                           .session_network = { .session_id = l->s.id } };

    if (!l->s.subnet || !l->network.subnet.bits || session_entry_uses_host_network(l))
        return;
    for (size_t i = 0; i < l->s.kernel_count; i++) {
        const char *agent_id = session_network_agent_of(l, i);

        /* the agent has not received this kernel yet */
        if (!agent_id || l->kernels[i].network_version == l->network.version
            || (l->kernels[i].sent_usec == 0 && l->kernels[i].fact == FACT_NONE))
            continue;
        if (!msg.session_network.network)
            msg.session_network.network = session_network_write(core, l);
        if (agent_command_network(core, agent_id, &msg)) {
            session_network_mark(l, agent_id);
            AQ_FAULT("core.session.network.sent");
        }
    }
    arena_clear(&core->scratch, 1 << 16);
}
