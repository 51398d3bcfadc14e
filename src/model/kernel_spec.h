/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_spec.h - what a kernel is told of itself and its session
 *
 * The manager fills it, kernel.create carries it, the agent keeps it and reads what it needs from
 * there. Pure; all texts are UTF-8.
 */
#ifndef AQ_MODEL_KERNEL_SPEC_H
#define AQ_MODEL_KERNEL_SPEC_H

#include "model/session_spec.h"

/* Zeroed: nothing is said. */
struct kernel_spec {
    const char *session_name, *session_type; /* "interactive", "batch", "inference", "system" */
    const char *role;                        /* "main" or "sub" */
    int64_t index, rank;                     /* 1-based in the role, 0-based in the session */
    const char *hostname;                    /* "main1" */
    int64_t cluster_size;
    const char *replicas; /* "main:1,sub:2" */
    const char *hosts;    /* "main1,sub1,sub2" */
    const char *access_key, *user_id, *user_email, *user_name;
    const char *group_id; /* of its project */
    const char *resource_group;
    int64_t lease_usec, lease_grace_usec; /* it gets SIGTERM when no manager has been heard of for
                                             so long, and SIGKILL after the grace; 0 = never */
    int64_t job_number;  /* of its session, as batch systems number jobs: session.row */
    int64_t attempts;    /* of its session that have ended before this one */
    bool is_held;        /* its program starts after kernel.release: when all of the session can */
    const char *slots;   /* JSON {"cpu":"1","mem":"1073741824"} */
    const char *devices; /* JSON as kernel_status.alloc, of slots of which the scheduler chose the
                             one device that gives all; NULL = which ones is up to the agent */
    const char
        *network;    /* JSON of model/cluster_network.h: between the agents of its session; NULL =
                             there is none */
    const char *cwd; /* below the work directory; NULL = the work directory */
    const char *ssh_seed; /* 64 hexadecimal digits: what the session's SSH keys are made from */
    const char *ssh_public_key; /* its user's own, that lets in, too; NULL = none */
    const char *dotfiles;       /* JSON of model/dotfile.h; NULL = none */
    /* Readiness by requests; of the main kernel of a replica of a model service. */
    int64_t probe_port;     /* of 127.0.0.1 in its network; 0 = it is not probed */
    const char *probe_path; /* GET of this; NULL = a connection that is accepted will do */
    int64_t probe_status;   /* the expected status; 0 = 200 */
    int64_t probe_interval_usec, probe_timeout_usec; /* 0 = 10 s; 0 = 15 s */
    int64_t probe_retries;       /* failures in a row until it is unhealthy; 0 = 10 */
    struct session_spec session; /* SESSION_SPEC_OF_AGENT, as keys beside the others */
};

/* Its members, which stand beside others. */
extern const struct wire_shape kernel_spec_shape;

#endif
