/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - a program that is kept running
 *
 * Started in a process group of its own, with standard error in a log file.
 * It dies with SIGTERM when this process dies, however that happens. It says
 * "READY=1" on a notification socket (sd_notify(3)) when it serves. If it
 * ends unasked it is restarted: after 0.1 s, then twice as long each time
 * up to 10 s, and after 0.1 s again once it has run for a minute.
 */
#ifndef AQ_UP_CHILD_H
#define AQ_UP_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/error.h"

struct child_spec {
    const char *name;        /* for messages: "manager" */
    char *const *argv;       /* argv[0] is the path; NULL-terminated */
    const char *log_path;    /* appended to */
    const char *notify_path; /* of the socket that it notifies; rebuilt */
    char *variable;          /* "NAME=value", in its environment besides ours; NULL = none */
};

struct child;

struct child_ops {
    void (*on_ready)(struct child *child, void *data);
    /* 'status' as of waitpid(2); 'deaths' in a row without having been ready.
     * It is restarted afterwards unless child_stop() is called here.
     */
    void (*on_death)(struct child *child, int status, unsigned deaths, void *data);
    void (*on_stopped)(struct child *child, void *data); /* after child_stop() */
};

/* The spec and its texts must outlive the child. */
int child_new(uv_loop_t *loop, const struct child_spec *spec, const struct child_ops *ops,
              void *data, struct child **ret, struct aq_error *err);
/* It must have stopped; the loop must run once more. NULL is fine. */
void child_free(struct child *child);

int child_start(struct child *child, struct aq_error *err);

/* SIGTERM, and SIGKILL after 'grace_msec'; on_stopped() follows, also if it
 * does not run.
 */
void child_stop(struct child *child, unsigned grace_msec);

/* Look whether it has ended; called for every SIGCHLD. */
void child_reap(struct child *child);

const char *child_get_name(const struct child *child);
pid_t child_get_pid(const struct child *child); /* 0 = does not run */
bool child_is_ready(const struct child *child);
/* Started, stopping or about to be restarted. */
bool child_is_active(const struct child *child);

#endif
