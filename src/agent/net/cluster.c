/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.c - sessions whose kernels are on several nodes, and their kernels here */
#include "agent/net/cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/net/cluster_internal.h"
#include "agent/net/endpoint_setup.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"

#define LIST_MAX (512u << 10) /* bytes of one list of kernels and agents, of 1024 each */
#define PEERS "peers"

static void cluster_change(struct cluster_networks *cluster)
{
    cluster->wanted++;
    cluster_write_update(cluster);
    cluster_reach_update(cluster);
}

/* ---- sessions ---- */

static struct cluster_session *cluster_find_session(const struct cluster_networks *cluster,
                                                    const struct uuid *id)
{
    LIST_FOREACH(it, &cluster->sessions) {
        struct cluster_session *s = LIST_ENTRY(it, struct cluster_session, link);

        if (uuid_equals(&s->id, id))
            return s;
    }
    return NULL;
}

bool cluster_session_needs(const struct cluster_session *session, const char *agent_id)
{
    for (size_t i = 0; i < session->needed_count; i++)
        if (strcmp(session->needed[i], agent_id) == 0)
            return true;
    return false;
}

static void cluster_session_find_needed(const struct cluster_networks *cluster,
                                        struct cluster_session *s)
{
    s->needed = NULL;
    s->needed_count = 0;
    for (size_t i = 0; i < s->network.kernel_count; i++) {
        const char *id = s->network.kernels[i].agent;

        if (id && strcmp(id, cluster->id) != 0 && !cluster_session_needs(s, id))
            (void)arena_append(&s->arena, &s->needed, &s->needed_count, &id, sizeof(id));
    }
}

static int cluster_check_subnet(const struct cluster_networks *cluster, const struct uuid *id,
                                const struct range *subnet, struct aq_error *err)
{
    char text[RANGE_TEXT_MAX], id_text[UUID_TEXT_MAX];

    if (range_overlaps(subnet, &cluster->net->whole))
        return aq_fail_field(err, EEXIST, "network",
                             "the session's subnet %s lies in this node's [network] pool; give the "
                             "node another pool",
                             range_format(subnet, text));
    LIST_FOREACH(it, &cluster->sessions) {
        const struct cluster_session *s = LIST_ENTRY(it, struct cluster_session, link);

        if (!uuid_equals(&s->id, id) && range_overlaps(&s->subnet, subnet))
            return aq_fail_field(err, EEXIST, "network",
                                 "the session's subnet %s is in use by session %s on this node",
                                 range_format(subnet, text), uuid_format(&s->id, id_text));
    }
    return 0;
}

/* Parses and checks a list, which replaces the session's and becomes the newest. */
static int cluster_session_take(struct cluster_networks *cluster, struct cluster_session *s,
                                const char *text, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct cluster_network network;
    struct range subnet;
    int r = cluster_network_parse(text, &arena, &network, err);

    if (r == 0 && (!network.subnet || range_parse(network.subnet, &subnet, NULL) < 0))
        r = aq_fail_field(err, EINVAL, "network", "a session's network has no valid subnet");
    if (r < 0)
        return r;
    r = cluster_check_subnet(cluster, &s->id, &subnet, err);
    if (r < 0)
        return r;
    AQ_SWAP(s->arena, arena);
    s->text = arena_strdup(&s->arena, text);
    s->network = network;
    s->subnet = subnet;
    cluster_session_find_needed(cluster, s);
    list_remove(&s->link);
    list_add(&cluster->sessions, &s->link);
    return 0;
}

/* Keeps the list for the agent's next process. */
static void cluster_keep(const struct cluster_networks *cluster, const char *name, const char *text)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/%s", cluster->path, name);
    struct aq_error err = { 0 };
    int r = fs_mkdirs(cluster->path, 0700, &err);

    if (r == 0)
        r = fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, &err);
    if (r < 0)
        log_warning("failed to record a network between nodes: %s", err.text);
}

static void cluster_session_free(struct cluster_session *s)
{
    list_remove(&s->link);
    arena_done(&s->arena);
    free(s);
}

static void cluster_session_release(struct cluster_networks *cluster, struct cluster_session *s)
{
    AQ_CLEANUP(aq_freep) char *path = NULL;
    char id[UUID_TEXT_MAX];

    if (s->member_count > 0)
        return;
    path = aq_format("%s/%s", cluster->path, uuid_format(&s->id, id));
    (void)unlink(path);
    cluster_session_free(s);
}

/* ---- names ---- */

/* Also into the file, which containers have mounted. */
static void cluster_member_write_hosts(struct cluster_member *m)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct cluster_network *network = &m->session->network;
    struct strbuf lines = STRBUF_INIT;
    struct aq_error err = { 0 };
    struct range address;

    for (size_t i = 0; i < network->kernel_count; i++)
        if (range_parse(network->kernels[i].address, &address, NULL) == 0)
            dns_files_add_host(&lines, address.first, network->kernels[i].hostname);
    free(m->endpoint->cluster_hosts);
    m->endpoint->cluster_hosts = strbuf_steal(&lines);
    net_hosts_add(m->endpoint, &text);
    if (endpoint_setup_rewrite(m->endpoint->info.hosts_path, text.data, &err) < 0)
        log_warning("a kernel does not see that its session has changed: %s", err.text);
}

