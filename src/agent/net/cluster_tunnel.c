/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_tunnel.c - the device through which the cluster namespaces of agents reach each other */
#include "agent/net/cluster_tunnel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/net/netns.h"
#include "agent/net/rtnl.h"
#include "agent/net/wireguard_go.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/program.h"

#define WG "/usr/bin/wg"
#define WG_MSEC 10000

static void cluster_tunnel_name(const char *tag, char name[IF_NAMESIZE])
{
    (void)snprintf(name, IF_NAMESIZE, "aqw%s", tag);
}

/* ---- modes ---- */

static int cluster_tunnel_check_tools(struct aq_error *err)
{
    return access(WG, X_OK) < 0 ? aq_fail(err, ENOENT,
                                          "the program wg is missing; install the package "
                                          "wireguard-tools")
                                : 0;
}

static int cluster_tunnel_check_kernel(const char *tag, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int nl = -1;
    char name[IF_NAMESIZE];
    int r = rtnl_open(&nl, err);

    (void)snprintf(name, sizeof(name), "aqt%s", tag);
    if (r == 0)
        r = rtnl_add_wireguard(nl, name, err);
    if (r == -EEXIST) /* of an agent that was killed here */
        r = 0;
    if (r == 0)
        (void)rtnl_delete_link(nl, name, NULL);
    if (r == -EOPNOTSUPP)
        r = aq_fail(err, EOPNOTSUPP, "the Linux kernel of this node has no module wireguard");
    return r == 0 ? cluster_tunnel_check_tools(err) : r;
}

int cluster_tunnel_check_mode(enum cluster_mode mode, const char *tag, struct aq_error *err)
{
    int r = 0;

    if (mode == CLUSTER_WIREGUARD)
        r = cluster_tunnel_check_kernel(tag, err);
    if (mode == CLUSTER_WIREGUARD_GO)
        r = wireguard_go_check(err);
    if (mode == CLUSTER_WIREGUARD_GO && r == 0)
        r = cluster_tunnel_check_tools(err);
    return r;
}

enum cluster_mode cluster_tunnel_find_mode(const char *tag, struct aq_error *err)
{
    struct aq_error kernel = { 0 }, daemon = { 0 };

    if (cluster_tunnel_check_mode(CLUSTER_WIREGUARD, tag, &kernel) == 0)
        return CLUSTER_WIREGUARD;
    if (cluster_tunnel_check_mode(CLUSTER_WIREGUARD_GO, tag, &daemon) == 0) {
        (void)aq_fail(err, kernel.code, "%.150s; wireguard-go is slower", kernel.text);
        return CLUSTER_WIREGUARD_GO;
    }
    (void)aq_fail(err, daemon.code, "%.150s; %.150s", kernel.text, daemon.text);
    return CLUSTER_NONE;
}

/* ---- the device ---- */

/* Create it in the node's namespace, which is this thread's. */
static int cluster_tunnel_create(const struct cluster_plan *plan, int nl, const char *name,
                                 struct aq_error *err)
{
    uint8_t mac[6];
    const struct rtnl_vxlan vxlan = {
        .name = name, .mac = mac, .vni = CLUSTER_VNI, .local = plan->local, .port = plan->port
    };

    if (plan->mode == CLUSTER_WIREGUARD_GO)
        return wireguard_go_start(name, plan->path, err);
    if (plan->mode == CLUSTER_WIREGUARD)
        return rtnl_add_wireguard(nl, name, err);
    cluster_plan_make_mac(plan->id, mac);
    return rtnl_add_vxlan(nl, &vxlan, err);
}

/* From the node's namespace into the cluster namespace. */
static int cluster_tunnel_bring(const struct cluster_plan *plan, int ns, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int node = -1;
    char name[IF_NAMESIZE];
    uint32_t index;
    int r = rtnl_open(&node, err);

    cluster_tunnel_name(plan->tag, name);
    if (r < 0)
        return r;
    /* a device that was not moved is a killed agent's, perhaps of another mode */
    cluster_tunnel_remove(plan->tag);
    r = cluster_tunnel_create(plan, node, name, err);
    AQ_FAULT("agent.cluster.device");
    if (r == 0)
        r = rtnl_get_index(node, name, &index, err);
    if (r == 0)
        r = rtnl_move_link(node, index, ns, CLUSTER_DEVICE, err);
    AQ_FAULT("agent.cluster.moved");
    return r;
}

/* The agent's previous process may have used another mode. */
static bool cluster_tunnel_is_alive(const struct cluster_plan *plan, int nl, uint32_t *ret_index)
{
    const char *kind = plan->mode == CLUSTER_WIREGUARD_GO ? "tun"
                                                          : cluster_plan_mode_name(plan->mode);
    struct rtnl_link link;
    char name[IF_NAMESIZE];

    cluster_tunnel_name(plan->tag, name);
    if (rtnl_get_link(nl, CLUSTER_DEVICE, &link, NULL) < 0)
        return false;
    *ret_index = link.index;
    return strcmp(link.kind, kind) == 0
           && (plan->mode != CLUSTER_WIREGUARD_GO || wireguard_go_is_alive(name));
}

int cluster_tunnel_ensure(const struct cluster_plan *plan, int ns, int nl, bool *ret_new,
                          struct aq_error *err)
{
    uint32_t index;
    int r = 0;

    wireguard_go_trim_log(plan->path);
    *ret_new = !cluster_tunnel_is_alive(plan, nl, &index);
    if (*ret_new) {
        (void)rtnl_delete_link(nl, CLUSTER_DEVICE, NULL);
        r = cluster_tunnel_bring(plan, ns, err);
        if (r == 0)
            r = rtnl_get_index(nl, CLUSTER_DEVICE, &index, err);
    }
    if (r == 0)
        r = rtnl_set_mtu(nl, index, plan->mtu, err);
    return r < 0 ? r : rtnl_set_up(nl, index, err);
}

/* ---- its configuration ---- */

struct tunnel_configuration {
    const char *device, *path;
};

static int cluster_tunnel_run_wg(const void *data, struct aq_error *err)
{
    const struct tunnel_configuration *c = data;
    char *argv[] = { (char *)WG, (char *)"syncconf", (char *)c->device, (char *)c->path, NULL };

    return program_run(argv, NULL, WG_MSEC, NULL, err);
}

int cluster_tunnel_configure(const struct cluster_plan *plan, int ns, const char *text,
                             struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *path = aq_format("%s/wireguard.conf", plan->path);
    char name[IF_NAMESIZE];
    struct tunnel_configuration c = { .device = CLUSTER_DEVICE, .path = path };
    int r = fs_write_quick(AT_FDCWD, path, text, strlen(text), 0600, err);

    if (r < 0)
        return r;
    cluster_tunnel_name(plan->tag, name);
    if (plan->mode == CLUSTER_WIREGUARD_GO) { /* wg finds the daemon by its socket, in any
                                                 namespace */
        c.device = name;
        r = cluster_tunnel_run_wg(&c, err);
    } else {
        r = netns_run(ns, cluster_tunnel_run_wg, &c, err);
    }
    (void)unlink(path);
    AQ_FAULT("agent.cluster.configured");
    return r;
}

void cluster_tunnel_remove(const char *tag)
{
    AQ_CLEANUP(aq_closep) int nl = -1;
    char name[IF_NAMESIZE];

    cluster_tunnel_name(tag, name);
    wireguard_go_stop(name);
    if (rtnl_open(&nl, NULL) == 0)
        (void)rtnl_delete_link(nl, name, NULL);
}
