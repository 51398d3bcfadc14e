/* SPDX-License-Identifier: Apache-2.0 */
/* agent_internal.h - the state of the agent, shared by its files
 *
 * agent.c owns the whole and speaks with the manager; kernel.c is the life of
 * one kernel, devices.c that of its devices; recover.c finds kernels again at
 * the start; streams.c serves logs and terminals; metrics/ takes samples;
 * image_commands.c pulls and removes images; cluster_commands.c is the network between nodes;
 * own_service.c asks systemd about us; log_retention.c limits the logs of ended kernels.
 */
#ifndef AQ_AGENT_AGENT_INTERNAL_H
#define AQ_AGENT_AGENT_INTERNAL_H

#include "accelhost/accel.h"
#include "agent/agent.h"
#include "agent/data/data.h"
#include "agent/disk/disk_worker.h"
#include "agent/gpu/gpu.h"
#include "agent/image/image.h"
#include "agent/kernel/log_turns.h"
#include "agent/net/cluster.h"
#include "agent/net/rdma.h"
#include "agent/probe/probes.h"
#include "agent/resources/resources.h"
#include "agent/volume/volumes.h"
#include "base/list.h"
#include "base/map.h"
#include "link/link.h"

#define KERNELS_MAX 10000 /* with a directory; so that the inventory fits into a message */

/* A message that is acknowledged only when what it asks for is durable. */
struct receipt {
    struct list link;
    uint64_t seq;
};

/* What is left of forgotten kernels, oldest first. */
struct retained_logs {
    struct retained_log *items;
    size_t first, count, cap;
    int64_t bytes;
};

/* end_kernels.c */
struct agent_shutdown {
    agent_ended_fn on_done;
    int64_t give_up_usec, ended_usec; /* monotonic; 0 = some have not ended */
};

struct agent_daemon {
    uv_loop_t *loop;
    const struct settings *settings;
    struct runtime *runtime;    /* of processes of the node */
    struct runtime *containers; /* NULL = none, and why not */
    const char *no_containers;
    char *notes; /* for administrators: what is weaker here than it could be */
    struct images *images;
    struct net *net;                     /* of containers; NULL = they have none */
    struct cluster_networks *cluster;    /* between nodes; NULL without 'net' */
    struct rdma_devices rdma;            /* available to sessions */
    struct ssh *ssh;                     /* server of containers; NULL = they have none */
    struct gpu *gpu;                     /* slices of containers; NULL without containers */
    struct volumes *volumes;             /* of folders; NULL likewise */
    struct data_path *data_path;         /* for proxies; NULL likewise */
    struct list image_jobs;              /* image_commands.c */
    struct own_service_job *service_job; /* NULL = systemctl does not run */
    const struct agent_events *events;
    void *data;
    int lock;
    int folder_lock;
    struct aq_error refusal; /* why no new kernel is taken; its text is sent */
    uid_t uid;               /* of programs; (uid_t)-1 = our own */
    gid_t gid;
    struct uuid incarnation;
    int64_t started_usec;
    struct accel *accel;
    struct resources resources;
    struct claims *claims;
    struct disk_worker *disk;
    struct link_client *link;
    struct map kernels;    /* 16 bytes of id -> struct local_kernel */
    struct probes *probes; /* of kernels: kernel/readiness.h */
    struct metrics_watch *metrics_watch;
    struct list receipts;   /* in order of seq */
    struct msg_stamp stamp; /* of the message that is being handled */
    uint64_t last_seq;      /* of the newest message that was dealt with */
    struct list streams;    /* streams.c */
    struct log_turns log_turns;
    struct retained_logs retained_logs;
    struct stats_collector *stats;  /* metrics/stats_collector.h; NULL = none are taken */
    struct metrics_server *metrics; /* NULL = not served */
    uv_timer_t heartbeat;
    uv_timer_t shutdown_poll;
    struct agent_shutdown shutdown;
    int64_t heartbeat_usec, heartbeat_seq;
    int64_t contact_usec; /* CLOCK_BOOTTIME: when the last heartbeat was sent that the manager has
                             answered; 0 = none of this process yet. kernel/lease.h */
    bool is_draining, is_rejected, was_ready;
    bool is_closing;      /* kernels run on, with what they hold */
    bool has_new_devices; /* that the manager has not been told of */
    bool has_new_volumes; /* likewise */
    bool has_strays;      /* kernels hold what is not offered any more */
};

/* ---- agent.c ---- */

void agent_send(struct agent_daemon *agent, const struct message *msg);
/* Hold back the acknowledgement of a message; agent_settle() lets it go. */
struct receipt *agent_receipt(struct agent_daemon *agent, uint64_t seq);
void agent_settle(struct agent_daemon *agent, struct receipt *receipt);

/* ---- recover.c ---- */

/* Every directory below kernels/ becomes a kernel again. */
int recover_all(struct agent_daemon *agent, struct aq_error *err);

/* ---- streams.c ---- */

void streams_open(struct agent_daemon *agent, const struct msg_stream_open *open);
void streams_control(struct agent_daemon *agent, const struct msg_stream_control *control);
/* The attempt has ended: no more output will come. */
void streams_kernel_ended(struct agent_daemon *agent, const struct uuid *kernel_id);
void streams_free(struct agent_daemon *agent);

/* ---- image_commands.c ---- */

void image_commands_handle(struct agent_daemon *agent, const struct msg_image_command *command);
/* "auths" of containers-auth.json(5), NULL = none: images are fetched with these from now on. */
void image_commands_take_logins(struct agent_daemon *agent, const char *auths);
/* Tell the manager which images are here. */
void image_commands_list(struct agent_daemon *agent);
/* What the manager was told last of an image that comes. */
struct image_told {
    int64_t usec; /* monotonic; 0 = nothing was */
    enum image_phase phase;
};

/* How far the image of a kernel has come, NULL = it is here; call as often as you like. */
void image_commands_progress(struct agent_daemon *agent, const struct uuid *session_id,
                             const struct uuid *kernel_id, const char *image,
                             const struct image_progress *progress, struct image_told *told);
void image_commands_start(struct agent_daemon *agent);
void image_commands_free(struct agent_daemon *agent);

/* ---- open_data_path.c ---- */

/* Containers run; without it proxies reach them through the manager. */
void agent_open_data_path(struct agent_daemon *agent);

/* ---- cluster_commands.c ---- */

/* Find what this node offers to others; sessions on one node run without. After agent->net. */
void cluster_commands_start(struct agent_daemon *agent);
void cluster_commands_set_session(struct agent_daemon *agent,
                                  const struct msg_session_network *msg);
void cluster_commands_set_peers(struct agent_daemon *agent, const struct msg_network_peers *msg);

/* ---- own_service.c ---- */

void own_service_handle(struct agent_daemon *agent, const struct msg_service_command *command);
/* What still runs ends by itself. */
void own_service_free(struct agent_daemon *agent);

#define OWN_SERVICE_UNIT_MAX 256
/* The unit of the text of /proc/PID/cgroup: the innermost service. False = none. */
bool own_service_read_unit(const char *cgroups, char ret[OWN_SERVICE_UNIT_MAX]);

/* ---- log_retention.c ---- */

int log_retention_load(struct agent_daemon *agent, struct aq_error *err);
void log_retention_add(struct agent_daemon *agent, const struct uuid *id, int64_t bytes);
void log_retention_done(struct retained_logs *kept);

#endif
