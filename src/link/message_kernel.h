/* SPDX-License-Identifier: Apache-2.0 */
/* message_kernel.h - messages about kernels: orders to an agent, its heartbeats, states
 *
 * See message.h for the form of a message.
 */
#ifndef AQ_LINK_MESSAGE_KERNEL_H
#define AQ_LINK_MESSAGE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/uuid.h"
#include "model/kernel_spec.h"

#define MSG_KERNELS_MAX 8192 /* of an agent: in a heartbeat */

enum msg_kernel_state {
    MSG_KERNEL_CREATING,    /* "CREATING": accepted and durable */
    MSG_KERNEL_RUNNING,     /* "RUNNING": the program was started */
    MSG_KERNEL_RESTARTING,  /* "RESTARTING": the old attempt is being ended */
    MSG_KERNEL_TERMINATING, /* "TERMINATING" */
    MSG_KERNEL_TERMINATED,  /* "TERMINATED": ended; reason and perhaps exit_code are there */
    MSG_KERNEL_ERROR,       /* "ERROR": never ran; error_* say why */
};

struct msg_kernel_create {
    struct uuid kernel_id, session_id;
    int64_t attempt;         /* 1.. ; with kernel_id the key that makes this message idempotent.
                                 A larger one ends the former attempt first, keeps its directory */
    struct kernel_spec spec; /* its members are keys beside the others */
};

struct msg_kernel_destroy {
    struct uuid kernel_id;
    int64_t attempt;     /* ends this attempt and earlier ones; 0 = any */
    int64_t grace_usec;  /* SIGTERM, then SIGKILL after this; 0 = SIGKILL at once */
    int64_t notice_usec; /* before SIGTERM, from the session's checkpoint_signal on, or its signal
                            if it has no other; 0 = none. Older agents send SIGTERM at once */
    const char *reason;  /* becomes the reason of the end unless one is already set */
};

struct msg_kernel_restart { /* same order, devices and work directory, new attempt */
    struct uuid kernel_id;
    int64_t attempt; /* the new one */
    int64_t grace_usec;
};

struct msg_kernel_forget { /* the end is recorded: the directory may go (logs are kept) */
    struct uuid kernel_id;
    int64_t attempt; /* an older one never removes a newer directory */
};

struct msg_kernel_release { /* all kernels of its session can start: so may the program */
    struct uuid kernel_id;
    int64_t attempt;
};

struct msg_session_network { /* who is in it has changed */
    struct uuid session_id;
    const char *network; /* as kernel_spec.network: all of it */
};

struct msg_kernel_resize { /* other amounts of the parts of devices that it has, as it runs */
    struct uuid kernel_id;
    int64_t attempt;
    const char *slots; /* all of the kernel's, as in create */
    int64_t trial;     /* not 0: change nothing yet, reserve it, and say that it is
                                 prepared and this number. What is ordered next, this or what it
                                 holds, ends that */
};

struct msg_kernel_describe { /* answered by kernel.order, if the agent has it */
    struct uuid kernel_id;
};

struct msg_kernel_order {
    struct uuid kernel_id;
    const char *order; /* JSON: the kernel.create that it was made from, without secrets; NULL = it
                          cannot be read any more */
};

struct msg_kernel_status { /* also one element of the heartbeat's inventory */
    struct uuid kernel_id, session_id;
    int64_t attempt;
    enum msg_kernel_state state;
    const char *reason; /* "self-terminated", "task-timeout", "monitor-lost" ...; NULL = none */
    bool has_exit;
    int64_t exit_code;   /* 0..255, 128+n for signal n */
    const char *outputs; /* JSON {"NAME": "VALUE"} that its program has handed on; NULL = none */
    const char *alloc;   /* JSON {"cpu":{"0":"1"},"mem":{"root":"1073741824"}}; once allocated */
    const char *service_ports;  /* JSON list of model/service_port.h; once published, NULL = none */
    const char *slots;          /* what it holds, as in create; NULL = as in its command */
    const char *prepared;       /* what it could hold by a trial of kernel.resize; NULL = none */
    const char *prepared_alloc; /* as 'alloc', if it did */
    int64_t trial; /* of the command that prepared it, or that error_* refuse; 0 = of before
                                 the agent's start, or none */
    const char *error_kind;  /* "unsupported-resource", "insufficient-resource" ... */
    const char *error_field; /* slot, device or member that is meant */
    const char *error_text;
    /* Of a kernel with a probe that ended without a command to: the last lines of its log, at most
     * 10 and 2 KiB, without control characters; NULL = none. A heartbeat may leave them out.
     */
    const char *last_lines;
    /* "misuse": how its programs use GPUs past their parts of them, a line each; NULL = not as far
     * as is known
     */
    const char *limit_violation;
    int64_t epoch, commit; /* msg_stamp of the order that began the attempt, as of its directory */
    bool is_ready;         /* CREATING, held, and it lacks nothing but kernel.release */
    bool bootstrap;        /* CREATING, and its bootstrap script runs */
    int64_t lease_usec, lease_grace_usec; /* as in kernel_spec: those that apply now */
    int64_t at_usec;                      /* when the state began */
};

struct msg_heartbeat {
    struct uuid incarnation;
    int64_t seq;          /* grows with each heartbeat of the incarnation */
    int64_t received_seq; /* messages up to here are in the inventory below */
    int64_t at_usec;
    int64_t uptime_usec; /* CLOCK_BOOTTIME of the node when it was sent; 0 = an agent without
                            leases */
    bool is_draining;
    const char *refusal;               /* why no new kernel should be sent; NULL = it takes them */
    const char *slots;                 /* as in hello */
    const char *devices;               /* as in hello; NULL = as they were */
    const char *volumes;               /* as in hello; NULL = as they were */
    const char *plugins;               /* the same */
    struct msg_kernel_status *kernels; /* all that have a directory */
    size_t kernel_count;
};

struct msg_kernel_lease {
    struct uuid kernel_id;
    int64_t attempt;
    int64_t lease_usec, lease_grace_usec; /* as in kernel_spec */
};

struct msg_heartbeat_reply { /* the manager was in contact when that heartbeat was sent, or later */
    int64_t uptime_usec;     /* of the heartbeat */
    struct msg_kernel_lease
        *leases; /* in place of those that the heartbeat had, where they differ */
    size_t lease_count;
};

#endif
