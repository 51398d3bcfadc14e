/* SPDX-License-Identifier: Apache-2.0 */
/* agent_network.c - the offer of an agent for the network between agents, and unreachable agents */
#include "manager/core/state/agent_network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/core/state/agent_entry.h"
#include "manager/core/state/state.h"

void agent_network_free(struct core *core, struct agent_network *network)
{
    if (!network)
        return;
    subnets_forget_agent(&core->subnets, network->address);
    arena_done(&network->arena);
    free(network->text);
    free(network->peers);
    free(network->unreachable.items);
    free(network);
}

/* wg takes two peers of one key for one: the others would lose the way to the agent that has it. */
static int agent_network_check_key(const struct core *core, const struct agent_entry *a,
                                   const char *key, struct aq_error *err)
{
    for (size_t i = 0; key && i < core->agent_count; i++) {
        const struct agent_entry *other = core->agents_sorted[i];

        if (other != a && other->network && other->network->offer.key
            && strcmp(other->network->offer.key, key) == 0)
            return aq_fail_field(err, EEXIST, "key",
                                 "agent '%s' has the same key; if one was copied from the other, "
                                 "delete wireguard.key in the state directory of '%s' and restart "
                                 "it",
                                 other->a.id, a->a.id);
    }
    return 0;
}

int agent_network_set(struct core *core, struct agent_entry *a, const char *text,
                      struct aq_error *err)
{
    struct agent_network *n;
    int r;

    if (a->network && text && strcmp(a->network->text, text) == 0)
        return 0;
    agent_network_free(core, AQ_TAKE(a->network));
    if (!text)
        return 0;
    n = aq_alloc(sizeof(*n));
    n->text = aq_strdup(text);
    r = cluster_network_offer_parse(text, &n->arena, &n->offer, err);
    if (r == 0)
        r = agent_network_check_key(core, a, n->offer.key, err);
    if (r < 0) {
        agent_network_free(core, n);
        return r;
    }
    if (strcmp(n->offer.mode, "none") != 0)
        n->address = subnets_name_agent(&core->subnets, a->a.id);
    a->network = n;
    return 0;
}

const char *agent_network_class(const struct agent_entry *a)
{
    if (!a->network || !a->network->address)
        return NULL;
    return strcmp(a->network->offer.mode, "vxlan") == 0 ? "vxlan" : "wireguard";
}

const char *agent_network_sched_class(const struct agent_entry *a)
{
    return a->runtime && strcmp(a->runtime, "process") == 0 ? "process" : agent_network_class(a);
}

bool agent_network_misses(const struct agent_network *network, const char *agent_id)
{
    for (size_t i = 0; network && i < network->unreachable.count; i++)
        if (strcmp(network->unreachable.items[i], agent_id) == 0)
            return true;
    return false;
}

bool agent_network_is_cut(const struct agent_entry *a, const struct agent_entry *b)
{
    return agent_network_misses(a->network, b->a.id) || agent_network_misses(b->network, a->a.id);
}

void agent_network_set_unreachable(struct agent_network *network, const struct str_list *ids)
{
    size_t size = ids->count * sizeof(char *);
    const char **items;
    char *at;

    for (size_t i = 0; i < ids->count; i++)
        size += strlen(ids->items[i]) + 1;
    items = aq_alloc(size + 1);
    at = (char *)(items + ids->count);
    for (size_t i = 0; i < ids->count; i++) {
        items[i] = strcpy(at, ids->items[i]);
        at += strlen(at) + 1;
    }
    free(network->unreachable.items);
    network->unreachable = (struct str_list){ items, ids->count };
}

struct cluster_network_agent agent_network_describe(const struct agent_entry *a,
                                                    struct arena *arena)
{
    char text[INET_ADDRSTRLEN];

    return (struct cluster_network_agent){
        .id = a->a.id,
        .endpoint = a->network->offer.endpoint,
        .key = a->network->offer.key,
        .address = arena_strdup(arena, cluster_address_format(a->network->address, text)),
    };
}

void agent_network_write(const struct agent_entry *a, struct jsonw *w)
{
    const struct agent_network *n = a->network;
    char text[INET_ADDRSTRLEN];

    if (!n) {
        jsonw_null(w);
        return;
    }
    jsonw_object_begin(w);
    jsonw_member_str(w, "mode", n->offer.mode);
    jsonw_member_str(w, "endpoint", n->offer.endpoint);
    jsonw_member_str(w, "address", n->address ? cluster_address_format(n->address, text) : NULL);
    jsonw_member_str(w, "host", n->offer.host);
    jsonw_key(w, "rdma");
    jsonw_array_begin(w);
    for (size_t i = 0; i < n->offer.rdma.count; i++)
        jsonw_str(w, n->offer.rdma.items[i]);
    jsonw_array_end(w);
    jsonw_member_int(w, "mtu", n->offer.mtu);
    jsonw_member_str(w, "note", n->offer.note);
    jsonw_key(w, "unreachable");
    jsonw_array_begin(w);
    for (size_t i = 0; i < n->unreachable.count; i++)
        jsonw_str(w, n->unreachable.items[i]);
    jsonw_array_end(w);
    jsonw_object_end(w);
}
