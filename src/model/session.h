/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - sessions and their kernels as the manager holds them in memory
 *
 * Plain data. Only non-terminal sessions live in memory; what has ended is
 * read by SQL. 'version' counts status changes of the session (and of each
 * kernel); the store refuses a change whose version is not the row's.
 */
#ifndef AQ_MODEL_SESSION_H
#define AQ_MODEL_SESSION_H

#include "base/list.h"
#include "base/uuid.h"
#include "model/dependency.h"
#include "model/keypair.h"
#include "model/rerun.h"
#include "model/retry.h"
#include "model/session_spec.h"
#include "model/slot.h"
#include "model/status.h"

#define SESSION_NAME_MIN 2
/* Fewer characters of an id stand for no session: a name that short is meant. */
#define SESSION_ID_PREFIX_MIN 4
#define SESSION_NAME_MAX 64

/* Reasons of Backend.AI's status_info vocabulary, and ours beside them. */
#define REASON_USER_REQUESTED "user-requested"
#define REASON_FORCE_TERMINATED "force-terminated"
#define REASON_SELF_TERMINATED "self-terminated"
#define REASON_TASK_FINISHED "task-finished"
#define REASON_TASK_FAILED "task-failed"
#define REASON_OUT_OF_MEMORY "out-of-memory" /* ours: failed, Linux killed at its limit */
#define REASON_BAD_OUTPUT "bad-output"       /* ours: succeeded, its values break a rule */
#define REASON_GPU_OUT_OF_MEMORY \
    "gpu-out-of-memory"                /* ours: failed right after its slice was full */
#define REASON_GPU_MISUSE "gpu-misuse" /* ours: its agent stops who gets past a slice of a GPU */
#define REASON_BOOTSTRAP_FAILED "bootstrap-failed" /* ours: the script before its program */
#define REASON_BOOTSTRAP_TIMEOUT "bootstrap-timeout"
#define REASON_TASK_TIMEOUT "task-timeout"
#define REASON_EXEC_TIMEOUT "exec-timeout"
#define REASON_PENDING_TIMEOUT "pending-timeout"
#define REASON_FAILED_TO_CREATE "failed-to-create"
#define REASON_FAILED_TO_START "failed-to-start"
#define REASON_HANG_TIMEOUT "hang-timeout"
#define REASON_RESTARTING "restarting"
#define REASON_RESTART_TIMEOUT "restart-timeout"
#define REASON_PREEMPTED "preempted" /* ours: a more important session needs its resources */
#define REASON_MOVED "moved" /* ours: it starts elsewhere, so that another can start there */
#define REASON_AGENT_LOST "agent-lost"
#define REASON_AGENT_DRAINED "agent-drained" /* ours: drained with --end */
#define REASON_AGENT_REMOVED "agent-removed" /* ours: from its machine, which ended what ran */
#define REASON_NOT_FOUND_IN_MANAGER "not-found-in-manager"
#define REASON_CONTAINER_NOT_FOUND "container-not-found"
#define REASON_MONITOR_LOST "monitor-lost"
#define REASON_DEPENDENCY_FAILED "dependency-failed"
#define REASON_DEPRIORITIZED "deprioritized-for-rescheduling"

struct session;

struct kernel {
    struct uuid id;
    struct session *session; /* borrowed */
    enum kernel_status status;
    uint32_t version;
    char role[16];    /* "main" or "sub" */
    uint32_t index;   /* 1-based within the role */
    uint32_t rank;    /* 0-based within the session */
    uint32_t attempt; /* grows when the kernel is restarted (restart, requeue):
                         the agent refuses an older attempt */
    char *agent_id;   /* NULL until reserved */
    struct slots requested;
    char *alloc; /* JSON of granted devices once RUNNING; from SCHEDULED on, of those that the
                         scheduler chose; else NULL */
    char *
        service_ports; /* JSON of model/service_port.h: what it publishes, or did; NULL = nothing */
    bool has_exit;
    int exit_code; /* 128+n for signal n */
    int64_t status_changed_usec;
};

/* Of a session that is a replica of a model service. */
struct session_replica {
    struct uuid service_id;
    int64_t revision, number; /* number: unique in the service, from 1 */
    int64_t ratio_ppm;        /* traffic ratio, millionths */
    int64_t ready_usec;       /* when it became ready after its last start; 0 = never */
    int64_t draining_usec;    /* since when it takes no new requests; 0 = it takes them */
    int64_t failed_usec;      /* since when it counts as failed while it lives; 0 = it does not */
    bool has_half_share;      /* a rollout without room halves it */
};

