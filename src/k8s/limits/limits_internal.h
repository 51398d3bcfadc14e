/* SPDX-License-Identifier: Apache-2.0 */
/* limits_internal.h - inside src/k8s/limits */
#ifndef AQ_K8S_LIMITS_INTERNAL_H
#define AQ_K8S_LIMITS_INTERNAL_H

#include "base/list.h"
#include "base/map.h"
#include "gpuslice/slices.h"
#include "k8s/event.h"
#include "k8s/limits/cgroup_name.h"
#include "k8s/limits/devices.h"
#include "k8s/limits/keep_client.h"
#include "k8s/limits/limits.h"

struct evictions;
struct limits_metrics;
struct limits_server;
struct violations;

/* A process of a container that has a slice which nobody kept. */
struct lost {
    struct cgroup_name name;
    pid_t pid;
};

struct limits {
    struct limits_conf conf;
    const char *node;
    char root[CGROUP_ROOT_MAX + 1]; /* before "kubepods" in names of cgroups */
    char *allocs_folder;            /* of the tables of shared allocations */
    struct kube_api *api;
    struct pods *pods;
    struct slices *slices;
    struct events *events;
    struct keep_client *keep;
    struct limits_server *server; /* NULL until it is known what is kept */
    struct violations *violations;
    struct evictions *evictions;
    struct limits_metrics *metrics;
    struct list containers; /* with slices */
    struct lost *lost;
    size_t lost_count, lost_cap;
    bool are_files_swept;
};

/* ---- container.c: a container and its slice ---- */

struct container {
    struct list link;
    struct limits *limits;
    struct slice slice;
    char pod[POD_UID_MAX + 1], name[CONTAINER_NAME_MAX + 1];
    char id[CONTAINER_ID_MAX + 1]; /* of the runtime, the latest */
    char namespace[64], pod_name[254];
    char cgroup[CGROUP_PATH_MAX + 1]; /* of version 2; "" = not known */
    char *allocs_path;
    uv_poll_t poll; /* its closing frees all this */
};

/* NULL if there is none. */
struct container *container_find(const struct limits *limits, const char *pod, const char *name);
struct container *container_find_by_id(const struct limits *limits, const struct cgroup_name *name);

/* A slice of what the kubelet gave; its old one if that was found among the lost. -ENODEV for a
 * card that is not there, -EINVAL for nothing, errors of gpu_region_host_new().
 */
int container_make(struct limits *limits, const struct node_pod *pod, const char *name,
                   const struct device_holder *holder, struct container **ret,
                   struct aq_error *err);
/* One that was kept; takes the files. -EPROTO for a key or text that is none of ours. */
int container_adopt(struct limits *limits, const char *key, const char *text, int files[KEEP_FILES],
                    struct aq_error *err);
/* A process of it has asked: it may have been started again. */
void container_note(struct container *container, const struct cgroup_name *name);
void container_keep(struct container *container);
/* The plugin ends, the slice stays with who keeps it. */
void container_leave(struct container *container);
/* End those of containers that have ended. */
void containers_sweep(struct limits *limits);
/* Remove the tables of shared allocations of pods that are not there. */
void containers_sweep_files(const struct limits *limits);

/* ---- recover.c ---- */

/* Find processes of containers whose slices are not known. */
void recover_find(struct limits *limits);
/* The region that one of them has mapped, with these grants. -ENOENT: there is none. */
int recover_region(const struct limits *limits, const struct node_pod *pod, const char *name,
                   const struct gpu_grant *grants, size_t count, const char *allocs_path,
                   struct gpu_region_host **ret);

/* ---- identity.c: whose a process is ---- */

/* False: it is of no container of a pod, or gone. */
bool identity_of_pid(const struct limits *limits, pid_t pid, struct cgroup_name *ret);
bool identity_of_peer(const struct limits *limits, int socket, struct cgroup_name *ret);
/* Which container of its pod it is: by its id, or where only one can be meant. NULL: not known yet.
 */
const struct node_container *identity_container(const struct node_pod *pod,
                                                const struct cgroup_name *name);

/* ---- server.c: the socket ---- */

int limits_server_new(struct limits *limits, struct limits_server **ret, struct aq_error *err);
void limits_server_free(struct limits_server *server);
/* More is known of pods: those who wait may be answered, and what was lost found. */
void limits_server_again(struct limits_server *server);

/* ---- violations.c: who goes past the limits ---- */

struct violations *violations_new(struct limits *limits);
void violations_free(struct violations *violations);
/* Processes of containers cannot be seen from here. */
void violations_tell_hidden(struct violations *violations);
/* Watch while any pod asks for a part of a card. */
void violations_set_needed(struct violations *violations);
void violations_on_processes(struct violations *violations, const struct gpu_process_memory *uses,
                             size_t count);
/* Of struct slices_conf; 'data' is the struct limits. */
bool violations_owns(void *data, const struct slice *slice, pid_t pid);
char *violations_find_cgroup(void *data, const struct slice *slice);
void violations_on_violation(void *data, struct slice *slice, const struct gpu_violation *violation,
                             const char *text);

/* ---- metrics.c: GET /metrics and /health ---- */

/* Errors of metrics_listen(). */
int limits_metrics_new(struct limits *limits, struct limits_metrics **ret, struct aq_error *err);
void limits_metrics_free(struct limits_metrics *metrics);
/* The driver's list of processes. */
void limits_metrics_on_processes(struct limits_metrics *metrics,
                                 const struct gpu_process_memory *uses, size_t count);

/* ---- eviction.c ---- */

struct evictions *evictions_new(struct limits *limits);
void evictions_free(struct evictions *evictions);
/* Ask the API server to evict the pod, again and again while a budget of its owner forbids it. */
void evictions_ask(struct evictions *evictions, const char *namespace, const char *pod,
                   const char *uid);

#endif
