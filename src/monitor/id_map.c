/* SPDX-License-Identifier: Apache-2.0 */
/* id_map.c - a user namespace with the mapping of user and group ids */
#include "monitor/id_map.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_STACK 8192
#define ID_MAP_LINE 48

static int id_map_write_map(pid_t pid, const char *name, const char *map, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char path[48];

    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd < 0 || write(fd, map, strlen(map)) < 0 ? aq_fail_errno(err, "write '%s'", path) : 0;
}

static int id_map_open_of(pid_t pid, const char *users, const char *groups, struct aq_error *err)
{
    char path[48];
    int fd, r = id_map_write_map(pid, "uid_map", users, err);

    if (r == 0)
        r = id_map_write_map(pid, "gid_map", groups, err);
    if (r < 0)
        return r;
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? aq_fail_errno(err, "open '%s'", path) : fd;
}

/* The child: nothing but system calls, as libc's data are the parent's. */
static int id_map_wait_for_end(void *data)
{
    const pid_t *parent = data;

    (void)syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    while (syscall(SYS_getppid) == *parent) /* else it was killed before that */
        (void)syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
    return 0;
}

static int id_map_make(const char *users, const char *groups, struct aq_error *err)
{
    /* the child has our memory, which need not be copied then, and its own stack there */
    _Alignas(16) char stack[CHILD_STACK];
    pid_t parent = getpid();
    pid_t pid = clone(id_map_wait_for_end, stack + sizeof(stack),
                      CLONE_VM | CLONE_NEWUSER | SIGCHLD, &parent);
    int r;

    if (pid < 0)
        return aq_fail_errno(err, "make a user namespace");
    r = id_map_open_of(pid, users, groups, err);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    return r;
}

int id_map_open(uint32_t base, uint32_t count, struct aq_error *err)
{
    char map[ID_MAP_LINE];

    (void)snprintf(map, sizeof(map), "0 %" PRIu32 " %" PRIu32, base, count);
    return id_map_make(map, map, err);
}

int id_map_open_pair(struct id_pair inside, struct id_pair outside, struct aq_error *err)
{
    char users[ID_MAP_LINE], groups[ID_MAP_LINE];

    (void)snprintf(users, sizeof(users), "%" PRIu32 " %" PRIu32 " 1", inside.uid, outside.uid);
    (void)snprintf(groups, sizeof(groups), "%" PRIu32 " %" PRIu32 " 1", inside.gid, outside.gid);
    return id_map_make(users, groups, err);
}

int id_map_check(const char *path, int users)
{
    struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)users };
    AQ_CLEANUP(aq_closep) int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

    if (tree < 0)
        return -errno;
    return mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? -errno : 0;
}