/* Takes a new list for a session: keeps it and passes it to its kernels here. */
static int cluster_session_replace(struct cluster_networks *cluster, struct cluster_session *s,
                                   const char *text, struct aq_error *err)
{
    char id[UUID_TEXT_MAX];
    int r;

    if (s->text && strcmp(s->text, text) == 0)
        return 0;
    r = cluster_session_take(cluster, s, text, err);
    if (r < 0)
        return r;
    cluster_keep(cluster, uuid_format(&s->id, id), text);
    AQ_FAULT("agent.cluster.session");
    LIST_FOREACH(it, &cluster->members) {
        struct cluster_member *m = LIST_ENTRY(it, struct cluster_member, link);

        if (m->session == s && m->endpoint)
            cluster_member_write_hosts(m);
    }
    return 0;
}

int cluster_set_session(struct cluster_networks *cluster, const struct uuid *session_id,
                        const char *text, struct aq_error *err)
{
    struct cluster_session *s = cluster_find_session(cluster, session_id);
    int r = s ? cluster_session_replace(cluster, s, text, err) : 0;

    if (s && r == 0)
        cluster_change(cluster);
    return r;
}

/* ---- agents that are checked ---- */

static int cluster_take_peers(struct cluster_networks *cluster, const char *text,
                              struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct cluster_network peers;
    int r = cluster_network_parse(text, &arena, &peers, err);

    if (r < 0)
        return r;
    AQ_SWAP(cluster->peers_arena, arena);
    cluster->peers = peers;
    return 0;
}

int cluster_set_peers(struct cluster_networks *cluster, const char *text, struct aq_error *err)
{
    int r = cluster->mode == CLUSTER_NONE ? 0 : cluster_take_peers(cluster, text, err);

    if (r < 0 || cluster->mode == CLUSTER_NONE)
        return r;
    cluster_keep(cluster, PEERS, text);
    cluster_change(cluster);
    cluster_reach_tell_soon(cluster);
    return 0;
}

/* ---- kernels ---- */

static struct cluster_session *cluster_add_session(struct cluster_networks *cluster,
                                                   const struct uuid *id)
{
    struct cluster_session *s = cluster_find_session(cluster, id);

    if (s)
        return s;
    s = aq_alloc(sizeof(*s));
    s->id = *id;
    list_add(&cluster->sessions, &s->link);
    return s;
}

/* The kernel's own address. */
static int cluster_member_find_address(struct cluster_member *m, struct aq_error *err)
{
    const struct cluster_network *network = &m->session->network;
    struct range address;

    for (size_t i = 0; i < network->kernel_count; i++)
        if (strcmp(network->kernels[i].hostname, m->hostname) == 0
            && range_parse(network->kernels[i].address, &address, NULL) == 0) {
            m->address = address.first;
            return 0;
        }
    return aq_fail_field(err, EINVAL, "network", "the session's network has no address for '%s'",
                         m->hostname);
}

/* The list in the command, or the newer one that the agent's previous process received. */
static int cluster_session_load(struct cluster_networks *cluster, struct cluster_session *s,
                                const struct cluster_request *request, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf kept = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = NULL;
    char id[UUID_TEXT_MAX];

    path = aq_format("%s/%s", cluster->path, uuid_format(&s->id, id));
    if (request->is_found && s->member_count > 0)
        return 0;
    if (request->is_found && fs_read(AT_FDCWD, path, LIST_MAX, &kept, NULL) == 0
        && cluster_session_take(cluster, s, kept.data, NULL) == 0)
        return 0;
    return cluster_session_replace(cluster, s, request->network, err);
}

int cluster_open(struct cluster_networks *cluster, const struct cluster_request *request,
                 struct cluster_member **ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) struct cluster_member *m = NULL;
    int r;

    if (cluster->mode == CLUSTER_NONE)
        return aq_fail_as(err, ENOTSUP, "no-cluster-network", "network",
                          "this node has no network to other nodes: %.200s; there, 'aliquot-agent "
                          "doctor' says what to do",
                          cluster->note);
    m = aq_alloc(sizeof(*m));
    m->cluster = cluster;
    (void)snprintf(m->hostname, sizeof(m->hostname), "%s", request->hostname);
    m->session = cluster_add_session(cluster, &request->session_id);
    r = cluster_session_load(cluster, m->session, request, err);
    if (r == 0)
        r = cluster_member_find_address(m, err);
    if (r < 0) {
        cluster_session_release(cluster, m->session);
        return r;
    }
    m->session->member_count++;
    list_add(&cluster->members, &m->link);
    *ret = AQ_TAKE(m);
    cluster_change(cluster);
    return 0;
}

