/* SPDX-License-Identifier: Apache-2.0 */
/* net_start.c - what net_new() does: read the settings, find what is there, set the table up */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/net/forwarding.h"
#include "agent/net/net_internal.h"
#include "agent/net/nft.h"
#include "agent/net/rtnl.h"
#include "agent/net/endpoint_setup.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

#define MTU_USUAL 1500
#define RECORD_MAX 8192

/* ---- settings ---- */

static size_t net_start_count(const char *const *list)
{
    size_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

/* What no kernel may reach: this network, loopback, link-local with the
 * metadata services of clouds, other kernels, multicast and the rest.
 */
static int net_start_read_denied(struct net *net, const char *const *texts, struct aq_error *err)
{
    static const char *const usual[] = { "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16",
                                         "224.0.0.0/4", "240.0.0.0/4" };
    size_t more = net_start_count(texts);
    int r = 0;

    net->denied = aq_alloc_array(AQ_COUNT(usual) + 1 + more, sizeof(*net->denied));
    net->denied_cap = AQ_COUNT(usual) + 1 + more;
    for (size_t i = 0; r == 0 && i < AQ_COUNT(usual); i++)
        r = range_parse(usual[i], &net->denied[net->denied_count++], err);
    net->denied[net->denied_count++] = net->whole;
    for (size_t i = 0; r == 0 && i < more; i++)
        r = range_parse(texts[i], &net->denied[net->denied_count++], err);
    return r < 0 ? aq_error_wrap(err, "deny") : 0;
}

static int net_start_read_allowed(struct net *net, const char *const *texts, struct aq_error *err)
{
    size_t number = net_start_count(texts);
    int r = 0;

    net->allowed = aq_alloc_array(number + 1, sizeof(*net->allowed));
    for (size_t i = 0; r == 0 && i < number; i++)
        r = nft_rules_parse_target(texts[i], &net->allowed[net->allowed_count++], err);
    return r < 0 ? aq_error_wrap(err, "allow") : 0;
}

static int net_start_read_servers(struct net *net, const char *const *texts, struct aq_error *err)
{
    size_t number = net_start_count(texts);
    struct range range;
    int r = 0;

    net->has_own_servers = number > 0;
    if (number > DNS_SERVERS_MAX)
        return aq_fail_field(err, EINVAL, "dns", "more than %d name servers", DNS_SERVERS_MAX);
    if (!number)
        dns_files_find_servers(&net->servers);
    for (size_t i = 0; i < number; i++) {
        r = range_parse(texts[i], &range, err);
        if (r < 0 || range.bits != 32)
            return aq_fail_field(err, EINVAL, "dns", "'%s' is no IPv4 address", texts[i]);
        net->servers.addresses[net->servers.count++] = range.first;
    }
    return 0;
}

static int net_start_read_settings(struct net *net, const struct net_settings *s,
                                   struct aq_error *err)
{
    int r = range_parse(s->pool, &net->whole, err);

    net->connections_max = s->connections_max;
    net->tunnel_port = s->tunnel_port;
    if (r == 0)
        r = net_start_read_denied(net, s->denied, err);
    if (r == 0)
        r = net_start_read_allowed(net, s->allowed, err);
    if (r == 0)
        r = net_start_read_servers(net, s->dns, err);
    return r < 0 ? r : ports_init(&net->ports, s->port_min, s->port_max, s->port_rest_usec, err);
}

/* ---- what a former process left ---- */

/* The parts of an endpoint without a record, or that is not whole. */
static void net_start_clear(struct net *net, const char *name)
{
    char path[NET_PATH_MAX];
    struct aq_error err = { 0 };

    (void)snprintf(path, sizeof(path), "%s/%s", net->directory.path, name);
    if (endpoint_setup_remove(path, NULL, &err) < 0)
        log_warning("'%s' is left: %s", path, err.text);
}

static bool net_start_take_again(struct net *net, const struct endpoint_record *record)
{
    if (!pool_take_number(&net->pool, record->number))
        return false;
    for (size_t i = 0; i < record->port_count; i++)
        (void)ports_take_number(&net->ports, record->ports[i].outside);
    return true;
}

static void net_start_on_endpoint(void *data, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) struct net_endpoint *e = aq_alloc(sizeof(*e));
    struct net *net = data;
    char path[NET_PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/record", name);
    *e = (struct net_endpoint){ .net = net, .state = ENDPOINT_FOUND };
    if (uuid_parse(name, &e->kernel_id) < 0
        || fs_read(net->directory.own, path, RECORD_MAX, &text, NULL) < 0
        || endpoint_record_parse(text.data, &e->record, NULL) < 0
        || !net_start_take_again(net, &e->record)) {
        net_start_clear(net, name);
        return;
    }
    net_endpoint_fill_info(e);
    list_add(&net->endpoints, &e->link);
    (void)AQ_TAKE(e);
}

/* Interfaces of ours: those of found endpoints, and others, which go. */
struct links {
    struct net *net;
    struct {
        char name[IF_NAMESIZE];
    } * names;
    size_t count, cap;
};

static void net_start_on_link(void *data, const struct rtnl_link *link)
{
    struct links *links = data;
    char prefix[IF_NAMESIZE];

    (void)snprintf(prefix, sizeof(prefix), "aq%s-", links->net->directory.tag);
    if (strncmp(link->name, prefix, strlen(prefix)) != 0)
        return;
    vec_grow(&links->names, &links->cap, links->count + 1, sizeof(*links->names));
    memcpy(links->names[links->count++].name, link->name, IF_NAMESIZE);
}

static bool net_start_take_link(struct links *links, const char *name)
{
    for (size_t i = 0; i < links->count; i++)
        if (strcmp(links->names[i].name, name) == 0) {
            links->names[i].name[0] = '\0';
            return true;
        }
    return false;
}

/* An endpoint that is not whole cannot be adopted; its container has no
 * network any more, or never had one.
 */
static void net_start_drop_broken(struct net *net, struct links *links)
{
    LIST_FOREACH(it, &net->endpoints) {
        struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);
        char name[IF_NAMESIZE], id[UUID_TEXT_MAX], directory[NET_PATH_MAX];

        net_endpoint_link(e, name);
        net_endpoint_directory(e, directory, sizeof(directory));
        if (net_start_take_link(links, name) && endpoint_setup_has_namespace(directory))
            continue;
        (void)endpoint_setup_remove(directory, name, NULL);
        net_start_clear(net, uuid_format(&e->kernel_id, id));
        for (size_t i = 0; i < e->record.port_count; i++)
            ports_give(&net->ports, e->record.ports[i].outside);
        pool_give(&net->pool, e->record.number);
        list_remove(&e->link);
        free(e);
    }
}

