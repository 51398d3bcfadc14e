/* SPDX-License-Identifier: Apache-2.0 */
/* monitored.h - kernels under aliquot-monitor, whatever the monitor is to run
 *
 * The part of a runtime that does not depend on the program: the monitor is
 * started on a directory that says what to run ('program', monitor/protocol.h),
 * found again, told to end it, listened to. The functions below are members
 * of struct runtime_ops.
 */
#ifndef AQ_AGENT_RUNTIME_MONITORED_H
#define AQ_AGENT_RUNTIME_MONITORED_H

#include "agent/runtime/runtime.h"

/* First member of the struct of a runtime. */
struct monitored_runtime {
    struct runtime super;
    uv_loop_t *loop;
    char *monitor_path;
    bool has_containers;
    int program; /* what the monitor is to execute in place of the first arg, borrowed; -1 = that */
};

int monitored_init(struct monitored_runtime *rt, uv_loop_t *loop, const char *monitor_path,
                   struct aq_error *err);
void monitored_done(struct monitored_runtime *rt);

/* What start() does once 'program' is written; 'kept' as in struct runtime_spec. */
void monitored_open(struct runtime *runtime, const char *directory, const int *kept,
                    const struct runtime_events *events, void *data, struct runtime_kernel **ret);

int monitored_adopt(struct runtime *runtime, const char *directory,
                    const struct runtime_events *events, void *data, struct runtime_kernel **ret,
                    struct aq_error *err);
void monitored_terminate(struct runtime_kernel *kernel, int64_t notice_usec, int64_t grace_usec);
void monitored_set_lease(struct runtime_kernel *kernel, int64_t until_usec, int64_t grace_usec);
void monitored_signal(struct runtime_kernel *kernel, int signum);
pid_t monitored_pid(const struct runtime_kernel *kernel);
void monitored_release(struct runtime_kernel *kernel);
/* By the runner, in a container or beside the program. */
int monitored_exec(struct runtime_kernel *kernel, const struct runner_command_spec *spec,
                   const struct runner_command_ops *ops, void *data, struct runner_command **ret,
                   struct aq_error *err);
int monitored_feed(struct runtime_kernel *kernel, const struct runner_command_ops *ops, void *data,
                   struct runner_command **ret, struct aq_error *err);
int monitored_attach(struct runtime_kernel *kernel, const struct runtime_terminal_ops *ops,
                     void *data, struct runtime_terminal **ret, struct aq_error *err);

#endif
