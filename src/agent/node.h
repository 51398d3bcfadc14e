/* node.h - the agent from the inside
 *
 * agent.c owns the whole and speaks with the manager; kernel.c is the life of
 * one kernel, devices.c that of its devices; recover.c finds kernels again at
 * the start; streams.c serves logs and terminals; stat/ measures;
 * image_orders.c pulls and removes images; kept.c bounds what is kept of ended
 * kernels.
 */
#ifndef AQ_AGENT_NODE_H
#define AQ_AGENT_NODE_H

#include "agent/accel/accel.h"
#include "agent/agent.h"
#include "agent/disk.h"
#include "agent/gpu/gpu.h"
#include "agent/image/image.h"
#include "agent/net/net.h"
#include "agent/resources.h"
#include "base/list.h"
#include "base/map.h"
#include "link/link.h"

#define KERNELS_MAX 10000 /* with a folder; so that the inventory fits into a message */

/* A message that is acknowledged only when what it asks for is durable. */
struct receipt {
    struct list link;
    uint64_t seq;
};

/* What is left of forgotten kernels, oldest first. */
struct kept {
    struct kept_item *items;
    size_t first, count, cap;
    int64_t bytes;
};

struct agent {
    uv_loop_t *loop;
    const struct settings *settings;
    struct runtime *runtime;     /* of processes of the node */
    struct runtime *containers;  /* NULL = none, and why not */
    const char *no_containers;
    char *notes;                 /* for administrators: what is weaker here than it could be */
    struct images *images;
    struct net *net;             /* of containers; NULL = they have none */
    struct ssh *ssh;             /* server of containers; NULL = they have none */
    struct gpu *gpu;             /* slices of containers; NULL without containers */
    struct list image_orders;    /* image_orders.c */
    const struct agent_events *events;
    void *data;
    int lock;
    uid_t uid; /* of programs; (uid_t)-1 = our own */
    gid_t gid;
    struct uuid incarnation;
    int64_t started_usec;
    struct accel *accel;
    struct resources resources;
    struct claims *claims;
    struct disk *disk;
    struct link_client *link;
    struct map kernels;    /* 16 bytes of id -> struct local_kernel */
    struct list receipts;  /* in order of seq */
    uint64_t last_seq;     /* of the newest message that was dealt with */
    struct list streams;   /* streams.c */
    struct kept kept;
    struct stats *stats;   /* stat/stats.h; NULL = none are taken */
    struct metrics_server *metrics; /* NULL = not served */
    uv_timer_t heartbeat;
    int64_t heartbeat_usec, heartbeat_seq;
    bool is_draining, is_refused, was_ready;
    bool is_closing; /* kernels run on, with what they hold */
    bool has_new_devices;  /* that the manager has not been told of */
    bool has_strays;       /* kernels hold what is not offered any more */
};

/* ---- agent.c ---- */

void agent_send(struct agent *agent, const struct message *msg);
/* Hold back the acknowledgement of a message; agent_settle() lets it go. */
struct receipt *agent_receipt(struct agent *agent, uint64_t seq);
void agent_settle(struct agent *agent, struct receipt *receipt);

/* ---- recover.c ---- */

/* Every folder below kernels/ becomes a kernel again. */
int recover_all(struct agent *agent, struct aq_error *err);

/* ---- streams.c ---- */

void streams_open(struct agent *agent, const struct msg_stream_open *open);
void streams_control(struct agent *agent, const struct msg_stream_control *control);
/* The attempt has ended: no more output will come. */
void streams_kernel_ended(struct agent *agent, const struct uuid *kernel_id);
void streams_free(struct agent *agent);

/* ---- image_orders.c ---- */

void image_orders_take(struct agent *agent, const struct msg_image_order *order);
/* Tell the manager which images are here. */
void image_orders_list(struct agent *agent);
/* How far the image of a kernel has come; call as often as you like. */
void image_orders_progress(struct agent *agent, const struct uuid *session_id,
                           const struct uuid *kernel_id, const char *image,
                           const struct image_progress *progress, int64_t *told_usec);
void image_orders_start(struct agent *agent);
void image_orders_free(struct agent *agent);

/* ---- kept.c ---- */

int kept_load(struct agent *agent, struct aq_error *err);
void kept_add(struct agent *agent, const struct uuid *id, int64_t bytes);
void kept_done(struct kept *kept);

#endif
