/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - which agents can reach each other over the network between them */
#include "manager/core/nodes/reach.h"

#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/memory.h"
#include "link/message.h"
#include "manager/core/scheduling/queue.h"
#include "manager/core/scheduling/sched_sync.h"
#include "manager/core/session/agent_command.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/agent_network.h"
#include "manager/core/state/resource_group_entry.h"
#include "manager/core/state/session_entry.h"
#include "manager/core/state/state.h"

static void reach_agent_changed(struct core *core, struct agent_entry *a)
{
    sched_sync_mark_agent(core, a);
    queue_agent_changed(
        core, resource_group_entry_get(core, a->a.resource_group ? a->a.resource_group : ""));
}

void reach_take_offer(struct core *core, struct agent_entry *a, const char *offer)
{
    const char *before = a->network ? a->network->text : "", *after = offer ? offer : "";
    struct aq_error err = { 0 };

    if (strcmp(before, after) == 0)
        return;
    if (agent_network_set(core, a, offer, &err) < 0)
        log_limited(&a->log, LOG_LEVEL_WARNING,
                    "agent '%s' offers a network between agents that cannot be used: %s", a->a.id,
                    err.text);
    core->peers_are_stale = a->is_reach_changed = true;
    LIST_FOREACH(link, &a->kernels)
        LIST_ENTRY(link, struct kernel_entry, agent_link)->entry->network.version++;
    reach_agent_changed(core, a);
}

void reach_connected(struct core *core, struct agent_entry *a)
{
    if (!a->network)
        return;
    free(AQ_TAKE(a->network->peers));
    core->peers_are_stale = true;
}

/* ---- network.peers ---- */

struct reach_ring {
    struct agent_entry **agents; /* of one resource group and class, by id */
    size_t count;
};

static bool reach_is_in(const struct agent_entry *a, const struct agent_entry *like)
{
    const char *class = agent_network_class(a);

    return class && a->is_known && a->a.resource_group && like->a.resource_group
           && strcmp(class, agent_network_class(like)) == 0
           && strcmp(a->a.resource_group, like->a.resource_group) == 0;
}

/* Those that are next to it on both sides. */
static void reach_write_peers(struct core *core, const struct reach_ring *ring, size_t at,
                              struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);
    size_t count = AQ_MIN(ring->count - 1, (size_t)REACH_PEERS_MAX);
    struct cluster_network network = {
        .agents = arena_array(&core->scratch, count + 1, sizeof(*network.agents)),
        .agent_count = count,
        .address = agent_network_describe(ring->agents[at], &core->scratch).address,
    };

    for (size_t i = 0; i < count; i++) {
        size_t step = i / 2 + 1;
        size_t other = i % 2 ? at + ring->count - step : at + step;

        network.agents[i] = agent_network_describe(ring->agents[other % ring->count],
                                                   &core->scratch);
    }
    cluster_network_write(&network, &w);
}

static void reach_tell(struct core *core, const struct reach_ring *ring, size_t at)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct agent_entry *a = ring->agents[at];
    struct message msg = { .type = MSG_NETWORK_PEERS };

    if (!a->is_connected || !a->is_synced)
        return;
    reach_write_peers(core, ring, at, &text);
    msg.network_peers.network = text.data;
    if ((a->network->peers && strcmp(a->network->peers, text.data) == 0)
        || !agent_command_network(core, a->a.id, &msg))
        return;
    free(a->network->peers);
    a->network->peers = strbuf_steal(&text);
    AQ_FAULT("core.network.peers.sent");
}

static void reach_tell_ring(struct core *core, const struct agent_entry *like)
{
    struct reach_ring ring = { .agents = arena_array(&core->scratch, core->agent_count,
                                                     sizeof(*ring.agents)) };

    for (size_t i = 0; i < core->agent_count; i++)
        if (reach_is_in(core->agents_sorted[i], like))
            ring.agents[ring.count++] = core->agents_sorted[i];
    for (size_t i = 0; i < ring.count; i++)
        reach_tell(core, &ring, i);
}

/* Is it the first of its ring? */
static bool reach_begins_ring(const struct core *core, size_t at)
{
    const struct agent_entry *a = core->agents_sorted[at];

    if (!agent_network_class(a) || !reach_is_in(a, a))
        return false;
    for (size_t i = 0; i < at; i++)
        if (reach_is_in(core->agents_sorted[i], a))
            return false;
    return true;
}

void reach_tick(struct core *core)
{
    if (!core->peers_are_stale)
        return;
    core->peers_are_stale = false;
    for (size_t i = 0; i < core->agent_count; i++)
        if (reach_begins_ring(core, i))
            reach_tell_ring(core, core->agents_sorted[i]);
    arena_clear(&core->scratch, 1 << 16);
}

/* ---- what they find ---- */

/* What is kept of a report is small: it names agents, each once. */
static bool reach_is_report(const struct str_list *ids)
{
    if (ids->count > REACH_PEERS_MAX)
        return false;
    for (size_t i = 0; i < ids->count; i++) {
        if (agent_id_check(ids->items[i], NULL) < 0)
            return false;
        for (size_t k = 0; k < i; k++)
            if (strcmp(ids->items[i], ids->items[k]) == 0)
                return false;
    }
    return true;
}

void reach_take_report(struct core *core, struct agent_entry *a,
                       const struct msg_network_reach *report)
{
    bool is_news = false;

    if (!a->network || !reach_is_report(&report->unreachable))
        return;
    for (size_t i = 0; i < report->unreachable.count; i++) {
        const struct agent_entry *other = agent_entry_find(core, report->unreachable.items[i]);

        if (agent_network_misses(a->network, report->unreachable.items[i]))
            continue;
        is_news = true;
        if (other && other->network)
            log_limited(&a->log, LOG_LEVEL_WARNING,
                        "agent '%s' does not reach agent '%s' (%s/udp): no session is placed on "
                        "both; open that port between the nodes",
                        a->a.id, other->a.id, other->network->offer.endpoint);
    }
    is_news |= report->unreachable.count != a->network->unreachable.count;
    if (!is_news)
        return;
    agent_network_set_unreachable(a->network, &report->unreachable);
    a->is_reach_changed = true;
    reach_agent_changed(core, a);
}
