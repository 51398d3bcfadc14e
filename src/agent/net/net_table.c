/* SPDX-License-Identifier: Apache-2.0 */
/* net_table.c - the sets of the table, and hosts files, follow what is open
 *
 * Changes of endpoints ask for a new version; one write is under way at a
 * time, and writes the whole of what is wanted when it begins. A kernel alone
 * in its session and without published ports needs none. What comes after the
 * text that was written last is added alone: to flush a set first takes the
 * kernel four times as long, and starts of containers wait for it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/net/net_internal.h"
#include "agent/net/nft.h"
#include "agent/net/endpoint_setup.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

struct hosts_file {
    char path[NET_PATH_MAX];
    struct strbuf text;
};

struct table_write {
    uv_work_t work;
    struct net *net;
    uint64_t version;
    struct strbuf commands; /* all of them */
    size_t first;           /* from here on they are new */
    struct hosts_file *hosts;
    size_t host_count, host_cap;
    struct aq_error err;
};

static uint32_t net_table_address_of(const struct net_endpoint *e)
{
    return pool_address(&e->net->pool, e->record.number);
}

static bool net_table_are_mates(const struct net_endpoint *a, const struct net_endpoint *b)
{
    return a != b && uuid_equals(&a->record.session_id, &b->record.session_id)
           && endpoint_is_listed(b);
}

bool net_has_peers(const struct net_endpoint *endpoint)
{
    LIST_FOREACH(it, &endpoint->net->endpoints)
        if (net_table_are_mates(endpoint, LIST_ENTRY(it, struct net_endpoint, link)))
            return true;
    return false;
}

void net_hosts_add(const struct net_endpoint *endpoint, struct strbuf *out)
{
    dns_files_add_localhost(out);
    if (endpoint->cluster_hosts) {
        strbuf_adds(out, endpoint->cluster_hosts);
        return;
    }
    dns_files_add_host(out, net_table_address_of(endpoint), endpoint->record.hostname);
    LIST_FOREACH(it, &endpoint->net->endpoints) {
        const struct net_endpoint *other = LIST_ENTRY(it, struct net_endpoint, link);

        if (net_table_are_mates(endpoint, other))
            dns_files_add_host(out, net_table_address_of(other), other->record.hostname);
    }
}

/* ---- what the table ought to be ---- */

struct lists {
    struct nft_rules_published *published;
    size_t published_count, published_cap;
    struct nft_rules_peers *peers;
    size_t peers_count, peers_cap;
};

static void net_table_add_ports(struct lists *lists, const struct net_endpoint *e)
{
    for (size_t i = 0; i < e->record.port_count; i++) {
        vec_grow(&lists->published, &lists->published_cap, lists->published_count + 1,
                 sizeof(*lists->published));
        lists->published[lists->published_count++] = (struct nft_rules_published){
            .outside = e->record.ports[i].outside,
            .inside = e->record.ports[i].inside,
            .address = net_table_address_of(e),
        };
    }
}

/* Each pair once: with those that come later in the list. */
static void net_table_add_mates(struct lists *lists, const struct net_endpoint *e)
{
    for (struct list *it = e->link.next; it != &e->net->endpoints; it = it->next) {
        const struct net_endpoint *other = LIST_ENTRY(it, struct net_endpoint, link);

        if (!net_table_are_mates(e, other))
            continue;
        vec_grow(&lists->peers, &lists->peers_cap, lists->peers_count + 1, sizeof(*lists->peers));
        lists->peers[lists->peers_count++] = (struct nft_rules_peers){
            net_table_address_of(e), net_table_address_of(other)
        };
    }
}

void net_table_add_sets(struct net *net, struct strbuf *out)
{
    struct lists lists = { .published = NULL };

    LIST_FOREACH(it, &net->endpoints) {
        const struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);

        if (!endpoint_is_listed(e))
            continue;
        net_table_add_ports(&lists, e);
        net_table_add_mates(&lists, e);
    }
    nft_rules_add_sets(out, net->directory.tag,
                       &(struct nft_rules_sets){
                           .dns = net->servers.addresses,
                           .dns_count = net->servers.count,
                           .denied = net->denied,
                           .denied_count = net->denied_count,
                           .allowed = net->allowed,
                           .allowed_count = net->allowed_count,
                           .registries = net->registries,
                           .registries_count = net->registries_count,
                           .published = lists.published,
                           .published_count = lists.published_count,
                           .peers = lists.peers,
                           .peers_count = lists.peers_count,
                       });
    free(lists.published);
    free(lists.peers);
}

/* ---- writing it ---- */

static void net_table_write_free(struct table_write *w)
{
    for (size_t i = 0; i < w->host_count; i++)
        strbuf_done(&w->hosts[i].text);
    free(w->hosts);
    strbuf_done(&w->commands);
    free(w);
}

static void net_table_on_work(uv_work_t *work)
{
    struct table_write *w = work->data;

    for (size_t i = 0; i < w->host_count; i++)
        (void)endpoint_setup_rewrite(w->hosts[i].path, w->hosts[i].text.data, NULL);
    AQ_FAULT("agent.net.table.before");
    if (w->first < w->commands.len)
        (void)nft_run(w->commands.data + w->first, &w->err);
    AQ_FAULT("agent.net.table.written");
}

static void net_table_tell(struct net *net, const struct aq_error *err)
{
    LIST_FOREACH(it, &net->endpoints) {
        struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);

        if ((e->state == ENDPOINT_LISTING || e->state == ENDPOINT_UNLISTING)
            && e->listed <= net->current)
            net_endpoint_listed(e, err);
    }
}

static void net_table_on_written(uv_work_t *work, int status)
{
    struct table_write *w = work->data;
    struct net *net = w->net;

    (void)status;
    if (w->err.code)
        log_error("the network's table cannot be changed: %s", w->err.text);
    net->is_writing = false;
    net->current = w->version;
    strbuf_done(&net->written);
    if (!w->err.code) {
        net->written = w->commands;
        strbuf_init(&w->commands);
    }
    net_table_tell(net, w->err.code ? &w->err : NULL);
    net_table_write_free(w);
    if (net->wanted > net->current)
        net_table_update(net);
    net_job_ended(net);
}

static void net_table_add_hosts(struct table_write *w, const struct net_endpoint *e)
{
    struct hosts_file *file;

    vec_grow(&w->hosts, &w->host_cap, w->host_count + 1, sizeof(*w->hosts));
    file = &w->hosts[w->host_count++];
    *file = (struct hosts_file){ .text = STRBUF_INIT };
    (void)snprintf(file->path, sizeof(file->path), "%s", e->info.hosts_path);
    net_hosts_add(e, &file->text);
}

static struct table_write *net_table_write_new(struct net *net)
{
    struct table_write *w = aq_alloc(sizeof(*w));

    strbuf_init(&w->commands);
    w->work.data = w;
    w->net = net;
    w->version = net->wanted;
    net_table_add_sets(net, &w->commands);
    if (net->written.len <= w->commands.len
        && memcmp(w->commands.data, net->written.data, net->written.len) == 0)
        w->first = net->written.len;
    LIST_FOREACH(it, &net->endpoints) {
        const struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);

        /* cluster sessions only: others have what they had from the start */
        if (endpoint_is_listed(e) && e->record.has_peers)
            net_table_add_hosts(w, e);
    }
    return w;
}

void net_table_update(struct net *net)
{
    struct table_write *w;

    if (net->is_writing)
        return;
    w = net_table_write_new(net);
    (void)uv_queue_work(net->loop, &w->work, net_table_on_work, net_table_on_written);
    net->is_writing = true;
    net->jobs++;
}
