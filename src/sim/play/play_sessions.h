/* SPDX-License-Identifier: Apache-2.0 */
/* play_sessions.h - what users of a run were promised of each session, kept outside of the manager */
#ifndef AQ_SIM_PLAY_PLAY_SESSIONS_H
#define AQ_SIM_PLAY_PLAY_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "base/uuid.h"
#include "model/status.h"

struct play;
struct play_session;

/* What a program does on its own, which play_runtime.h is told in its command line. */
struct play_command {
    int64_t run_usec; /* -1 = forever */
    int code;
    bool is_oom, fails, is_stubborn;
};

struct play_session {
    struct list live_link; /* in play_sessions.live until its end is known */
    char *name;            /* unique in the run, as all texts here made for it */
    char *asked_name;      /* of a rename that has no answer yet; NULL = none */
    char *command;         /* NULL = a shell */
    struct play_command program;
    enum session_type type;
    struct play_session *needs; /* whose success it waits for; NULL = nobody's */
    const char *access_key;     /* static */
    int64_t asked_usec;         /* simulated time of the request */
    int kernels;
    int least_kernels;        /* with which it runs; 0 = all */
    int retries;              /* of a batch session that does not succeed */
    const char *on_node_loss; /* as of session_spec; static */
    bool is_preemptible, may_preempt;
    int64_t start_usec;   /* wall clock: not before; 0 = at once */
    int64_t cpus, shares; /* of each kernel; shares: of GPUs, millionths */
    int elements;         /* of an array; 0 = it is a session */
    bool is_acknowledged, is_end_asked, is_end_acknowledged, is_restart_asked, is_refused;
    int64_t end_usec; /* simulated time when its end was acknowledged */
    bool has_id, is_final;
    struct uuid id;
};

struct play_sessions {
    struct play_session **all; /* as they were asked for */
    size_t count, cap;
    struct list live;
    struct map by_id, by_name; /* by_name: every name that it had */
};

void play_sessions_begin(struct play_sessions *s);

/* A new one; it lives as long as the run. Takes the name. */
struct play_session *play_sessions_add(struct play_sessions *s, char *name);

/* Its id is known from now on. */
void play_sessions_identify(struct play_sessions *s, struct play_session *session,
                            const struct uuid *id);

struct play_session *play_sessions_find(const struct play_sessions *s, const struct uuid *id);
struct play_session *play_sessions_find_named(const struct play_sessions *s, const char *name);

#endif
