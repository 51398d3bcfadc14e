/* SPDX-License-Identifier: Apache-2.0 */
/* forwarding.c - switches on forwarding for the node's uplinks */
#include "agent/net/forwarding.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "forwarding."

static void forwarding_path_of(const char *link, char path[96])
{
    (void)snprintf(path, 96, "/proc/sys/net/ipv4/conf/%.15s/forwarding", link);
}

static void forwarding_mark_of(const char *link, char name[32])
{
    (void)snprintf(name, 32, PREFIX "%.15s", link);
}

int forwarding_is_ours(int directory, const char *link, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char path[96], mark[32], value = '0';

    forwarding_path_of(link, path);
    forwarding_mark_of(link, mark);
    if (faccessat(directory, mark, F_OK, 0) == 0)
        return 1;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, &value, 1) != 1)
        return aq_fail_errno(err, "read '%s'", path);
    return value == '0';
}

static int forwarding_write_value(const char *link, const char *value, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char path[96];

    forwarding_path_of(link, path);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, value, 1) != 1)
        return aq_fail_errno(err, "write '%s'", path);
    return 0;
}

int forwarding_switch_on(int directory, const char *link, struct aq_error *err)
{
    AQ_CLEANUP(aq_closep) int fd = -1;
    char mark[32];

    forwarding_mark_of(link, mark);
    fd = openat(directory, mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return aq_fail_errno(err, "make '%s'", mark);
    return forwarding_write_value(link, "1", err);
}

void forwarding_restore(int directory)
{
    int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    struct dirent *entry;

    if (!dir) {
        aq_closep(&copy);
        return;
    }
    while ((entry = readdir(dir)))
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0) {
            (void)forwarding_write_value(entry->d_name + strlen(PREFIX), "0", NULL);
            (void)unlinkat(directory, entry->d_name, 0);
        }
    (void)closedir(dir);
}
