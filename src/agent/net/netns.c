/* SPDX-License-Identifier: Apache-2.0 */
/* netns.c - network namespaces kept alive by a file */
#include "agent/net/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/net/rtnl.h"
#include "base/fs.h"

#define OWN_NAMESPACE "/proc/thread-self/ns/net"

/* Of the namespace that the thread is in. What is missing in a kernel does no harm. */
static void netns_write_setting(const char *path, const char *value)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)fs_write_all(fd, value, strlen(value));
}

/* No IPv6 but on lo, ping and low ports without privileges. */
static void netns_set_up(void)
{
    netns_write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    netns_write_setting("/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
    netns_write_setting("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
}

static void netns_leave(int own)
{
    if (setns(own, CLONE_NEWNET) < 0)
        abort(); /* a thread of the agent in a kernel's network must not go on */
}

static int netns_bind_to_file(const char *path, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);

    if (fd < 0)
        return aq_fail_errno(err, "make '%s'", path);
    if (mount(OWN_NAMESPACE, path, NULL, MS_BIND, NULL) < 0) {
        int r = aq_fail_errno(err, "bind a network namespace to '%s'", path);

        (void)unlink(path);
        return r;
    }
    return 0;
}

static int netns_mount_sys(const char *path, struct aq_error *err)
{
    if (mkdir(path, 0555) < 0)
        return aq_fail_errno(err, "make '%s'", path);
    if (mount("sysfs", path, "sysfs", MS_RDONLY | MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) < 0)
        return aq_fail_errno(err, "mount a sysfs at '%s'", path);
    return 0;
}

/* In the new namespace. */
static int netns_fill(const char *path, const char *sys, int *ret, int *ret_nl,
                      struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int ns = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);
    AQ_CLEANUP(aq_closep) int nl = -1;
    int r;

    if (ns < 0)
        return aq_fail_errno(err, "open '%s'", OWN_NAMESPACE);
    netns_set_up();
    r = rtnl_open(&nl, err);
    if (r == 0)
        r = netns_bind_to_file(path, err);
    if (r == 0)
        r = netns_mount_sys(sys, err);
    if (r < 0)
        return r;
    *ret = AQ_TAKE_FD(ns);
    *ret_nl = AQ_TAKE_FD(nl);
    return 0;
}

int netns_create(const char *path, const char *sys, int *ret, int *ret_nl, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int own = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);
    int r;

    if (own < 0)
        return aq_fail_errno(err, "open '%s'", OWN_NAMESPACE);
    if (unshare(CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "make a network namespace");
    r = netns_fill(path, sys, ret, ret_nl, err);
    netns_leave(own);
    return r;
}

int netns_run(int ns, int (*fn)(const void *data, struct aq_error *err), const void *data,
              struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int own = open(OWN_NAMESPACE, O_RDONLY | O_CLOEXEC);
    int r;

    if (own < 0)
        return aq_fail_errno(err, "open '%s'", OWN_NAMESPACE);
    if (setns(ns, CLONE_NEWNET) < 0)
        return aq_fail_errno(err, "enter a network namespace");
    r = fn(data, err);
    netns_leave(own);
    return r;
}

static int netns_unmount(const char *path, struct aq_error *err)
{
    if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
        return aq_fail_errno(err, "unmount '%s'", path);
    return 0;
}

int netns_remove(const char *path, const char *sys, struct aq_error *err)
{
    int r = netns_unmount(sys, err);

    if (r == 0)
        r = netns_unmount(path, err);
    if (r == 0 && rmdir(sys) < 0 && errno != ENOENT)
        r = aq_fail_errno(err, "remove '%s'", sys);
    if (r == 0 && unlink(path) < 0 && errno != ENOENT)
        r = aq_fail_errno(err, "remove '%s'", path);
    return r;
}
