/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - stay with sessions until they have ended
 *
 * State decides, events are hints: at events that do not say all there is to
 * know, and every few seconds, the sessions are read again, so that a lost event
 * or a manager that restarts costs time, not truth. Events and logs that break off
 * are continued where they broke.
 */
#ifndef AQ_CLI_SESSION_FOLLOW_H
#define AQ_CLI_SESSION_FOLLOW_H

#include "cli/cli.h"
#include "model/status.h"

enum {
    FOLLOW_LOGS = 1u << 0,    /* copy what the programs write to standard output */
    FOLLOW_CANCEL = 1u << 1,  /* Ctrl-C twice ends the sessions */
    FOLLOW_PREFIX = 1u << 2,  /* each line of a log begins with the session's name */
    FOLLOW_END = 1u << 3,     /* that they have ended is all that matters */
    FOLLOW_START = 1u << 4,   /* only until they run */
    FOLLOW_BARE = 1u << 5,    /* lines of several kernels do not begin with the kernel's name */
    FOLLOW_HIGHEST = 1u << 6, /* the highest exit status counts; one that never ran has failed */
};

struct follow_session {
    char id[40];
    char name[72];
    char owner[24];     /* access key, if it is another's; else "" */
    const char *array;  /* borrowed id of the array that Ctrl-C cancels; NULL = the session */
    const char *kernel; /* borrowed host name of the one that is reached; NULL = the main one */
    /* Of one that was just created; else false, and the manager is asked. */
    bool is_new;          /* it waits, as far as anybody knows */
    bool is_single;       /* it has one kernel: its exit status is the session's */
    bool has_input;       /* created with "input": "stream": it gets our standard input */
    int64_t timeout_usec; /* as it was asked for, to be named; 0 = not known */
};

/* Wait for all of them. *ret_exit becomes the exit status of the first (in the
 * given order) whose program failed, else 0; 'timeout_usec' 0 = none.
 * -ETIMEDOUT; -ECANCELED after Ctrl-C; -ECHILD if a session ended without
 * having run its program, or before FOLLOW_START was met, with its reason in 'err';
 * -ECONNABORTED if its program succeeded with a part of its input; or as cli_call().
 */
int follow_sessions(struct cli *cli, const struct follow_session *sessions, size_t count,
                    unsigned flags, int64_t timeout_usec, int *ret_exit, struct aq_error *err);

/* How a session ended. */
/* "its memory was used up" for the reason of an end, or NULL: the program ended by itself. */
const char *follow_end_text(const char *reason);

struct follow_end {
    enum session_status status;
    const char *reason; /* NULL or "" = none */
    bool has_exit;
    int exit_code;
};

/* Fill 'err' with it: -ECHILD. Asks the manager for the words of an agent. */
int follow_fail_ended(struct cli *cli, const struct follow_session *session,
                      const struct follow_end *end, struct aq_error *err);

#endif