static int net_start_find_endpoints(struct net *net, int nl, struct aq_error *err)
{
    struct links links = { .net = net };
    int r = net_directory_each(&net->directory, net_start_on_endpoint, net);

    if (r < 0)
        return aq_fail(err, -r, "read '%s': %s", net->directory.path, strerror(-r));
    r = rtnl_each_link(nl, net_start_on_link, &links, err);
    if (r == 0) {
        net_start_drop_broken(net, &links);
        for (size_t i = 0; i < links.count; i++)
            if (links.names[i].name[0])
                (void)rtnl_delete_link(nl, links.names[i].name, NULL);
    }
    free(links.names);
    return r;
}

static void net_start_mark_mates(struct net *net)
{
    LIST_FOREACH(it, &net->endpoints) {
        struct net_endpoint *e = LIST_ENTRY(it, struct net_endpoint, link);

        e->record.has_peers = net_has_peers(e);
    }
}

/* ---- the machine ---- */

struct net_start_uplinks {
    uint32_t indexes[NFT_RULES_GUARDED_MAX];
    size_t count;
    char names[NFT_RULES_GUARDED_MAX][IF_NAMESIZE];
    uint32_t mtu; /* the smallest */
};

static void net_start_on_uplink(void *data, const struct rtnl_link *link)
{
    struct net_start_uplinks *uplinks = data;

    for (size_t i = 0; i < uplinks->count; i++)
        if (uplinks->indexes[i] == link->index && strncmp(link->name, "aq", 2) != 0) {
            memcpy(uplinks->names[i], link->name, IF_NAMESIZE);
            uplinks->mtu = uplinks->mtu ? AQ_MIN(uplinks->mtu, link->mtu) : link->mtu;
        }
}

