/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_write.c - the cluster namespace follows what is open
 *
 * Changes ask for a new version; one write is under way at a time, and brings the namespace to all
 * that is wanted when it begins: programs run by the number of writes, not of kernels.
 */
#include <stdio.h>
#include <string.h>

#include "agent/net/cluster_internal.h"
#include "agent/net/netns.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/map.h"
#include "base/memory.h"

struct cluster_write {
    uv_work_t work;
    struct cluster_networks *cluster;
    uint64_t version;
    struct cluster_plan plan;
    struct cluster_member **members; /* of the plan's joins; in its arena */
    struct cluster_written written;
    bool wants_socket;
    int socket;
    struct aq_error err;
};

/* ---- the plan ---- */

static uint32_t cluster_write_parse(const char *address)
{
    struct range range;

    return range_parse(address, &range, NULL) == 0 ? range.first : 0;
}

/* 'peers': ids to struct cluster_peer in the plan's arena. */
static struct cluster_peer *cluster_write_put_peer(struct cluster_write *w, struct map *peers,
                                                   const struct cluster_network_agent *agent)
{
    struct cluster_peer *peer = map_gets(peers, agent->id);

    if (!peer) {
        peer = arena_alloc(&w->plan.arena, sizeof(*peer));
        peer->id = arena_strdup(&w->plan.arena, agent->id);
        (void)map_sets(peers, agent->id, peer);
    }
    peer->key = agent->key ? arena_strdup(&w->plan.arena, agent->key) : NULL;
    peer->endpoint = arena_strdup(&w->plan.arena, agent->endpoint);
    peer->address = cluster_write_parse(agent->address);
    return peer;
}

/* The newest of several lists says where an agent is. */
static void cluster_write_add_agents(struct cluster_write *w, struct map *peers,
                                     const struct cluster_network *network)
{
    for (size_t i = 0; i < network->agent_count; i++) {
        const struct cluster_network_agent *agent = &network->agents[i];

        if (strcmp(agent->id, w->cluster->id) != 0)
            (void)cluster_write_put_peer(w, peers, agent);
        else if (!w->plan.address)
            w->plan.address = cluster_write_parse(agent->address);
    }
}

static void cluster_write_add_kernels(struct cluster_write *w, struct map *peers,
                                      const struct cluster_network *network)
{
    for (size_t i = 0; i < network->kernel_count; i++) {
        const struct cluster_network_kernel *kernel = &network->kernels[i];
        struct cluster_peer *peer = kernel->agent ? map_gets(peers, kernel->agent) : NULL;
        uint32_t address = cluster_write_parse(kernel->address);

        if (peer)
            (void)arena_append(&w->plan.arena, &peer->kernels, &peer->kernel_count, &address,
                               sizeof(address));
    }
}

static void cluster_write_add_sessions(struct cluster_write *w)
{
    AQ_CLEANUP(map_done) struct map peers = MAP_INIT;
    struct cluster_networks *cluster = w->cluster;

    if (cluster->peers.address)
        w->plan.address = cluster_write_parse(cluster->peers.address);
    LIST_FOREACH(it, &cluster->sessions) {
        struct cluster_session *s = LIST_ENTRY(it, struct cluster_session, link);

        cluster_write_add_agents(w, &peers, &s->network);
        (void)arena_append(&w->plan.arena, &w->plan.subnets, &w->plan.subnet_count, &s->subnet,
                           sizeof(s->subnet));
    }
    cluster_write_add_agents(w, &peers, &cluster->peers);
    LIST_FOREACH(it, &cluster->sessions)
        cluster_write_add_kernels(w, &peers,
                                  &LIST_ENTRY(it, struct cluster_session, link)->network);
    w->plan.peers = arena_array(&w->plan.arena, peers.count + 1, sizeof(*w->plan.peers));
    for (size_t i = 0; i < peers.count; i++)
        w->plan.peers[w->plan.peer_count++] = *(const struct cluster_peer *)peers.entries[i].value;
}

