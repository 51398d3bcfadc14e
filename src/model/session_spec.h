/* SPDX-License-Identifier: Apache-2.0 */
/* session_spec.h - what a session asks for
 *
 * One struct from the request to the container: REST decodes into it, the manager keeps it, the
 * store writes it once as JSON, kernel.create carries what concerns the agent. The table in
 * session_spec.c says of each member what it is called there and how large it may be. A new member
 * takes a line there, a name in manager/session/session_params.c, and the code that uses it.
 *
 * What the store searches by, or what changes while a session lives, is in struct session instead:
 * name, type, priority, when it starts, slots. Pure; all texts are UTF-8.
 */
#ifndef AQ_MODEL_SESSION_SPEC_H
#define AQ_MODEL_SESSION_SPEC_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"
#include "base/lists.h"
#include "model/folder_mount.h"
#include "model/resource_opts.h"

struct json_t;
struct wire_shape;

/* Zeroed: nothing is asked for. */
struct session_spec {
    const char *image;
    const char *architecture; /* NULL = any */
    const char *command;      /* run by /bin/sh -c; NULL: an interactive shell on a terminal */
    const char *input;        /* of the command, KERNEL_INPUT_*; NULL = /dev/null */
    const char *bootstrap;    /* shell text run before the command; NULL = none */
    const char *tag;
    const char *callback_url;
    struct pair_list environ;
    const char *shmem;           /* of its memory: a size, or bytes; NULL = unsaid */
    enum splitting splitting;    /* of devices */
    struct int_list ports;       /* of the container, to publish beside the image's */
    struct folder_mounts mounts; /* folders among its files */
    struct str_list agents;      /* ids: it goes to one of these only */
    bool agents_preferred;       /* or rather to one of these, else to any */
    const char *session_group;   /* of the owner's sessions that keep apart; NULL = none */
    bool packs;                  /* ... or together */
    bool group_is_strict;        /* ... or wait */
    int64_t cluster_size_min; /* it starts with as many kernels, the others come and go; 0 = all */
    int64_t batch_timeout_usec; /* how long a batch session may run; 0 = no limit */
    int64_t job_priority;       /* it may preempt preemptible ones with a lower one */
    bool is_preemptible;        /* it may be preempted */
    bool is_movable;            /* it may be stopped to start again on another agent */
    const char *reservation;    /* name of the booking in which it runs; NULL = none */
    bool waits_for_capacity;    /* it may ask for more than any agent has */
    const char *roles; /* of kernels that run something else: JSON of cluster_role.h; NULL = none */
    const char *on_failure;   /* of a kernel of several: SESSION_ON_FAILURE_*; NULL = unsaid */
    const char *on_node_loss; /* SESSION_ON_NODE_LOSS_*; NULL = as its resource group says */
    const char *network_mode; /* SESSION_NETWORK_*; NULL = private */
    bool needs_rdma;          /* InfiniBand and RoCE devices of its nodes */
    int64_t retry;            /* how often a batch session is run again: model/rerun.h; 0 = never */
    const char *retry_on;     /* after which ends; NULL = RERUN_ON_DEFAULT */
    int64_t retry_delay_usec; /* before the first retry; 0 = RERUN_DELAY_DEFAULT_USEC */
    int64_t retry_factor;     /* of each further delay; 0 = RERUN_FACTOR_DEFAULT */
    const char *signal; /* before the end of its time limit: model/end_signal.h; NULL = none */
    const char *checkpoint_signal; /* sent first when the cluster ends it; NULL = none */
    int64_t grace_usec; /* to SIGTERM with a checkpoint_signal, else to SIGKILL; 0 = default */
    const char *resume_command; /* in place of 'command' from the second attempt on; NULL = none */
    const char *retry_of;       /* id of the ended session that this one repeats; NULL = none */
};

#define SESSION_COMMAND_MAX (64 << 10) /* bytes */
#define SESSION_BOOTSTRAP_MAX (64 << 10)
#define SESSION_ROLES_MAX (256 << 10)
#define SESSION_VARIABLES_MAX 4096

/* Values of 'on_failure'. */
#define SESSION_ON_FAILURE_END "end"           /* the first failure ends the session */
#define SESSION_ON_FAILURE_CONTINUE "continue" /* the others run on; main1's end is the session's */

/* Values of 'on_node_loss'. */
#define SESSION_ON_NODE_LOSS_END "end"
#define SESSION_ON_NODE_LOSS_RESTART_KERNEL "restart-kernel" /* the lost kernels elsewhere */
#define SESSION_ON_NODE_LOSS_RESTART_ALL "restart-all"       /* back to the queue */

/* Values of 'network_mode'. */
#define SESSION_NETWORK_PRIVATE "private" /* each container has a network of its own */
#define SESSION_NETWORK_HOST "host"       /* containers use the network of their node */

/* Values of 'input'. */
#define KERNEL_INPUT_STREAM "stream"     /* comes over a stream of kind "input" */
#define KERNEL_INPUT_TERMINAL "terminal" /* of a terminal, as output and errors */

/* The members of all. */
extern const struct wire_shape session_spec_shape;

/* Bounds, UTF-8 and forms of all members. -EINVAL with the field as the API calls it. */
int session_spec_check(const struct session_spec *spec, struct aq_error *err);

/* Which members are meant: all, or those that an agent is told. */
enum session_spec_part { SESSION_SPEC_ALL, SESSION_SPEC_OF_AGENT };

/* Its containers use the network of their nodes. */
bool session_spec_uses_host_network(const struct session_spec *spec);

/* The members of an object that is open. What is unsaid is left out. */
void session_spec_write(const struct session_spec *spec, enum session_spec_part part,
                        struct jsonw *w);

/* From the text of an object, of which members that are not known are skipped; NULL is an empty
 * one. Texts are copied into the arena. -EINVAL with the key as field for what is of another type.
 */
int session_spec_parse(const char *text, struct arena *arena, struct session_spec *ret,
                       struct aq_error *err) AQ_UNTRUSTED;

/* A copy in one block, to be released by free(). */
struct session_spec *session_spec_copy(const struct session_spec *spec);

/* Bytes of that block. */
size_t session_spec_size(const struct session_spec *spec);

/* Of what is long memory keeps no command, bootstrap script, environment and roles: only the agent
 * needs these, and the store has them.
 */
#define SESSION_SPEC_KEPT_MAX 4096
bool session_spec_is_long(const struct session_spec *spec);

/* As session_spec_copy(), of the rest. */
struct session_spec *session_spec_copy_short(const struct session_spec *spec);

bool session_spec_equals(const struct session_spec *a, const struct session_spec *b);

/* What its texts say: bytes of shared memory; 0 = unsaid. -EINVAL if that is no size. */
int session_spec_shmem(const struct session_spec *spec, int64_t *ret, struct aq_error *err);

/* {"shmem": BYTES, "allow_fractional_resource_fragmentation": ...} as clients read it. */
void session_spec_write_resource_opts(const struct session_spec *spec, struct jsonw *w);

#endif
