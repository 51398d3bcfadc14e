/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_logs.h - the logs of a session's kernels as one, each line with the name of its kernel
 *
 * Each kernel's log is a request of its own; their lines are merged by the times at which they
 * were printed. Logs that are followed and break off are continued where they broke, and those of
 * kernels that start later or again join. Everything on the loop of the client (cli_client_open()).
 */
#ifndef AQ_CLI_SESSION_KERNEL_LOGS_H
#define AQ_CLI_SESSION_KERNEL_LOGS_H

#include <jansson.h>

#include "cli/cli.h"
#include "cli/session/follow.h"

#define KERNEL_LOGS_MAX \
    96 /* of a session: the manager gives a user 100 logs of an agent at a time */

struct kernel_logs;

struct kernel_logs_options {
    const char *label;  /* before the kernel's name, "LABEL/sub1"; NULL = none */
    const char *kernel; /* host name of the only one to show; NULL = all */
    const char *since;  /* as the manager takes it; NULL = from the beginning */
    const char *grep;   /* extended regular expression; NULL = all lines */
    struct cli_int tail;
    bool follow, timestamps, no_prefix;
    bool as_json; /* {"time", "kernel", "line"} a line */
    /* Called when a log has ended or all have failed. It must not free the logs. */
    void (*on_change)(void *data);
    void (*before_write)(void *data); /* or NULL */
    void *data;
};

/* -EINVAL, of kind usage, for a bad expression. The texts are borrowed. */
int kernel_logs_new(struct cli *cli, const struct follow_session *session,
                    const struct kernel_logs_options *options, struct kernel_logs **ret,
                    struct aq_error *err);
/* Accepts NULL. Runs the loop until its handle is closed. */
void kernel_logs_free(struct kernel_logs *logs);

/* Updates the kernels from a session as the manager shows it: new kernels are read, and those that
 * have started again are read from the beginning. -E2BIG if there are too many.
 */
int kernel_logs_update(struct kernel_logs *logs, const json_t *session, struct aq_error *err);

/* True when all output of the kernels is written; with follow, after all kernels have ended. */
bool kernel_logs_are_over(const struct kernel_logs *logs);

/* True if a log is incomplete, for which a note was printed. Its node may be lost. */
bool kernel_logs_are_partial(const struct kernel_logs *logs);

/* 0, or the error that ended them. */
int kernel_logs_check(const struct kernel_logs *logs, struct aq_error *err);

#endif
