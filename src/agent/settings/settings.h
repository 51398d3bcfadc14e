/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h - the settings of an agent (agent.toml) */
#ifndef AQ_AGENT_SETTINGS_SETTINGS_H
#define AQ_AGENT_SETTINGS_SETTINGS_H

#include "accelhost/accel_settings.h"

struct settings {
    char *state; /* directory of everything the agent keeps */
    char *id;    /* NULL = the host's name */
    char *log_level;
    struct conf_list managers;    /* none = as joined, and as the leader names them */
    int64_t heartbeat_usec;       /* 0 = as the manager wants */
    int64_t ping_usec, dead_usec; /* not in the file: as in link_client_conf */
    char *region, *topology, *resource_group, *address;
    int64_t cpus;         /* 0 = those that the process may use */
    int64_t memory_bytes; /* 0 = what the machine or the cgroup has */
    int64_t reserved_cpu, reserved_memory_bytes;
    int64_t cpu_factor, memory_factor;
    char *offer_mode;                            /* "exclusive", "shared" or "auto-split" */
    char *offer_part;                            /* "K/N"; NULL = not one of equal parts */
    struct conf_list offer_cores, offer_devices; /* none = all */
    struct conf_list offer_reserved;             /* memory of devices */
    struct conf_list allocation_order;           /* kinds of devices */
    char *affinity;                              /* "interleaved" or "single-node" */
    char *monitor; /* path of aliquot-monitor; NULL = beside the agent */
    char *shell;   /* of interactive kernels; NULL = bash, else sh */
    char *user;    /* whom programs run as; NULL = the agent's own user */
    int64_t processes_max, files_max, log_bytes, bootstrap_usec;
    char *image_registry;            /* of names without one */
    struct conf_list image_allow;    /* patterns of reference_is_allowed() */
    char *image_directory;           /* NULL = STATE/images */
    struct conf_list image_mirrors;  /* "REGISTRY=MIRROR" */
    struct conf_list image_insecure; /* registries and mirrors */
    char *image_auth, *image_policy;
    char *image_skopeo, *image_unpack, *image_fetch;
    int64_t image_timeout_usec, image_jobs, image_layer_max, image_entries_max;
    int64_t image_keep_free; /* 0 = as much as the next scratch space needs */
    int64_t image_keep_usec, image_keep_bytes, image_user_share; /* percent */
    struct accel_settings accel;
    struct conf_list volumes;                  /* "STORAGE:VOLUME=PATH" */
    char *gpu_library, *gpu_probe, *gpu_watch; /* of slices of GPUs; NULL = beside the agent */
    char *gpu_misuse;    /* "report" or "stop" kernels that get past their slice */
    bool gpu_conserving; /* idle time of a device goes to those that want it */
    bool gpu_unenforced; /* images without a loader get parts that nothing holds them to */
    bool network;        /* containers have one */
    bool network_ssh;    /* and an SSH server */
    bool network_host;   /* or that of the node, if their session asks for it */
    int64_t
        sftp_idle_usec; /* without a connection, after which a session for files ends; 0 = never */
    char *network_pool;
    struct conf_list network_rdma; /* names of devices, or RDMA_ALL; empty = not offered */
    struct conf_list network_dns, network_deny, network_allow;
    int64_t network_connections_max; /* of a container */
    int64_t port_min, port_max, port_rest_usec;
    char *cluster, *cluster_address; /* of networks between nodes; address NULL = found */
    int64_t cluster_port;
    char *data_listen, *data_address,
        *data_user;    /* of the data path: "auto", "off" or an address */
    char *driver;      /* "auto", "process" or "container" */
    char *oci_runtime; /* "auto", "crun", "runc" or a path */
    char *run;         /* directory of what does not outlive the machine's own run */
    char *cgroup_parent, *seccomp;
    char *runner;         /* path of aliquot-runner; NULL = beside the agent */
    bool scratch_reserve; /* no more of it is granted than the disk has */
    int64_t scratch_bytes, shm_bytes, container_processes_max, container_files_max;
    bool container_namespaces; /* containers may make their own */
    int64_t container_uid, container_gid, id_start, id_ranges;
    int64_t stat_interval_usec; /* 0 = none are taken */
    char *metrics_listen, *metrics_tls_cert, *metrics_tls_key;
    bool metrics_insecure;
    char *service_unit;                        /* that we are; NULL = found by the cgroup */
    char *service_systemctl;                   /* path */
    int64_t keep_usec, keep_count, keep_bytes; /* logs of kernels that have ended */
};

extern const struct conf_item settings_items[];

enum {
    SETTINGS_SHARED = 1u << 0, /* other agents may offer the same, unless the settings say */
    SETTINGS_DEV = 1u << 1,    /* for development: root's agent offers processes, which are root
                                  unless the settings say, and the image "host" */
};

/* Where the path begins in an item of 'volumes'; what is before it, but for the last character,
 * names the host.
 */
const char *settings_volume_path(const char *item);

/* Load, then fill in what has no fixed default (state, id, offer_mode). 'flags': SETTINGS_*. */
int settings_load(const char *file, const char *state, unsigned flags, struct settings *ret,
                  struct aq_error *err);

/* One more of 'volumes', unless its host is there. -EINVAL. */
int settings_add_volume(struct settings *settings, const char *volume, struct aq_error *err);

/* What the disk has to have for one more scratch space, and for logs, directories of kernels and
 * other programs; 0 = scratch spaces are not reserved.
 */
#define SETTINGS_SCRATCH_MARGIN (INT64_C(256) << 20)
int64_t settings_scratch_need(const struct settings *settings);

/* May programs run as processes of the node? Those of a root agent would be root on it. */
bool settings_offer_processes(const struct settings *settings);
void settings_done(struct settings *settings);

/* "STATE/name"; caller frees. */
char *settings_path(const struct settings *settings, const char *name);

#endif