/* The image of sessions that want no container. */
#define IMAGE_OF_PROCESSES "process"

struct session {
    struct uuid id;
    int64_t row; /* creation order, unique */
    char name[SESSION_NAME_MAX + 1];
    enum session_type type;
    enum session_status status;
    uint32_t version;
    enum session_result result;
    int priority; /* 0..100 */
    struct uuid user_id, project_id;
    char access_key[ACCESS_KEY_MAX];
    char *domain, *resource_group;
    struct session_spec *spec; /* what it asks for; NULL where it was not read */
    bool is_spec_short;        /* in memory only: it lacks command, environ, bootstrap, roles and
                                  resume_command,
                                  which the store has */
    char *image, *tag;         /* members of spec, to show and filter by; NULL = none */
    bool is_multi_node;        /* so is its cluster_mode */
    char *reason;              /* status_info; NULL = none */
    char *subnet;              /* between its agents: model/cluster_network.h; NULL = none */
    char *status_data;         /* JSON; for PENDING the scheduler's explanation; NULL = none */
    bool forced;               /* termination without grace was asked for */
    int64_t created_usec, status_changed_usec;
    int64_t starts_usec;        /* reservation for batch sessions; 0 = none */
    int64_t running_usec;       /* when RUNNING began; 0 = not yet */
    struct retry_record retry;  /* failures on the way to RUNNING since it ran last */
    struct rerun_record *rerun; /* of its attempts that have ended; NULL = none has */
    struct session_dependency *dependencies;
    size_t dependency_count;
    struct uuid array_id; /* that it is an element of; nil = none */
    int64_t array_index;
    struct uuid booking_id;          /* in which it runs: model/booking.h; nil = none */
    struct session_replica *replica; /* of model/model_service.h; NULL = it is none */
    struct kernel *kernels;          /* by rank */
    size_t kernel_count;
};

/* In this status it holds no addresses between agents. */
static inline bool session_gives_subnet_back(enum session_status status)
{
    return status == SESSION_PENDING || session_is_terminal(status);
}

/* It has a minimum of kernels; the others come and go while it runs. */
bool session_is_elastic(const struct session *s);
/* How many kernels it cannot do without: its minimum, or all. */
size_t session_least_kernels(const struct session *s);

/* It runs, and a kernel of it waits for a place. */
bool session_lacks_kernels(const struct session *s);

/* When its last attempt began to run; 0 = it has not, whatever earlier attempts did. */
int64_t session_started_usec(const struct session *s);

/* "single-node" or "multi-node", as Backend.AI's clients call them. */
const char *cluster_mode_name(bool is_multi_node);
/* 0 or -EINVAL. */
int cluster_mode_parse(const char *text, bool *ret_is_multi_node);

/* True for the reasons of a bootstrap script that failed or took too long; false for NULL. */
bool session_reason_is_bootstrap(const char *reason);

/* True if a user ended the session. NULL is no reason. */
bool session_reason_is_by_user(const char *reason);

/* Contents only. */
void session_done(struct session *s);

/* SESSION_ON_FAILURE_*: what the session says, else "end" for a batch session of several kernels
 * without a minimum and "continue" for others.
 */
const char *session_on_failure(const struct session *s);

/* SESSION_ON_NODE_LOSS_*: what the session says, else "restart-kernel" for a session with a minimum;
 * NULL = as its resource group says.
 */
const char *session_on_node_loss(const struct session *s);

/* "main1", "sub2" into 'buf'. */
#define KERNEL_HOSTNAME_MAX 32
char *kernel_hostname(const struct kernel *k, char buf[KERNEL_HOSTNAME_MAX]);

/* What its agent gave it, as 'alloc'; NULL before it runs. */
const char *kernel_granted(const struct kernel *k);

/* Elements of arrays have "[INDEX]" behind such a name, and no other session has.
 * 2..64 characters, ASCII, \w[\w.-]*\w. Clients of Backend.AI make no name of
 * fewer than four, but show and use those that there are. -EINVAL with field
 * "name".
 */
int session_name_check(const char *name, struct aq_error *err) AQ_UNTRUSTED;

/* The same, perhaps with "[INDEX]" behind it. */
int session_name_check_any(const char *name) AQ_UNTRUSTED;

/* The same for a name that is given now: no UUID, as routes take an id or a name. */
int session_name_check_new(const char *name, struct aq_error *err) AQ_UNTRUSTED;

#endif
