/* SPDX-License-Identifier: Apache-2.0 */
/* rollout.h - how a service goes from one revision to another
 *
 * A caller says how many replicas each revision has; the answer is how many each should have, how
 * requests are divided, and whether the rollout has ended. State is a value that the caller keeps
 * durably; asked again with the same state and sample, the answer is the same. Pure. Times are
 * wall-clock microseconds.
 *
 *   rolling      new replicas up to goal + max_surge in all, where replicas that still drain count;
 *                old ones go as new ones are ready, so that goal - max_unavailable stay; an old one
 *                that ends is not replaced, and one that was never ready goes at once
 *   blue-green   a second group of replicas gets no request until all are ready and it is promoted;
 *                then it gets all, and after 'keep' the old group drains. Until it is promoted the
 *                old group has as many replicas as are wanted, also when the goal grows
 *   canary       as rolling, in steps: at most so many new replicas as the step's percentage, and
 *                that part of requests; the others stay old ones, and are replaced if they end
 *
 * A rollout is aborted when too many new replicas fail, or when new ones answer with more errors or
 * more slowly than old ones. Aborting is a rolling rollout in the other direction: 'from' and 'to' of
 * the state change places. As JSON (model_service.rollout):
 *
 *     {"strategy": "canary", "max_surge": 1, "max_unavailable": "25%", "steps": [5, 25, 50],
 *      "step_interval": 300, "when_full": "replace",
 *      "abort": {"failures": 3, "error_ratio": 0.05, "latency_ratio": 2, "requests": 20},
 *      "state": {"phase": "running", "from": 3, "to": 4, ...}}
 */
#ifndef AQ_SERVING_ROLLOUT_H
#define AQ_SERVING_ROLLOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/jsonw.h"

#define ROLLOUT_STEPS_MAX 20
#define ROLLOUT_BYTES_MAX (16 << 10) /* of the JSON */
#define ROLLOUT_FULL_PPM 1000000     /* a replica gets as many requests as others */

enum rollout_strategy { ROLLOUT_ROLLING, ROLLOUT_BLUE_GREEN, ROLLOUT_CANARY };

/* What to do if resources have no room for a new replica. */
enum rollout_when_full {
    ROLLOUT_WAIT,    /* until there is */
    ROLLOUT_REPLACE, /* an old one ends first: fewer replicas than the goal meanwhile */
    ROLLOUT_SHARE, /* an old and a new replica have half a share each until the old one has ended */
};

struct rollout_amount {
    int64_t value;
    bool is_percent; /* of the goal */
};

struct rollout {
    enum rollout_strategy strategy;
    struct rollout_amount max_surge;       /* rounded up; default 1 */
    struct rollout_amount max_unavailable; /* rounded down; default 0 */
    int64_t steps[ROLLOUT_STEPS_MAX];      /* of canary: percentages that grow, below 100 */
    size_t step_count;
    int64_t step_interval_usec; /* a step lasts so long, once its replicas are ready */
    bool promotes;              /* blue-green: not by hand, but after promote_delay_usec */
    int64_t promote_delay_usec, keep_usec;
    enum rollout_when_full when_full;
    /* Reasons to abort. */
    int64_t failures;     /* new replicas that failed; 0 = any number */
    double error_ratio;   /* of requests, more than the old revision's; 0 = not a reason */
    double latency_ratio; /* times the old revision's; 0 = not a reason */
    int64_t requests;     /* that a revision must have answered to be compared */
    int64_t stalled_usec; /* without progress; 0 = not a reason */
};

enum rollout_phase {
    ROLLOUT_NONE, /* there was none, or a new goal has not begun yet */
    ROLLOUT_RUNNING,
    ROLLOUT_READY,    /* blue-green: waits to be promoted */
    ROLLOUT_ABORTING, /* back to the revision before */
    ROLLOUT_DONE,
    ROLLOUT_ABORTED,
};