/* All that answers to kernels may come in by. */
static int net_start_find_uplinks(int nl, struct net_start_uplinks *ret, struct aq_error *err)
{
    struct net_start_uplinks found = { .count = 0 };
    int r = rtnl_get_uplinks(nl, found.indexes, AQ_COUNT(found.indexes), &found.count, err);

    if (r == 0)
        r = rtnl_each_link(nl, net_start_on_uplink, &found, err);
    *ret = (struct net_start_uplinks){ .mtu = found.mtu };
    for (size_t i = 0; i < found.count; i++)
        if (found.names[i][0])
            memcpy(ret->names[ret->count++], found.names[i], IF_NAMESIZE);
    return r;
}

/* The table, the guard in it, and only then what it guards. */
static int net_start_set_up_machine(struct net *net, const struct net_start_uplinks *uplinks,
                                    struct strbuf *commands, struct aq_error *err)
{
    struct nft_rules_table table = { .subnet = net->directory.subnet,
                                     .connections_max = net->connections_max,
                                     .pull_group = net_get_pull_group(net),
                                     .tunnel_min = net->tunnel_port,
                                     .tunnel_max = (uint16_t)AQ_MIN(
                                         net->tunnel_port + NET_TUNNEL_PORTS - 1, UINT16_MAX) };
    int r = 0;

    memcpy(table.tag, net->directory.tag, sizeof(table.tag));
    for (size_t i = 0; r >= 0 && i < uplinks->count; i++) {
        r = forwarding_is_ours(net->directory.all, uplinks->names[i], err);
        if (r > 0)
            memcpy(table.guarded[table.guarded_count++], uplinks->names[i], IF_NAMESIZE);
    }
    if (r < 0)
        return r;
    nft_rules_add_table(commands, &table);
    net_table_add_sets(net, commands);
    r = nft_run(commands->data, err);
    if (r == 0)
        net_table_add_sets(net, &net->written);
    AQ_FAULT("agent.net.table.made");
    for (size_t i = 0; r == 0 && i < table.guarded_count; i++)
        r = forwarding_switch_on(net->directory.all, table.guarded[i], err);
    return r;
}

static void net_start_make_note(struct net *net, const struct net_start_uplinks *uplinks)
{
    if (!uplinks->count)
        (void)snprintf(net->note, sizeof(net->note),
                       "this node has no routes: containers reach "
                       "nothing outside of it");
    else if (!net->servers.count)
        (void)snprintf(net->note, sizeof(net->note),
                       "this node's name server can be asked from "
                       "itself only: set [network] dns, or "
                       "containers find no names");
}

int net_start(struct net *net, const struct net_settings *settings, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf commands = STRBUF_INIT;
    AQ_CLEANUP(aq_closep) int nl = -1;
    struct net_start_uplinks uplinks = { .count = 0 };
    int r = net_start_read_settings(net, settings, err);

    if (r < 0)
        return r;
    if (geteuid() != 0)
        return aq_fail(err, EPERM, "networks of containers need an agent that runs as root");
    r = net_directory_open(settings->run_dir, settings->identity, &net->whole, &net->directory,
                           &commands, err);
    if (r == 0)
        r = pool_init(&net->pool, &net->directory.subnet, err);
    if (r == 0)
        r = rtnl_open(&nl, err);
    if (r == 0)
        r = net_start_find_endpoints(net, nl, err);
    if (r == 0)
        r = net_start_find_uplinks(nl, &uplinks, err);
    if (r < 0)
        return r;
    net_start_mark_mates(net);
    net->mtu = uplinks.mtu ? uplinks.mtu : MTU_USUAL;
    net_start_make_note(net, &uplinks);
    return net_start_set_up_machine(net, &uplinks, &commands, err);
}
