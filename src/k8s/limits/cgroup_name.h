/* SPDX-License-Identifier: Apache-2.0 */
/* cgroup_name.h - which container of which pod a process is in, by the names of its cgroups
 *
 * The kubelet names them by one of two drivers:
 *
 *   ROOT/kubepods/burstable/podUID/ID
 *   ROOT/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/RUNTIME-ID.scope
 *
 * The middle part is missing for pods of the class Guaranteed; the second has '_' for each '-' of
 * the UID. Below its own cgroup a container may make more, with names that it chooses: only the
 * outermost count. A process in a cgroup namespace sees others relative to its own:
 * "/../../podUID/ID".
 */
#ifndef AQ_K8S_LIMITS_CGROUP_NAME_H
#define AQ_K8S_LIMITS_CGROUP_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "k8s/pods.h"

#define CGROUP_ROOT_MAX 255
#define CGROUP_PATH_MAX 447

struct cgroup_name {
    char pod[POD_UID_MAX + 1];
    char container[CONTAINER_ID_MAX + 1];
    char path[CGROUP_PATH_MAX + 1]; /* of the container, in version 2; "" = not known from here */
};

/* Read a /proc/PID/cgroup. 'root' is what stands before "kubepods" on this node, "" for nothing.
 * False if no line names a container of a pod, or two lines name different ones.
 */
bool cgroup_name_read(const char *text, const char *root, struct cgroup_name *ret) AQ_UNTRUSTED;

/* What stands before "kubepods" in the first line of one's own that has it; else "". */
void cgroup_name_root(const char *text, char ret[CGROUP_ROOT_MAX + 1]);

#endif