struct rollout_state {
    enum rollout_phase phase;
    int64_t from, to;        /* revisions */
    int64_t target;          /* new replicas that were wanted last */
    int64_t step;            /* of canary */
    int64_t since_usec;      /* the step, or the second group, is ready; 0 = not yet */
    int64_t progress_usec;   /* of the last change of the two next, or of 'target' */
    int64_t ready, live;     /* new ones that are ready, old ones that have not ended */
    int64_t failures;        /* of new ones, as the caller counts them, for rollout_side.failures */
    int64_t failures_before; /* of the revision 'to', before the rollout began: the caller's, too */
    int64_t shared;          /* pairs of an old and a new replica with half a share each */
    bool is_promoted;
    bool
        is_rolling; /* blue-green or canary that goes on as rolling: there is no room, or nothing to
                         try out */
    char reason[160]; /* of the last event, for people */
};

/* The replicas of one revision; what was counted of requests is of a recent time, such as a minute. */
struct rollout_side {
    int64_t live; /* have not ended, with those that drain */
    int64_t draining;
    int64_t starting; /* have never been ready, without those that drain */
    int64_t ready;    /* take requests, without those that drain */
    int64_t unplaced; /* wait for resources, for longer than a moment */
    int64_t failures; /* since the rollout began: ended before they were ready, or got unhealthy */
    int64_t requests, errors;
    double latency_sec; /* mean */
};

struct rollout_sample {
    int64_t now_usec, goal;       /* replicas of the service */
    struct rollout_side old, new; /* new: of the state's 'to'; old: of all other revisions */
    bool promote, abort;          /* asked for by people; promote: of a canary, the next step */
};

enum rollout_event {
    ROLLOUT_NOTHING,
    ROLLOUT_STEPPED,
    ROLLOUT_IS_READY,
    ROLLOUT_PROMOTED,
    ROLLOUT_ABORTS, /* the goal of the service is state.to from now on: the revision before */
    ROLLOUT_ENDED,
};

struct rollout_actions {
    int64_t old_wanted, new_wanted;       /* replicas that do not drain; may be more than there are,
                                             old ones are then of the state's 'from' */
    int64_t old_ratio_ppm, new_ratio_ppm; /* of requests, for each replica; 0 = it gets none */
    int64_t shared;                       /* pairs that have half a share each */
    int64_t wake_usec; /* when time alone changes the answer; INT64_MAX = never */
    enum rollout_event event;
};

/* The default: rolling, one more at a time. */
struct rollout rollout_default(void);

/* Read and check. *ret_state is zeroed if the text has none. -EINVAL, -E2BIG: the field is
 * "rollout.steps[1]".
 */
int rollout_parse(const char *text, size_t len, struct arena *arena, struct rollout *ret,
                  struct rollout_state *ret_state, struct aq_error *err) AQ_UNTRUSTED;
/* 'state' NULL = none. */
void rollout_write(const struct rollout *rollout, const struct rollout_state *state,
                   struct jsonw *w);
/* The members of the settings; the object is open. */
void rollout_write_settings(const struct rollout *rollout, struct jsonw *w);
/* Begin to go from one revision to another, also while a rollout runs. 'from' 0: there is none to go
 * back to, and it is never aborted.
 */
struct rollout_state rollout_begin(int64_t from, int64_t to, int64_t now_usec);

/* As in JSON: "blue-green", "aborting". Static. */
const char *rollout_strategy_name(enum rollout_strategy strategy);
const char *rollout_phase_name(enum rollout_phase phase);

static inline bool rollout_is_under_way(const struct rollout_state *state)
{
    return state->phase == ROLLOUT_RUNNING || state->phase == ROLLOUT_READY
           || state->phase == ROLLOUT_ABORTING;
}

/* Change 'state' by what the sample says, and answer what to do. Without a rollout under way all
 * replicas are new.
 */
void rollout_decide(const struct rollout *rollout, struct rollout_state *state,
                    const struct rollout_sample *sample, struct rollout_actions *ret);

#endif
