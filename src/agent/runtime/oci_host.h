/* SPDX-License-Identifier: Apache-2.0 */
/* oci_host.h - what this node has for containers: directories, cgroups, users, profile
 *
 * Found once, at the agent's start. What is weaker here than it should be is
 * said in a note about it, and the containers run without it.
 *
 *   FOLDER/INSTANCE/stage      monitor/rootfs.h; empty outside of containers
 *   FOLDER/INSTANCE/kernels/ID files of the runtime about one container
 *   FOLDER/INSTANCE/gpu/ID     what a container sees of its slice of GPUs (agent/gpu/gpu.h)
 *   STATE/scratch-BYTES.img    the file system that scratch spaces begin as
 *
 * FOLDER is [runtime] directory, INSTANCE a name for this agent's state directory:
 * agents on one machine do not touch each other's.
 */
#ifndef AQ_AGENT_RUNTIME_OCI_HOST_H
#define AQ_AGENT_RUNTIME_OCI_HOST_H

#include "agent/cgroup/cgroup.h"
#include "agent/settings/settings.h"
#include "base/strbuf.h"

enum oci_topic {
    OCI_CGROUPS,
    OCI_SCRATCH,
    OCI_SECCOMP,
    OCI_USERS,       /* user namespaces */
    OCI_IMAGE_USERS, /* and where images are */
    OCI_TOPICS
};

struct oci_host {
    char *directory, *stage, *kernels, *gpu; /* the first is that of the others */
    char *scratch_template; /* NULL = scratch spaces are plain directories without a limit */
    char *seccomp;          /* "linux.seccomp" of every container */
    char *filter;           /* of that, for crun; NULL = it is to make it for each container */
    bool may_nest;          /* containers may make namespaces of their own */
    struct cgroup_layout cgroups;
    int users; /* of id_map_open(), to check with; -1 = no user namespaces */
    uint32_t id_start, id_ranges;
    uint64_t files_max, memlock_max; /* the most that programs can get: files, bytes */
    char notes[OCI_TOPICS][560];     /* "" = no problem */
};

#define ID_RANGE 65536u /* users of a container */

int oci_host_init(struct oci_host *host, const struct settings *settings, struct aq_error *err);
void oci_host_done(struct oci_host *host);

/* Append each note, with 'before' and 'after' around it. */
void oci_host_add_notes(const struct oci_host *host, const char *before, const char *after,
                        struct strbuf *out);

/* "FOLDER/INSTANCE" of an agent with these settings, whose state directory is there. Caller
 * frees; NULL if it is not there.
 */
char *oci_host_name_directory(const struct settings *settings);

/* The directories below FOLDER/INSTANCE, as far as they are missing. */
int oci_host_make_directories(const struct oci_host *host, struct aq_error *err);
/* Of an agent that stops and has the lock of its state: if no container runs, none is left. */
void oci_host_remove_directories(const struct oci_host *host);

/* Can every one of these directories be shown with mapped users? */
bool oci_host_can_map(const struct oci_host *host, const char *const *directories, size_t count);

/* The first of the users of a kernel, the same every time. Two kernels may
 * share a range: it protects the node, the other namespaces the kernels.
 */
uint32_t oci_host_id_base(const struct oci_host *host, const char *kernel_id);

/* Kill and remove what is left of kernels for which is_known() is false. */
void oci_host_sweep(const struct oci_host *host,
                    bool (*is_known)(void *data, const struct uuid *kernel), void *data);

/* FOLDER/INSTANCE/kernels/ID/name; caller frees. */
char *oci_host_kernel_path(const struct oci_host *host, const char *kernel_id, const char *name);

#endif
