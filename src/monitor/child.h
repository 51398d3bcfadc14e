/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - starts the program, and ends everything that came from it
 *
 * The caller is a subreaper (PR_SET_CHILD_SUBREAPER): whatever the program
 * leaves behind becomes the caller's child, so ending all children until
 * there are none ends everything.
 */
#ifndef AQ_MONITOR_CHILD_H
#define AQ_MONITOR_CHILD_H

#include <sys/types.h>

#include "monitor/program.h"
#include "monitor/runner_link.h"

struct child {
    pid_t pid;     /* leader of its own session and process group */
    int output;    /* pipe or terminal, not blocking */
    int input;     /* the terminal, or -1 */
    int feed;      /* what is written to it is standard input, without a terminal; or -1 */
    int bootstrap; /* a byte comes when the bootstrap script has succeeded; -1 = there is none, or
                      the runner says it */
};

/* The same descriptor, out of the way of those that the program gets; -1 stays -1. */
int child_raise_program(int fd);

/* Start it, with the descriptors of 'runner' unless that is NULL; it dies by
 * SIGKILL when the calling process does. 'executable' is the file of its first
 * arg, opened before, or -1. Returns when it has been executed, or -errno with
 * the step that failed.
 */
int child_start(const struct program *program, int executable, const struct runner_link *runner,
                struct child *ret, struct aq_error *err);

/* In another child that shall be as the program: its limits, and signals as programs expect
 * them. 0 or -errno.
 */
int child_set_usual(const struct program *program);

/* A descriptor of its mount namespace, or -1: until it is closed the mounts stay.
 * To unmount a file system takes milliseconds, in the exit of the last process.
 */
int child_open_mounts(const struct child *child);

/* SIGKILL to all children and their children, and wait for them. */
void child_kill_all(void);

/* SIGKILL to every process of this machine whose environment has 'marker'
 * ("NAME=value"), until none is found. For what a killed monitor left.
 */
void child_kill_marked(const char *marker);

#endif
