/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - one kernel on this node, from the command to forgetting it
 *
 *   create -> (devices, directory durable) -> CREATING -> RUNNING -> TERMINATED
 *                                             |    TERMINATING ^  | forget -> gone
 *                                             +-> ERROR           +
 *
 * Level-triggered: kernel_step() looks at what is wanted (attempt, end) and
 * at what is (directory, running attempt) and does the next thing. Every change
 * of state is reported; the same facts are in each heartbeat.
 */
#ifndef AQ_AGENT_KERNEL_KERNEL_H
#define AQ_AGENT_KERNEL_KERNEL_H

#include "agent/agent_internal.h"
#include "link/message.h"
#include "model/session.h"

struct host_network;

/* local_kernel.lease_until_usec: its monitor has what a former process of the agent gave it */
#define LEASE_UNKNOWN INT64_C(-1)

struct local_kernel {
    struct agent_daemon *agent;
    struct uuid id, session_id;
    struct message command; /* kernel.create, as in spec.json once is_saved; MSG_UNKNOWN if that
                               cannot be read */
    int64_t attempt;        /* wanted, as in spec.json once is_saved */
    int64_t run_attempt;    /* of 'run' */
    enum msg_kernel_state state;
    bool is_container;
    struct image_request *image_request; /* the image is on its way */
    struct image_told image_told;        /* how far it is */
    struct image *image;                 /* of a container: held until its end */
    struct gpu_slice *slice;             /* what holds it to its parts of GPUs; NULL = none */
    struct net_endpoint *network;        /* as well */
    struct cluster_member *cluster;      /* in the session's network between nodes; NULL = none */
    bool is_joining;                     /* cluster_join() is under way */
    bool is_reached;                     /* it is joined, and other agents have answered */
    bool has_scratch;                    /* room for what it writes; prerequisites.h */
    struct image_room room;              /* it waits for that */
    bool is_connected;                   /* the network is there */
    struct probe *probe;                 /* readiness.h; NULL = it is not probed */
    bool was_ready;                      /* the probe's: it answered as expected once */
    char *service_ports;      /* JSON of what is published, for reports; NULL = nothing */
    bool is_saved;            /* the command of 'attempt' is durable */
    bool is_described;        /* and so is what the runtime starts */
    bool is_unreadable;       /* spec.json is damaged: it can only end */
    bool is_ready;            /* it waits for kernel.release alone */
    bool is_released;         /* that came, for this attempt */
    int64_t lease_until_usec; /* that its monitor has: CLOCK_BOOTTIME, 0 = none; LEASE_UNKNOWN */
    bool waits_for_contact;   /* it could start, but its lease is over; lease.h */
    bool wants_end;
    bool is_concluding;              /* it ended before it started, and the end is being recorded */
    int64_t notice_usec, grace_usec; /* arguments of runtime_terminate() */
    char *reason;                    /* of the end; NULL = none yet */
    struct slots slots;
    struct kernel_stat *stat;           /* what it is measured by; NULL = not open */
    struct alloc_grant chosen;          /* by the scheduler, as alloc_request has it */
    struct alloc_grant grant;           /* count 0 = nothing held */
    struct accel_attachment attachment; /* what its devices need, if is_attached; devices.h */
    struct accel_call *attaching;       /* the plugins are being asked */
    bool is_describing;                 /* and what they said is being written */
    bool is_attached;
    struct host_network *host; /* the node's network is its own; NULL = it is not */
    bool is_bootstrapping;     /* CREATING, and the bootstrap script runs */
    char *alloc;               /* JSON of the latest grant, for reports */
    char *slots_text; /* JSON of what it holds, if that has parts of GPUs; NULL = not told */
    struct resizing *resizing; /* other amounts that it is to hold, or may; resize.c */
    struct runtime_kernel *run;
    bool has_exit;
    int exit_code;
    char *outputs;          /* JSON of the values that its program has handed on; NULL = none */
    const char *error_kind; /* static */
    char *error_field, *error_text;
    char *last_lines;        /* of its log, if its end may need explaining; NULL = not read */
    char *limit_violations;  /* limit_violation.c: what was found of this attempt; NULL = nothing */
    int64_t at_usec;         /* when 'state' began */
    struct receipt *receipt; /* of the message whose command is being saved */
};

struct local_kernel *kernel_find(struct agent_daemon *agent, const struct uuid *id);
/* A kernel in the table. */
struct local_kernel *kernel_add(struct agent_daemon *agent, const struct uuid *id);
/* Out of the table; its directory stays. */
void kernel_drop(struct local_kernel *k);

/* What it is told; nothing, if its command cannot be read. */
static inline const struct kernel_spec *kernel_get_spec(const struct local_kernel *k)
{
    return &k->command.kernel_create.spec;
}
bool kernel_is_of_type(const struct local_kernel *k, enum session_type type);
/* Of its session: it has the image's services. */
bool kernel_is_main(const struct local_kernel *k);
/* Its program may hand on values: it is the main kernel of a batch session. */
bool kernel_has_output(const struct local_kernel *k);
/* As its session's other containers call it; never NULL. */
const char *kernel_hostname_of(const struct local_kernel *k);

/* Check its command, and take session, slots and chosen devices from it. */
int kernel_take_spec(struct local_kernel *k, struct aq_error *err);
/* Do the next thing. */
void kernel_step(struct local_kernel *k);
/* It cannot be started. */
void kernel_fail(struct local_kernel *k, const struct aq_error *err);
/* The config files of its directory as command and devices decide them, into 'job'. */
int kernel_describe_config(struct local_kernel *k, struct disk_job *job, struct aq_error *err);
/* Take up a directory that was found; 'attempt' of its run directories. */
int kernel_adopt(struct local_kernel *k, int64_t attempt, struct aq_error *err);
/* ---- resize.c ---- */

/* What it holds goes into reports from now on, if it can change. */
void kernel_tell_slots(struct local_kernel *k);
/* It ends, or its next attempt begins: it keeps what it has. */
void kernel_stop_resizing(struct local_kernel *k);
/* What the map holds for it beside k->grant; NULL = nothing. */
const struct alloc_grant *kernel_reserved(const struct local_kernel *k);
/* What it could hold, if that is certain, into a report. */
void kernel_describe_resizing(const struct local_kernel *k, struct msg_kernel_status *ret);
/* A former process of the agent had made certain that it could hold other amounts: go on
 * with that. After its devices are known.
 */
void kernel_recover_resizing(struct local_kernel *k);

/* ---- kernel.c ---- */

/* Its attempt has ended; reported. */
void kernel_end(struct local_kernel *k, const struct runtime_exit *exit);

void kernel_describe(const struct local_kernel *k, struct msg_kernel_status *ret);
void kernel_report(const struct local_kernel *k);
bool kernel_is_final(const struct local_kernel *k);

/* ---- commands of the manager ---- */

void kernel_on_create(struct agent_daemon *agent, uint64_t seq,
                      const struct msg_kernel_create *create);
void kernel_on_destroy(struct agent_daemon *agent, const struct msg_kernel_destroy *destroy);
void kernel_on_restart(struct agent_daemon *agent, uint64_t seq,
                       const struct msg_kernel_restart *restart);
void kernel_on_resize(struct agent_daemon *agent, const struct msg_kernel_resize *resize);
void kernel_on_release(struct agent_daemon *agent, const struct msg_kernel_release *release);
void kernel_on_forget(struct agent_daemon *agent, const struct msg_kernel_forget *forget);
void kernel_on_describe(struct agent_daemon *agent, const struct msg_kernel_describe *describe);

#endif
