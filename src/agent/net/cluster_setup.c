/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_setup.c - brings the cluster namespace of this agent to what a plan says */
#include "agent/net/cluster_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/net/cluster.h"
#include "agent/net/cluster_routes.h"
#include "agent/net/cluster_tunnel.h"
#include "agent/net/endpoint_setup.h"
#include "agent/net/netns.h"
#include "agent/net/nft.h"
#include "agent/net/rtnl.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/vec.h"

/* ---- the namespace ---- */

static int cluster_setup_open_route_socket(const void *data, struct aq_error *err)
{
    return rtnl_open(*(int *const *)data, err);
}

static int cluster_setup_forward(const void *data, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open("/proc/sys/net/ipv4/ip_forward", O_WRONLY | O_CLOEXEC);

    (void)data;
    return fd < 0 || write(fd, "1", 1) != 1 ? aq_fail_errno(err, "switch forwarding on") : 0;
}

static int cluster_setup_create(const char *directory, int *ret, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/ns", directory);
    AQ_CLEANUP(aq_freep) char *sys = aq_format("%s/sys", directory);
    AQ_CLEANUP(aq_closep) int ns = -1, nl = -1;
    int r = fs_mkdirs(directory, 0700, err);

    if (r == 0) /* a pair that a killed agent left half set up */
        r = netns_remove(path, sys, err);
    if (r == 0)
        r = netns_create(path, sys, &ns, &nl, err);
    AQ_FAULT("agent.cluster.namespace");
    if (r == 0)
        r = netns_run(ns, cluster_setup_forward, NULL, err);
    if (r == 0)
        *ret = AQ_TAKE_FD(ns);
    return r;
}

static int cluster_setup_open(const char *directory, int *ret, int *ret_nl, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/ns", directory);
    AQ_CLEANUP(aq_closep) int ns = -1;
    int r = 0;

    if (endpoint_setup_has_namespace(directory)) {
        ns = open(path, O_RDONLY | O_CLOEXEC);
        r = ns < 0 ? aq_fail_errno(err, "open '%s'", path) : 0;
    } else {
        r = cluster_setup_create(directory, &ns, err);
    }
    if (r == 0)
        r = netns_run(ns, cluster_setup_open_route_socket, &ret_nl, err);
    if (r == 0)
        *ret = AQ_TAKE_FD(ns);
    return r;
}

/* ---- kernels ---- */

/* In the kernel's namespace. */
static int cluster_setup_set_inside(const void *data, struct aq_error *err)
{
    const struct cluster_join *join = data;
    const struct rtnl_route route = { .first = join->subnet.first,
                                      .bits = join->subnet.bits,
                                      .gateway = CLUSTER_GATEWAY };
    AQ_CLEANUP(aq_closep) int nl = -1;
    uint32_t index;
    int r = rtnl_open(&nl, err);

    if (r == 0)
        r = rtnl_get_index(nl, CLUSTER_INTERFACE, &index, err);
    if (r == 0)
        r = rtnl_set_up(nl, index, err);
    if (r == 0)
        r = rtnl_add_address(nl, index, join->address, CLUSTER_GATEWAY, err);
    return r < 0 ? r : rtnl_put_route(nl, index, &route, err);
}

/* The outer end is set up last: a link that is up is whole. */
static int cluster_setup_join(int nl, const struct cluster_join *join, uint32_t mtu,
                              struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int kernel = open(join->namespace_path, O_RDONLY | O_CLOEXEC);
    uint32_t index;
    int r;

    if (kernel < 0)
        return aq_fail_errno(err, "open '%s'", join->namespace_path);
    (void)rtnl_delete_link(nl, join->link, NULL);
    r = rtnl_add_veth(nl, join->link, CLUSTER_INTERFACE, kernel, mtu, err);
    AQ_FAULT("agent.cluster.veth");
    if (r == 0)
        r = netns_run(kernel, cluster_setup_set_inside, join, err);
    if (r == 0)
        r = rtnl_get_index(nl, join->link, &index, err);
    if (r == 0)
        r = rtnl_add_address(nl, index, CLUSTER_GATEWAY, join->address, err);
    if (r == 0)
        r = rtnl_set_up(nl, index, err);
    AQ_FAULT("agent.cluster.joined");
    if (r < 0)
        (void)rtnl_delete_link(nl, join->link, NULL);
    return r;
}

struct cluster_links {
    struct rtnl_link *items;
    size_t count, cap;
};