static void cluster_write_add_members(struct cluster_write *w)
{
    LIST_FOREACH(it, &w->cluster->members) {
        struct cluster_member *m = LIST_ENTRY(it, struct cluster_member, link);
        struct cluster_join join = { .address = m->address, .subnet = m->session->subnet };

        if (!m->endpoint || m->state == MEMBER_FAILED)
            continue;
        (void)snprintf(join.link, sizeof(join.link), CLUSTER_LINK_PREFIX "%08x", m->address);
        join.namespace_path = arena_strdup(&w->plan.arena, m->endpoint->info.namespace_path);
        (void)arena_append(&w->plan.arena, &w->plan.joins, &w->plan.join_count, &join,
                           sizeof(join));
    }
}

static struct cluster_write *cluster_write_new(struct cluster_networks *cluster)
{
    struct cluster_write *w = aq_alloc(sizeof(*w));

    w->work.data = w;
    w->cluster = cluster;
    w->version = cluster->wanted;
    w->socket = -1;
    w->wants_socket = cluster->socket < 0;
    w->written = cluster->written;
    strbuf_init(&cluster->written.rules);
    strbuf_init(&cluster->written.wireguard);
    w->plan = (struct cluster_plan){ .arena = ARENA_INIT,
                                     .mode = cluster->mode,
                                     .path = cluster->path,
                                     .tag = cluster->net->directory.tag,
                                     .id = cluster->id,
                                     .private_key = cluster->private_key,
                                     .local = cluster->local,
                                     .mtu = cluster->mtu,
                                     .port = cluster->port };
    cluster_write_add_sessions(w);
    cluster_write_add_members(w);
    return w;
}

/* ---- writing it ---- */

static void cluster_write_on_work(uv_work_t *work)
{
    struct cluster_write *w = work->data;
    AQ_CLEANUP(aq_closep) int ns = -1;
    int *place = &w->socket;

    AQ_FAULT("agent.cluster.before");
    (void)cluster_setup_apply(&w->plan, &w->written, &ns, &w->err);
    if (w->wants_socket && ns >= 0 && !w->err.code)
        (void)netns_run(ns, cluster_reach_open_socket, &place, &w->err);
    AQ_FAULT("agent.cluster.written");
}

/* The error of a member's own join; NULL = it is joined. */
static const struct aq_error *cluster_write_find_error(const struct cluster_write *w,
                                                       const struct cluster_member *m)
{
    if (w->err.code)
        return &w->err;
    for (size_t i = 0; i < w->plan.join_count; i++)
        if (w->plan.joins[i].address == m->address)
            return w->plan.joins[i].err.code ? &w->plan.joins[i].err : NULL;
    return NULL;
}

static void cluster_write_tell(struct cluster_write *w)
{
    AQ_CLEANUP(list_cursor_end) struct list_cursor cursor;
    struct list *link;

    list_cursor_begin(&cursor, &w->cluster->members);
    while ((link = list_cursor_next(&cursor))) {
        struct cluster_member *m = LIST_ENTRY(link, struct cluster_member, link);
        const struct aq_error *err;

        if (m->state != MEMBER_JOINING || m->version > w->version)
            continue;
        err = cluster_write_find_error(w, m);
        if (err) {
            cluster_member_end(m, err);
        } else {
            m->state = MEMBER_REACHING;
            m->since_usec = clock_monotonic_usec();
        }
    }
}

static void cluster_write_on_written(uv_work_t *work, int status)
{
    struct cluster_write *w = work->data;
    struct cluster_networks *cluster = w->cluster;

    (void)status;
    if (w->err.code && !cluster->has_failed)
        log_error("failed to set up the network between nodes: %s", w->err.text);
    cluster->has_failed = w->err.code != 0;
    cluster->current = w->version;
    cluster->written = w->written;
    if (w->socket >= 0)
        cluster_reach_take_socket(cluster, w->socket);
    if (!cluster->is_freed)
        cluster_write_tell(w); /* which may call cluster_free() */
    cluster->is_writing = false;
    if (cluster->wanted > cluster->current)
        cluster_write_update(cluster);
    if (!cluster->is_freed)
        cluster_reach_update(cluster);
    arena_done(&w->plan.arena);
    free(w);
    cluster_job_ended(cluster);
}

void cluster_write_update(struct cluster_networks *cluster)
{
    struct cluster_write *w;

    if (cluster->is_writing || cluster->is_freed || cluster->mode == CLUSTER_NONE)
        return;
    w = cluster_write_new(cluster);
    (void)uv_queue_work(cluster->net->loop, &w->work, cluster_write_on_work,
                        cluster_write_on_written);
    cluster->is_writing = true;
}
