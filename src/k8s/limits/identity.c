/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - whose a process is: by its cgroup, and the API server's pods */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/strbuf.h"
#include "k8s/limits/limits_internal.h"

#define CGROUP_FILE_MAX 65536

bool identity_of_pid(const struct limits *limits, pid_t pid, struct cgroup_name *ret)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    char path[32];

    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    return fs_read(AT_FDCWD, path, CGROUP_FILE_MAX, &text, NULL) == 0 && text.len
           && cgroup_name_read(text.data, limits->root, ret);
}

/* The pid is the peer's only while the peer lives: looked at before and after. */
bool identity_of_peer(const struct limits *limits, int socket, struct cgroup_name *ret)
{
    pid_t pid = 0;
    AQ_CLEANUP(aq_closep) int pidfd = gpu_region_peer(socket, &pid);
    struct pollfd ended = { .fd = pidfd, .events = POLLIN };

    if (pidfd < 0 && pid == 0)
        violations_tell_hidden(limits->violations);
    return pidfd >= 0 && identity_of_pid(limits, pid, ret) && poll(&ended, 1, 0) == 0;
}

const struct node_container *identity_container(const struct node_pod *pod,
                                                const struct cgroup_name *name)
{
    const struct node_container *known = pod_container_by_id(pod, name->container), *only = NULL;

    if (known)
        return known;
    for (size_t i = 0; i < pod->container_count; i++) {
        if (pod->containers[i].is_debug && !pod->containers[i].id[0])
            return NULL; /* the process may be of this one, which is about to start */
        if (!pod->containers[i].memory)
            continue;
        if (only)
            return NULL;
        only = &pod->containers[i];
    }
    return only;
}