static void cluster_setup_on_link(void *data, const struct rtnl_link *link)
{
    struct cluster_links *links = data;

    if (strncmp(link->name, CLUSTER_LINK_PREFIX, strlen(CLUSTER_LINK_PREFIX)) != 0)
        return;
    vec_grow(&links->items, &links->cap, links->count + 1, sizeof(*links->items));
    links->items[links->count++] = *link;
}

static bool cluster_setup_is_joined(struct cluster_links *links, const char *name)
{
    for (size_t i = 0; i < links->count; i++)
        if (strcmp(links->items[i].name, name) == 0) {
            links->items[i].name[0] = '\0'; /* leftovers are removed */
            return links->items[i].is_up;
        }
    return false;
}

static int cluster_setup_join_all(struct cluster_plan *plan, int nl, struct aq_error *err)
{
    struct cluster_links links = { .count = 0 };
    int r = rtnl_each_link(nl, cluster_setup_on_link, &links, err);

    for (size_t i = 0; r == 0 && i < plan->join_count; i++) {
        struct cluster_join *join = &plan->joins[i];

        if (!cluster_setup_is_joined(&links, join->link))
            (void)cluster_setup_join(nl, join, plan->mtu, &join->err);
    }
    for (size_t i = 0; r == 0 && i < links.count; i++)
        if (links.items[i].name[0])
            (void)rtnl_delete_link(nl, links.items[i].name, NULL);
    free(links.items);
    return r;
}

/* ---- all of it ---- */

static int cluster_setup_run_nft(const void *data, struct aq_error *err)
{
    return nft_run(data, err);
}

static int cluster_setup_write_rules(const struct cluster_plan *plan, int ns,
                                     struct strbuf *written, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    cluster_plan_add_rules(plan, &text);
    if (written->len && strcmp(written->data, text.data) == 0)
        return 0;
    strbuf_clear(written);
    r = netns_run(ns, cluster_setup_run_nft, text.data, err);
    AQ_FAULT("agent.cluster.rules");
    if (r == 0)
        AQ_SWAP(*written, text);
    return r;
}

static int cluster_setup_write_peers(const struct cluster_plan *plan, int ns,
                                     struct strbuf *written, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r;

    if (plan->mode == CLUSTER_VXLAN)
        return 0;
    cluster_plan_add_wireguard(plan, &text);
    if (written->len && strcmp(written->data, text.data) == 0)
        return 0;
    strbuf_clear(written);
    r = cluster_tunnel_configure(plan, ns, text.data, err);
    if (r == 0)
        AQ_SWAP(*written, text);
    return r;
}

int cluster_setup_apply(struct cluster_plan *plan, struct cluster_written *written, int *ret_ns,
                        struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int ns = -1, nl = -1;
    bool is_new = false;
    int r;

    *ret_ns = -1;
    if (!endpoint_setup_has_namespace(plan->path))
        strbuf_clear(&written->rules);
    r = cluster_setup_open(plan->path, &ns, &nl, err);
    if (r == 0) /* packets are dropped until the rules are loaded */
        r = cluster_setup_write_rules(plan, ns, &written->rules, err);
    if (r == 0)
        r = cluster_tunnel_ensure(plan, ns, nl, &is_new, err);
    if (is_new)
        strbuf_clear(&written->wireguard);
    if (r == 0)
        r = cluster_setup_write_peers(plan, ns, &written->wireguard, err);
    if (r == 0)
        r = cluster_routes_write(plan, nl, err);
    AQ_FAULT("agent.cluster.routes");
    if (r == 0)
        r = cluster_setup_join_all(plan, nl, err);
    if (ns >= 0)
        *ret_ns = AQ_TAKE_FD(ns);
    return r;
}

void cluster_setup_remove(const char *directory, const char *tag)
{
    AQ_CLEANUP(aq_freep) char *own = aq_format("%s/" CLUSTER_DIRECTORY, directory);
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/ns", own);
    AQ_CLEANUP(aq_freep) char *sys = aq_format("%s/sys", own);
    struct aq_error err = { 0 };
    int r;

    if (access(own, F_OK) < 0)
        return;
    cluster_tunnel_remove(tag);
    AQ_FAULT("agent.cluster.stopped");
    r = netns_remove(path, sys, &err);
    AQ_FAULT("agent.cluster.namespace.removed");
    if (r == 0)
        r = fs_remove_tree(AT_FDCWD, own, &err);
    if (r < 0)
        log_warning("failed to remove the network between nodes '%s': %s", own, err.text);
}
