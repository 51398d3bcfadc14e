/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.h - one way to run the program of a kernel
 *
 * A runtime is a vtable; the agent knows nothing else of processes or
 * containers. A kernel's directory (monitor/protocol.h) outlives the agent:
 * start() makes the program run there, adopt() finds out what became of a
 * directory after the agent was restarted. Everything belongs to the thread of
 * the libuv loop; callbacks never come from within a call.
 */
#ifndef AQ_AGENT_RUNTIME_RUNTIME_H
#define AQ_AGENT_RUNTIME_RUNTIME_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "agent/runtime/container.h"
#include "base/error.h"
#include "base/pump.h"
#include "base/strbuf.h"

struct runtime;
struct runtime_kernel;
struct runtime_terminal;
struct runner_command;
struct runner_command_spec;
struct runner_command_ops;

struct runtime_spec {
    const char *directory;   /* exists; absolute path */
    const char *const *argv; /* NULL-terminated; argv[0] absolute */
    const char *const *envp; /* NULL-terminated "NAME=value", with ALIQUOT_KERNEL_ID */
    const char *cwd;         /* absolute */
    bool tty;
    const char
        *output; /* file to create for the program, which writes values into it; NULL = none */
    bool input;  /* without tty: standard input comes by runtime_feed(), else it is /dev/null */
    uint16_t rows, cols; /* 0 = 24 x 80 */
    bool has_ids;
    uid_t uid;
    gid_t gid;
    int64_t timeout_usec; /* 0 = none */
    int64_t grace_usec;   /* after the timeout */
    int warn_signal;      /* warn_usec before the timeout; 0 = none */
    int notice_signal;    /* before SIGTERM; 0 = none */
    int64_t warn_usec;
    int64_t notice_usec;    /* from notice_signal to SIGTERM, after the timeout */
    bool has_bootstrap;     /* argv begins with a bootstrap script (monitor/protocol.h) */
    int64_t bootstrap_usec; /* for the script; 0 = no limit */
    uint64_t log_max;       /* bytes */
    uint64_t memory_bytes;  /* 0 = no limit */
    uint64_t processes_max, files_max;      /* 0 = no limit */
    const struct container_spec *container; /* NULL = a process of the node */
    const int *kept;   /* MONITOR_KEPT descriptors for the monitor to hold; borrowed as long as
                               the handle; NULL = none */
    bool is_described; /* the directory has what runtime_describe() gave: of all this only
                               'directory' counts any more */
};

struct runtime_exit {
    const char *reason;       /* of monitor/protocol.h */
    const char *text;         /* for users; "" = nothing to add */
    bool was_short_of_memory; /* a process was killed for want of it, as 'text' says */
    bool has_code;
    int code;            /* 128+n for signal n */
    const char *outputs; /* JSON {"NAME": "VALUE"} that the program has handed on; NULL = none */
    int64_t ended_usec;
};

struct runtime_events {
    void (*on_running)(void *data, int64_t started_usec); /* at most once */
    /* Exactly once, unless the handle is released first. Nothing of
     * the program is left.
     */
    void (*on_ended)(void *data, const struct runtime_exit *exit);
    /* At most once, before on_running(): the bootstrap script runs. NULL = not wanted. */
    void (*on_bootstrap)(void *data);
};

struct runtime_terminal_ops {
    void (*on_output)(void *data, const char *bytes, size_t len);
    void (*on_closed)(void *data); /* the program has ended; then detach() */
    void (*on_drain)(void *data);  /* for pump_drained() */
};

struct runtime_ops {
    const char *name;
    int (*describe)(struct runtime *rt, const struct runtime_spec *spec, struct strbuf *out,
                    struct aq_error *err);
    int (*start)(struct runtime *rt, const struct runtime_spec *spec,
                 const struct runtime_events *events, void *data, struct runtime_kernel **ret,
                 struct aq_error *err);
    int (*adopt)(struct runtime *rt, const char *directory, const struct runtime_events *events,
                 void *data, struct runtime_kernel **ret, struct aq_error *err);
    void (*terminate)(struct runtime_kernel *kernel, int64_t notice_usec, int64_t grace_usec);
    void (*set_lease)(struct runtime_kernel *kernel, int64_t until_usec, int64_t grace_usec);
    void (*signal)(struct runtime_kernel *kernel, int signum);
    void (*release)(struct runtime_kernel *kernel);
    int (*attach)(struct runtime_kernel *kernel, const struct runtime_terminal_ops *ops, void *data,
                  struct runtime_terminal **ret, struct aq_error *err);
    int (*exec)(struct runtime_kernel *kernel, const struct runner_command_spec *spec,
                const struct runner_command_ops *ops, void *data, struct runner_command **ret,
                struct aq_error *err);
    int (*feed)(struct runtime_kernel *kernel, const struct runner_command_ops *ops, void *data,
                struct runner_command **ret, struct aq_error *err); /* NULL = it cannot */
    pid_t (*pid)(const struct runtime_kernel *kernel);
    void (*free)(struct runtime *rt);
};

