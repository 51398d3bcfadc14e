/* SPDX-License-Identifier: Apache-2.0 */
/* monitor_internal.h - what monitor.c, commands.c, lease.c, exit_reason.c and outputs.c share */
#ifndef AQ_MONITOR_MONITOR_INTERNAL_H
#define AQ_MONITOR_MONITOR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "monitor/cgroup.h"
#include "monitor/child.h"
#include "monitor/clients.h"
#include "monitor/command_runner.h"
#include "monitor/input.h"
#include "monitor/log_ring.h"
#include "monitor/program.h"
#include "monitor/protocol.h"
#include "monitor/runner_link.h"

/* What an epoll event is about; slots of clients follow from SOURCE_CLIENT. */
enum {
    SOURCE_SIGNAL,
    SOURCE_OUTPUT,
    SOURCE_LISTENER,
    SOURCE_TIMER,
    SOURCE_RUNNER,
    SOURCE_COMMAND,     /* somebody wants a further command run */
    SOURCE_INPUT,       /* its pipe has room */
    SOURCE_INPUT_TIMER, /* nobody came to give any */
    SOURCE_BOOTSTRAP,   /* the bootstrap script has ended */
    SOURCE_LEASE,       /* the lease is over, or its grace */
    SOURCE_CLIENT
};

/* Steps of ending a program. Each happens at most once, and can only be moved earlier. */
enum monitor_step {
    MONITOR_STEP_LIMIT, /* the run-time limit is reached */
    MONITOR_STEP_WARN,  /* before the limit: program.warn_signal */
    MONITOR_STEP_TERM,  /* SIGTERM, after program.notice_signal */
    MONITOR_STEP_KILL,
};

struct monitor {
    int directory, lock, epoll, signals, timer;
    int memory; /* cgroups_watch_memory() */
    int mounts; /* keeps the container's mounts until we have told of its end */
    int output; /* file of values of a program without a container; -1 = none */
    struct program program;
    struct child child;
    int executable; /* what the program is started from; -1 = its path */
    struct clients clients;
    struct input input;
    struct log_ring log;
    struct runner_link runner;
    struct command_runner commands; /* without a container */
    int kept[MONITOR_KEPT];         /* of the agent, which may end before us; -1 = none */
    bool is_running, has_tty;       /* as told to clients */
    bool has_booted;                /* its bootstrap script has succeeded, or there is none */
    bool is_terminal_full;          /* and somebody who types waits for it */
    int64_t started_usec;
    int64_t listen_usec; /* monotonic: when to listen, or to try it again */
    bool has_warned;     /* that it cannot listen */
    bool is_ended;       /* the program itself; 'status' is of waitpid() */
    int status;
    struct {
        int timer;                      /* CLOCK_BOOTTIME */
        int64_t until_usec, grace_usec; /* as in struct monitor_lease */
    } lease;
    const char *reason;     /* why it is being ended; NULL = it is not */
    enum monitor_step next; /* step for which the timer is set */
    int64_t grace_usec;     /* from MONITOR_STEP_TERM to SIGKILL */
    bool has_grace;         /* it is being ended, and SIGKILL follows */
};

#define LISTEN_MSEC 1000

/* Have monitor_loop() told when the descriptor is readable (of SOURCE_INPUT: writable). */
void monitor_watch(struct monitor *m, int fd, uint32_t source);

void monitor_kill_program(const struct monitor *m);

/* Send the program's notice_signal now, or its warn_signal unless that was sent before, and SIGTERM
 * after the notice; without a notice or a signal, SIGTERM now. SIGKILL follows after the grace; grace 0 = SIGKILL now. Repeated
 * calls can only shorten the times.
 */
void monitor_end_program(struct monitor *m, const char *reason, int64_t notice_usec,
                         int64_t grace_usec);

/* ---- lease.c ---- */

/* Replace the lease; arguments as in struct monitor_lease. */
void lease_set(struct monitor *m, int64_t until_usec, int64_t grace_usec);

/* End the program, or kill it if the grace is over, too. */
void lease_on_timer(struct monitor *m);

/* ---- commands.c ---- */

/* Read a client's packet, and do what it says; 'events' are of epoll_wait(). */
void commands_on_client(struct monitor *m, int slot, uint32_t events);

/* Give output, which is in the log already, to those who are attached. */
void commands_pass_output(struct monitor *m, const char *bytes, size_t len);
void commands_on_connection(struct monitor *m);
void commands_on_input_room(struct monitor *m);

/* Give the terminal what it did not take of what was typed. */
void commands_type_on(struct monitor *m);

/* Tell connected clients that the program runs. */
void commands_greet_all(struct monitor *m);

/* Listen while somebody may have to reach us, and at latest LISTEN_MSEC after the start: a disk that
 * fails later does not take another socket, and the next agent would lose the program. Short programs
 * do without. If there is no room for the socket, monitor_loop() tries again.
 */
void commands_listen_if_needed(struct monitor *m);

/* ---- outputs.c ---- */

/* Create the file of values of a program without a container, if it is to have one. */
void outputs_open(struct monitor *m);

/* What the program wrote, when all that could write has ended: JSON to free, NULL = nothing. NULL
 * with 'err' if the file breaks a rule, or cannot be read. 'report' is the runner's or NULL.
 */
char *outputs_read(const struct monitor *m, const struct runner_report *report,
                   struct aq_error *err);

/* Remove the file. */
void outputs_close(struct monitor *m);

/* ---- exit_reason.c; 'report' is the runner's, NULL = it left none ---- */

/* waitpid()'s status of the program: the runner's is as precise as our own. */
int exit_reason_find_status(const struct monitor *m, const struct runner_report *report);

/* MONITOR_EXITED and the like. */
const char *exit_reason_find(const struct monitor *m, int status, const struct memory_use *memory);

/* For users, to free: why the program did not start; that a process was killed for want of
 * memory, however the program ended. Else NULL.
 */
char *exit_reason_find_complaint(const struct monitor *m, const struct runner_report *report,
                                 const struct memory_use *memory);
char *exit_reason_describe_lack(const struct memory_use *memory);

#endif
