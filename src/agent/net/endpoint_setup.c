/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint_setup.c - creates and removes one endpoint; blocking, for worker threads */
#include "agent/net/endpoint_setup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/net/netns.h"
#include "agent/net/nft.h"
#include "agent/net/rtnl.h"
#include "agent/net/nft_rules.h"
#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"

void endpoint_plan_done(struct endpoint_plan *plan)
{
    strbuf_done(&plan->record);
    strbuf_done(&plan->hosts);
}

static int net_work_write_setting(const char *family, const char *link, const char *name,
                                  const char *value, struct aq_error *err)
{
    char path[128];
    AQ_CLEANUP(aq_closep) int fd = -1;

    (void)snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, link, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, value, strlen(value)) < 0)
        return aq_fail_errno(err, "write '%s'", path);
    return 0;
}

/* The node's end: it forwards, has no IPv6, and routes the kernel's address. */
static int endpoint_setup_set_outside(const struct endpoint_plan *plan, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int nl = -1;
    uint32_t index;
    int r = rtnl_open(&nl, err);

    (void)net_work_write_setting("ipv6", plan->link, "disable_ipv6", "1",
                                 NULL); /* there may be none */
    if (r == 0)
        r = net_work_write_setting("ipv4", plan->link, "forwarding", "1", err);
    if (r == 0)
        r = rtnl_get_index(nl, plan->link, &index, err);
    if (r == 0)
        r = rtnl_set_up(nl, index, err);
    return r < 0 ? r : rtnl_add_address(nl, index, plan->gateway, plan->address, err);
}

static int endpoint_setup_set_inside(const struct endpoint_plan *plan, int nl, struct aq_error *err)
{
    uint32_t index;
    int r = rtnl_get_index(nl, "lo", &index, err);

    if (r == 0)
        r = rtnl_set_up(nl, index, err);
    if (r == 0)
        r = rtnl_get_index(nl, NET_INTERFACE, &index, err);
    if (r == 0)
        r = rtnl_set_up(nl, index, err);
    if (r == 0)
        r = rtnl_add_address(nl, index, plan->address, plan->gateway, err);
    return r < 0 ? r : rtnl_add_default_route(nl, index, plan->gateway, err);
}

static int net_work_join(const struct endpoint_plan *plan, int ns, int inside, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int nl = -1;
    int r = rtnl_open(&nl, err);

    if (r == 0)
        r = rtnl_add_veth(nl, plan->link, NET_INTERFACE, ns, plan->mtu, err);
    AQ_FAULT("agent.net.veth");
    if (r == 0)
        r = endpoint_setup_set_inside(plan, inside, err);
    return r < 0 ? r : endpoint_setup_set_outside(plan, err);
}

/* In the kernel's namespace. */
static int endpoint_setup_add_loopback(const void *data, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf commands = STRBUF_INIT;
    const struct endpoint_plan *plan = data;
    int r = net_work_write_setting("ipv4", NET_INTERFACE, "route_localnet", "1", err);

    nft_rules_add_loopback(&commands, NET_INTERFACE, plan->ports, plan->port_count);
    return r < 0 ? r : nft_run(commands.data, err);
}

/* In the kernel's namespace. */
static int endpoint_setup_close(const void *data, struct aq_error *err)
{
    (void)data;
    return nft_run(nft_rules_closed, err);
}

/* Programs that listen on loopback alone, as notebooks do, are published like others. */
static void endpoint_setup_publish_loopback(const struct endpoint_plan *plan, int ns)
{
    struct aq_error err = { 0 };

    if (plan->port_count && netns_run(ns, endpoint_setup_add_loopback, plan, &err) < 0)
        log_warning("what listens on 127.0.0.1 in a container is not published: %s", err.text);
    AQ_FAULT("agent.net.loopback");
}

static int endpoint_setup_write_files(const struct endpoint_plan *plan, int directory,
                                      struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf resolv = STRBUF_INIT;
    int r;

    dns_files_add_resolv(&resolv, &plan->servers);
    r = fs_write_quick(directory, "resolv.conf", resolv.data, resolv.len, 0644, err);
    return r < 0 ? r
                 : fs_write_quick(directory, "hosts", plan->hosts.data, plan->hosts.len, 0644, err);
}

/* The record comes last: an endpoint that has one is whole. */
static int net_work_build(const struct endpoint_plan *plan, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int inside = -1;
    AQ_CLEANUP(aq_closep) int directory = open(plan->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int ns = -1;
    char path[NET_PATH_MAX], sys[NET_PATH_MAX];
    int r;

    if (directory < 0)
        return aq_fail_errno(err, "open '%s'", plan->directory);
    r = endpoint_setup_write_files(plan, directory, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "%s/ns", plan->directory);
    (void)snprintf(sys, sizeof(sys), "%s/sys", plan->directory);
    r = netns_create(path, sys, &ns, &inside, err);
    AQ_FAULT("agent.net.namespace");
    if (r == 0)
        r = net_work_join(plan, ns, inside, err);
    AQ_FAULT("agent.net.joined");
    if (r == 0 && plan->is_closed)
        r = netns_run(ns, endpoint_setup_close, NULL, err);
    if (r == 0)
        endpoint_setup_publish_loopback(plan, ns);
    return r < 0 ? r
                 : fs_write_quick(directory, "record", plan->record.data, plan->record.len, 0600,
                                  err);
}

int endpoint_setup_create(const struct endpoint_plan *plan, struct aq_error *err)
{
    int r;

    if (mkdir(plan->directory, 0711) < 0)
        return aq_fail_errno(err, "make '%s'", plan->directory);
    r = net_work_build(plan, err);
    if (r < 0)
        (void)endpoint_setup_remove(plan->directory, plan->link, NULL);
    AQ_FAULT("agent.net.opened");
    return r;
}

int endpoint_setup_remove(const char *directory, const char *link, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int nl = -1;
    struct aq_error later = { 0 };
    char path[NET_PATH_MAX], sys[NET_PATH_MAX];
    int first = link ? rtnl_open(&nl, err) : 0, r;

    if (first == 0 && link) {
        first = rtnl_delete_link(nl, link, err);
        if (first == -ENODEV)
            first = 0;
    }
    AQ_FAULT("agent.net.unlinked");
    (void)snprintf(path, sizeof(path), "%s/ns", directory);
    (void)snprintf(sys, sizeof(sys), "%s/sys", directory);
    r = netns_remove(path, sys, &later);
    AQ_FAULT("agent.net.namespace.removed");
    if (r == 0)
        r = fs_remove_tree(AT_FDCWD, directory, &later);
    if (first == 0 && r < 0)
        first = aq_fail(err, later.code, "%s", later.text);
    return first;
}

bool endpoint_setup_has_namespace(const char *directory)
{
    char path[NET_PATH_MAX];
    struct statfs fs;

    (void)snprintf(path, sizeof(path), "%s/ns", directory);
    return statfs(path, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

int endpoint_setup_rewrite(const char *path, const char *text, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW);

    if (fd < 0)
        return aq_fail_errno(err, "open '%s'", path);
    return fs_write_all(fd, text, strlen(text)) < 0 ? aq_fail_errno(err, "write '%s'", path) : 0;
}