/* First member of every implementation's struct, as of its handles. */
struct runtime {
    const struct runtime_ops *ops;
};
struct runtime_kernel {
    const struct runtime_ops *ops;
};

/* Append to 'out' what start() would write into the directory's file 'program',
 * for a caller that makes the directory and can write it at once.
 */
static inline int runtime_describe(struct runtime *rt, const struct runtime_spec *spec,
                                   struct strbuf *out, struct aq_error *err)
{
    return rt->ops->describe(rt, spec, out, err);
}

/* Write down what to run and start it; the directory's program was never started
 * (a former try may have written it down). What cannot start comes as on_ended() with
 * MONITOR_NOT_STARTED.
 */
static inline int runtime_start(struct runtime *rt, const struct runtime_spec *spec,
                                const struct runtime_events *events, void *data,
                                struct runtime_kernel **ret, struct aq_error *err)
{
    return rt->ops->start(rt, spec, events, data, ret, err);
}

/* Take over a directory whose program runs or has ended. -ENOENT if it was never
 * started: then runtime_start().
 */
static inline int runtime_adopt(struct runtime *rt, const char *directory,
                                const struct runtime_events *events, void *data,
                                struct runtime_kernel **ret, struct aq_error *err)
{
    return rt->ops->adopt(rt, directory, events, data, ret, err);
}

/* Send the program's notice_signal, SIGTERM after the notice and SIGKILL after the grace; notice 0
 * = SIGTERM now, grace 0 = SIGKILL now. on_ended() follows. May be called before the program runs,
 * and again, which can only shorten the times.
 */
static inline void runtime_terminate(struct runtime_kernel *kernel, int64_t notice_usec,
                                     int64_t grace_usec)
{
    kernel->ops->terminate(kernel, notice_usec, grace_usec);
}

/* SIGTERM at a time of CLOCK_BOOTTIME (0 = never), after the grace SIGKILL, whether this process lives
 * then or not. Replaces what was set before; before the program runs, too.
 */
static inline void runtime_set_lease(struct runtime_kernel *kernel, int64_t until_usec,
                                     int64_t grace_usec)
{
    kernel->ops->set_lease(kernel, until_usec, grace_usec);
}

/* To the program's process group; lost unless it runs. */
static inline void runtime_signal(struct runtime_kernel *kernel, int signum)
{
    kernel->ops->signal(kernel, signum);
}

/* Free the handle; the program goes on. NULL is fine. */
static inline void runtime_release(struct runtime_kernel *kernel)
{
    if (kernel)
        kernel->ops->release(kernel);
}

/* See the latest output again, then what comes, and type. -ENOTTY unless it
 * has a terminal, -ENOTCONN unless it runs.
 */
static inline int runtime_attach(struct runtime_kernel *kernel,
                                 const struct runtime_terminal_ops *ops, void *data,
                                 struct runtime_terminal **ret, struct aq_error *err)
{
    return kernel->ops->attach(kernel, ops, data, ret, err);
}

/* An end of a pump that is a struct runtime_terminal: is put what is typed, of which nothing is
 * lost, and gives what is shown; of that a long pause costs all but the newest.
 */
extern const struct pump_ops runtime_terminal_pump;

void runtime_resize(struct runtime_terminal *terminal, uint16_t rows, uint16_t cols);

/* No callback follows. NULL is fine. */
void runtime_detach(struct runtime_terminal *terminal);

/* Run a further command beside the program (runner_client.h). -ENOTCONN unless
 * it runs, -ENOTSUP if the command needs a container and there is none.
 */
static inline int runtime_exec(struct runtime_kernel *kernel,
                               const struct runner_command_spec *spec,
                               const struct runner_command_ops *ops, void *data,
                               struct runner_command **ret, struct aq_error *err)
{
    return kernel->ops->exec(kernel, spec, ops, data, ret, err);
}

/* Give the program its standard input (runner_client.h): on_started() once it is ours,
 * no output comes. -ENOTSUP, -ENOTCONN unless it runs.
 */
static inline int runtime_feed(struct runtime_kernel *kernel, const struct runner_command_ops *ops,
                               void *data, struct runner_command **ret, struct aq_error *err)
{
    if (!kernel->ops->feed)
        return aq_fail_kind(err, ENOTSUP, "no-input", "programs get no input here");
    return kernel->ops->feed(kernel, ops, data, ret, err);
}

/* Of the program, or of what keeps it: a child of the monitor, which adopts
 * whatever loses its parent. 0 unless it is known to run.
 */
static inline pid_t runtime_pid(const struct runtime_kernel *kernel)
{
    return kernel->ops->pid(kernel);
}

static inline void runtime_free(struct runtime *rt)
{
    if (rt)
        rt->ops->free(rt);
}

/* Plain processes under aliquot-monitor, which is at 'monitor_path'. */
int runtime_new_process(uv_loop_t *loop, const char *monitor_path, struct runtime **ret,
                        struct aq_error *err);

#endif
