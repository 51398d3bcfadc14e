/* SPDX-License-Identifier: Apache-2.0 */
/* follow_internal.h - what follow.c, follow_events.c, follow_log.c and follow_show.c share */
#ifndef AQ_CLI_SESSION_FOLLOW_INTERNAL_H
#define AQ_CLI_SESSION_FOLLOW_INTERNAL_H

#include <uv.h>

#include "cli/client.h"
#include "cli/session/follow.h"
#include "cli/session/kernel_logs.h"
#include "cli/output/progress.h"
#include "http/sse.h"
#include "model/status.h"

struct follow;
struct follow_input;

/* One session and its log. */
struct followed {
    struct follow *all;
    const struct follow_session *session;
    enum session_status status;
    bool is_known; /* 'status' has been read */
    bool is_final;
    bool has_exit;
    bool names_kernel; /* the failure of one of several ended it */
    bool ask_again;    /* something happened while we were asking */
    int exit_code;
    char reason[240]; /* of the session; of one that waits: what for, in words */
    char pull[400];   /* how far its image is, or "" */
    struct exchange *asking, *asking_why;

    struct follow_input *input; /* NULL until it runs, or it gets none */
    bool is_input_cut;          /* it did not get all */

    struct kernel_logs *kernels; /* of a session that has several, in place of what follows */
    struct exchange *log;
    bool log_is_known;  /* one log, or 'kernels': the session was read, or has one kernel */
    bool log_is_done;   /* ended in order, or there is none */
    unsigned log_tries; /* since the last byte */
    uint64_t log_seen;  /* bytes shown */
    uint64_t log_skip;  /* bytes to pass over after opening again */
    struct strbuf line; /* FOLLOW_PREFIX: begun, not complete */
};

struct follow {
    struct cli *cli;
    uv_loop_t *loop;
    struct client *client;
    unsigned flags;
    struct followed *items;
    size_t count;
    struct exchange *events;
    struct sse_reader *reader;
    char last_event[64]; /* id of the last one: a stream that broke goes on after it */
    bool is_catching_up; /* events are of the past, until the stream says that they are not */
    uv_timer_t tick;
    uv_signal_t interrupt, quit;
    unsigned handles; /* open ones of the three above */
    unsigned interrupts;
    int64_t deadline_usec, poll_usec, lost_usec, new_until_usec; /* monotonic; 0 = none */
    bool is_over;
    int r;
    struct aq_error err;
    struct progress progress;
};

/* Stop with the error in f->err. */
void follow_fail(struct follow *f);

/* End if there is nothing to wait for any more. */
void follow_check(struct follow *f);

/* Append "<base><id><rest>" and the owner. */
void follow_path(const struct followed *item, const char *base, const char *rest,
                 struct strbuf *path);

/* Read the session's state, or that of all. */
void follow_ask(struct followed *item);
void follow_ask_all(struct follow *f);

/* It is known to be in this state; 'reason' may be NULL. */
void follow_set_stage(struct followed *item, enum session_status status, const char *reason);

/* New sessions are mostly where they began still, and short ones are over before we would ask for
 * what happened to them before we listened.
 */
bool follow_are_new(const struct follow *f);

/* Listen, from the last event on if there was one; if that fails, polling alone has to do until the
 * next try.
 */
void follow_listen_to_events(struct follow *f);

/* Show how far they are. */
void follow_show(struct follow *f);

/* Open the log if it is time to. */
void follow_log_need(struct followed *item);
/* The session as the manager shows it says which logs it has. */
void follow_log_update(struct followed *item, const json_t *session);
void follow_log_done(struct followed *item); /* release */

/* Find out what the only session waits for; its 'reason' becomes that. */
void follow_ask_why(struct followed *item);

/* The same, or both on the way from a place to the run. */
bool follow_is_same_stage(enum session_status a, enum session_status b);

/* Say why it ended, if it was not its program that did, or if one of several kernels failed. */
void follow_note_end(struct cli *cli, const struct follow_session *session, const char *reason,
                     bool names_kernel);

/* Give it our input, if it is to have that and runs. */
void follow_input_need(struct followed *item);
void follow_input_done(struct followed *item); /* runs the loop */

/* Is there nothing more to come from the log? */
bool follow_log_is_over(const struct followed *item);

#endif