void cluster_join(struct cluster_member *m, struct net_endpoint *endpoint, net_fn *fn, void *data)
{
    m->endpoint = endpoint;
    m->fn = fn;
    m->data = data;
    m->state = MEMBER_JOINING;
    cluster_member_write_hosts(m);
    cluster_change(m->cluster);
    m->version = m->cluster->wanted;
}

void cluster_adopt(struct cluster_member *m, struct net_endpoint *endpoint)
{
    m->endpoint = endpoint;
    m->state = MEMBER_READY;
    cluster_member_write_hosts(m);
    cluster_change(m->cluster);
}

void cluster_member_end(struct cluster_member *m, const struct aq_error *err)
{
    m->state = err ? MEMBER_FAILED : MEMBER_READY;
    if (!m->cluster->is_freed)
        m->fn(m->data, err);
}

static void cluster_member_free(struct cluster_member *m)
{
    struct cluster_session *s = m->session;

    s->member_count--;
    list_remove(&m->link);
    free(m);
}

void cluster_close(struct cluster_member *m)
{
    struct cluster_networks *cluster;
    struct cluster_session *s;

    if (!m)
        return;
    cluster = m->cluster;
    s = m->session;
    cluster_member_free(m);
    cluster_session_release(cluster, s);
    cluster_change(cluster);
}

void cluster_leave(struct cluster_member *m)
{
    if (!m)
        return;
    m->cluster->left++;
    cluster_member_free(m);
}

void cluster_sweep(struct cluster_networks *cluster)
{
    if (!list_is_empty(&cluster->members) || cluster->is_writing)
        cluster_change(cluster);
    else
        cluster_setup_remove(cluster->net->directory.path, cluster->net->directory.tag);
}

/* ---- its life ---- */

const char *cluster_get_offer(const struct cluster_networks *cluster)
{
    return cluster->offer;
}

const char *cluster_get_note(const struct cluster_networks *cluster)
{
    return cluster->note[0] ? cluster->note : NULL;
}

/* Loads the peers that the agent's previous process received: the manager may be unreachable now.
 */
static void cluster_load_peers(struct cluster_networks *cluster)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/" PEERS, cluster->path);

    if (fs_read(AT_FDCWD, path, LIST_MAX, &text, NULL) == 0)
        (void)cluster_take_peers(cluster, text.data, NULL);
}

int cluster_new(struct net *net, const struct cluster_settings *settings,
                void (*on_reach)(void *data), void *data, struct cluster_networks **ret,
                struct aq_error *err)
{
    struct cluster_networks *cluster = aq_alloc(sizeof(*cluster));
    int r;

    cluster->net = net;
    cluster->on_reach = on_reach;
    cluster->data = data;
    cluster->socket = -1;
    cluster->timer.data = cluster->poll.data = cluster;
    strbuf_init(&cluster->written.rules);
    strbuf_init(&cluster->written.wireguard);
    list_init(&cluster->sessions);
    list_init(&cluster->members);
    (void)snprintf(cluster->id, sizeof(cluster->id), "%s", settings->id);
    (void)snprintf(cluster->path, sizeof(cluster->path), "%s/" CLUSTER_DIRECTORY,
                   net->directory.path);
    (void)uv_timer_init(net->loop, &cluster->timer);
    net->jobs++;
    r = cluster_offer_find(cluster, settings, err);
    if (r < 0) {
        cluster_free(cluster);
        return r;
    }
    cluster_load_peers(cluster);
    *ret = cluster;
    return 0;
}

static void cluster_on_timer_closed(uv_handle_t *handle)
{
    struct cluster_networks *cluster = handle->data;
    struct net *net = cluster->net;

    LIST_FOREACH(it, &cluster->members)
        cluster_member_free(LIST_ENTRY(it, struct cluster_member, link));
    LIST_FOREACH(it, &cluster->sessions)
        cluster_session_free(LIST_ENTRY(it, struct cluster_session, link));
    aq_closep(&cluster->socket);
    if (!cluster->left) {
        cluster_setup_remove(net->directory.path, net->directory.tag);
        cluster_offer_release(cluster);
    }
    arena_done(&cluster->peers_arena);
    strbuf_done(&cluster->written.rules);
    strbuf_done(&cluster->written.wireguard);
    free(cluster->reach);
    free(cluster->offer);
    free(cluster);
    net_job_ended(net);
}

static void cluster_on_poll_closed(uv_handle_t *handle)
{
    struct cluster_networks *cluster = handle->data;

    uv_close((uv_handle_t *)&cluster->timer, cluster_on_timer_closed);
}

static void cluster_destroy(struct cluster_networks *cluster)
{
    if (cluster->socket >= 0)
        uv_close((uv_handle_t *)&cluster->poll, cluster_on_poll_closed);
    else
        uv_close((uv_handle_t *)&cluster->timer, cluster_on_timer_closed);
}

void cluster_job_ended(struct cluster_networks *cluster)
{
    if (cluster->is_freed)
        cluster_destroy(cluster);
}

void cluster_free(struct cluster_networks *cluster)
{
    if (!cluster)
        return;
    cluster->is_freed = true;
    if (!cluster->is_writing)
        cluster_destroy(cluster);
}
