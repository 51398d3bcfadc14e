/* SPDX-License-Identifier: Apache-2.0 */
/* rollout.c - how a service goes from one revision to another */
#include "serving/rollout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define ROLLOUT_FAILURES 3
#define ROLLOUT_REQUESTS 20
#define ROLLOUT_STEP_USEC (300 * USEC_PER_SEC) /* enough to see errors, which are of one minute */

struct rollout rollout_default(void)
{
    return (struct rollout){ .max_surge = { 1, false },
                             .step_interval_usec = ROLLOUT_STEP_USEC,
                             .failures = ROLLOUT_FAILURES,
                             .requests = ROLLOUT_REQUESTS };
}

struct rollout_state rollout_begin(int64_t from, int64_t to, int64_t now_usec)
{
    return (struct rollout_state){
        .phase = ROLLOUT_RUNNING, .from = from, .to = to, .progress_usec = now_usec
    };
}

static int64_t rollout_up(int64_t part, int64_t whole)
{
    return (part * whole + 99) / 100;
}

/* How many more and fewer replicas than the goal there may be. One of both is at least 1. */
static void rollout_resolve(const struct rollout *rollout, const struct rollout_sample *s,
                            int64_t *ret_surge, int64_t *ret_unavailable)
{
    const struct rollout_amount *surge = &rollout->max_surge, *less = &rollout->max_unavailable;

    *ret_surge = surge->is_percent ? rollout_up(surge->value, s->goal) : surge->value;
    *ret_unavailable = less->is_percent ? less->value * s->goal / 100 : less->value;
    if (rollout->when_full == ROLLOUT_REPLACE && s->new.unplaced > 0)
        *ret_unavailable = AQ_MAX(*ret_unavailable, 1);
    if (*ret_surge == 0 && *ret_unavailable == 0)
        *ret_unavailable = 1;
}

static int64_t rollout_serving(const struct rollout_side *side)
{
    return side->live - side->draining;
}

static void rollout_note(struct rollout_state *state, struct rollout_actions *actions,
                         enum rollout_event event, const char *text)
{
    actions->event = event;
    (void)snprintf(state->reason, sizeof(state->reason), "%s", text);
}

/* Microseconds since 'usec'; a clock that went back counts as no time. */
static int64_t rollout_since(const struct rollout_sample *s, int64_t usec)
{
    return AQ_MAX(s->now_usec - usec, 0);
}

/* ---- aborting ---- */

static double rollout_error_ratio(const struct rollout_side *side)
{
    return side->requests ? (double)side->errors / (double)side->requests : 0;
}

/* The time without progress counts only while new replicas have to become ready: a drain, a step and
 * people may take longer.
 */
static bool rollout_is_waiting(const struct rollout *rollout, const struct rollout_state *state,
                               const struct rollout_sample *s)
{
    return rollout->stalled_usec && s->new.ready < state->target;
}

/* Why the rollout must not go on; false = no reason. */
static bool rollout_has_failed(const struct rollout *rollout, const struct rollout_state *state,
                               const struct rollout_sample *s, char *why, size_t size)
{
    const struct rollout_side *old = &s->old, *new = &s->new;
    bool is_measured = new->requests > 0 && new->requests >= rollout->requests;

    if (s->abort)
        (void)snprintf(why, size, "aborted by request");
    else if (rollout->failures && new->failures >= rollout->failures)
        (void)snprintf(why, size, "%" PRId64 " replicas of revision %" PRId64 " failed",
                       new->failures, state->to);
    else if (rollout->error_ratio > 0 && is_measured
             && rollout_error_ratio(new) - rollout_error_ratio(old) > rollout->error_ratio)
        (void)snprintf(why, size,
                       "%.1f %% of requests to revision %" PRId64 " failed, %.1f %% to revision "
                       "%" PRId64,
                       100 * rollout_error_ratio(new), state->to, 100 * rollout_error_ratio(old),
                       state->from);
    else if (rollout->latency_ratio > 0 && is_measured && old->requests > 0
             && old->requests >= rollout->requests
             && new->latency_sec > rollout->latency_ratio * old->latency_sec)
        (void)snprintf(why, size,
                       "revision %" PRId64 " answers in %.3g s, revision %" PRId64 " in %.3g s",
                       state->to, new->latency_sec, state->from, old->latency_sec);
    else if (rollout_is_waiting(rollout, state, s)
             && rollout_since(s, state->progress_usec) >= rollout->stalled_usec)
        (void)snprintf(why, size, "no progress for %" PRId64 " s",
                       rollout_since(s, state->progress_usec) / USEC_PER_SEC);
    else
        return false;
    return true;
}

/* ---- strategies ---- */

/* So many old replicas are to stay, or to be there again: only if their revision is known. */
static int64_t rollout_keep(const struct rollout_state *state, const struct rollout_sample *s,
                            int64_t least)
{
    return AQ_MAX(state->from > 0 ? least : AQ_MIN(least, rollout_serving(&s->old)), 0);
}

/* Replace old by new ones, of which at most 'most' are wanted and 'least' old ones stay. */
static void rollout_roll(const struct rollout *rollout, const struct rollout_state *state,
                         const struct rollout_sample *s, int64_t most, int64_t least,
                         struct rollout_actions *ret)
{
    int64_t surge, unavailable, old = rollout_serving(&s->old);

    rollout_resolve(rollout, s, &surge, &unavailable);
    if (least > 0)
        surge = AQ_MAX(surge, 1); /* old ones stay, so there must be room for a new one */
    ret->old_wanted = AQ_MIN(s->goal - unavailable - s->new.ready, old - s->old.starting);
    ret->old_wanted = AQ_MAX(ret->old_wanted, rollout_keep(state, s, least));
    ret->new_wanted = s->goal + surge - s->old.live - s->new.draining;
    ret->new_wanted = AQ_MAX(ret->new_wanted, AQ_MAX(state->target, rollout_serving(&s->new)));
    /* One pair after the other: a half that is free is for its own partner. */
    if (state->shared > 0)
        ret->new_wanted = AQ_MIN(ret->new_wanted,
                                 AQ_MAX(s->goal + 1 - s->old.live - s->new.draining,
                                        rollout_serving(&s->new) - s->new.unplaced));
    ret->new_wanted = AQ_MAX(AQ_MIN(ret->new_wanted, most), 0);
}

static void rollout_decide_blue_green(const struct rollout *rollout, struct rollout_state *state,
                                      const struct rollout_sample *s, struct rollout_actions *ret)
{
    ret->new_wanted = s->goal;
    ret->old_wanted = rollout_keep(state, s, s->goal);
    if (!state->is_promoted && s->new.ready >= s->goal && !state->since_usec) {
        state->since_usec = s->now_usec;
        state->phase = ROLLOUT_READY;
        rollout_note(state, ret, ROLLOUT_IS_READY, "all new replicas are ready");
    }
    if (state->phase == ROLLOUT_READY && s->new.ready >= s->goal
        && (s->promote
            || (rollout->promotes
                && rollout_since(s, state->since_usec) >= rollout->promote_delay_usec))) {
        state->is_promoted = true;
        state->phase = ROLLOUT_RUNNING;
        state->since_usec = s->now_usec;
        rollout_note(state, ret, ROLLOUT_PROMOTED, "the new replicas get all requests");
    }
    if (state->phase == ROLLOUT_READY && rollout->promotes)
        ret->wake_usec = AQ_MIN(ret->wake_usec, state->since_usec + rollout->promote_delay_usec);
    if (state->is_promoted) { /* they are not needed, and not replaced */
        bool is_over = rollout_since(s, state->since_usec) >= rollout->keep_usec;

        ret->old_wanted = is_over ? 0 : AQ_MIN(s->goal, rollout_serving(&s->old));
        if (!is_over)
            ret->wake_usec = AQ_MIN(ret->wake_usec, state->since_usec + rollout->keep_usec);
    }
    ret->old_ratio_ppm = state->is_promoted ? 0 : ROLLOUT_FULL_PPM;
    ret->new_ratio_ppm = state->is_promoted ? ROLLOUT_FULL_PPM : 0;
}

/* Divide requests so that new replicas get 'percent' of them, however many of each there are. */
static void rollout_divide(const struct rollout_sample *s, int64_t percent,
                           struct rollout_actions *ret)
{
    double new = s->new.ready > 0 ? (double)percent / (double)s->new.ready : 0;
    double old = s->old.ready > 0 ? (double)(100 - percent) / (double)s->old.ready : 0;
    double most = AQ_MAX(new, old);

    if (s->new.ready <= 0 || s->old.ready <= 0)
        return;
    ret->new_ratio_ppm = AQ_MAX((int64_t)(new / most *ROLLOUT_FULL_PPM + 0.5), 1);
    ret->old_ratio_ppm = AQ_MAX((int64_t)(old / most * ROLLOUT_FULL_PPM + 0.5), 1);
}

static void rollout_decide_canary(const struct rollout *rollout, struct rollout_state *state,
                                  const struct rollout_sample *s, struct rollout_actions *ret)
{
    bool is_last = state->step >= (int64_t)rollout->step_count;
    int64_t percent = is_last ? 100 : rollout->steps[state->step];
    int64_t most = rollout_up(percent, s->goal);
    int64_t least = is_last ? 0 : rollout_up(100 - percent, s->goal);
    char text[64];

    rollout_roll(rollout, state, s, most, least, ret);
    if (is_last)
        return;
    rollout_divide(s, percent, ret);
    if (s->new.ready < most)
        return;
    if (!state->since_usec)
        state->since_usec = s->now_usec;
    if (!s->promote && rollout_since(s, state->since_usec) < rollout->step_interval_usec) {
        ret->wake_usec = AQ_MIN(ret->wake_usec, state->since_usec + rollout->step_interval_usec);
        return;
    }
    state->step++;
    state->since_usec = 0;
    state->progress_usec = s->now_usec;
    percent = state->step < (int64_t)rollout->step_count ? rollout->steps[state->step] : 100;
    (void)snprintf(text, sizeof(text), "new replicas get %" PRId64 " %% of requests", percent);
    rollout_note(state, ret, ROLLOUT_STEPPED, text);
}

/* ---- all ---- */

/* Where a second replica has no room, and old ones may go first, a part of requests can be neither
 * kept from new replicas nor reserved for old ones.
 */
static void rollout_fall_back(const struct rollout *rollout, struct rollout_state *state,
                              const struct rollout_sample *s)
{
    if (rollout->strategy != ROLLOUT_ROLLING && rollout->when_full == ROLLOUT_REPLACE
        && s->new.unplaced > 0 && !state->is_promoted) {
        state->is_rolling = true;
        state->phase = ROLLOUT_RUNNING;
    }
}

/* Pairs of replicas with half a share, until nothing is there twice: as many as have no room where all
 * new replicas are there before an old one goes, else one. With two, the half that the first old
 * replica leaves could go to a third new one, and none of both on that card could grow. A new replica
 * that waits is replaced by one of half the share, and is missing for that moment.
 */
static void rollout_share(const struct rollout *rollout, struct rollout_state *state,
                          const struct rollout_sample *s, bool is_rolling)
{
    bool is_group = rollout->strategy == ROLLOUT_BLUE_GREEN && !is_rolling;

    if (rollout->when_full == ROLLOUT_SHARE && s->new.unplaced > 0)
        state->shared = is_group ? AQ_MAX(state->shared, s->new.unplaced) : 1;
    state->shared = AQ_MIN(state->shared, s->old.live);
    if (s->old.live + s->new.live <= s->goal && s->new.live >= state->target)
        state->shared = 0;
}

static void rollout_note_progress(struct rollout_state *state, const struct rollout_sample *s)
{
    if (s->new.ready != state->ready || s->old.live != state->live)
        state->progress_usec = s->now_usec;
    state->ready = s->new.ready;
    state->live = s->old.live;
    /* The clock was set back: what has begun begins now. */
    state->progress_usec = AQ_MIN(state->progress_usec, s->now_usec);
    state->since_usec = AQ_MIN(state->since_usec, s->now_usec);
}

/* The replicas of both sides change their parts, and so do the numbers that are kept of them. */
static void rollout_turn(struct rollout_state *state, struct rollout_sample *s)
{
    struct rollout_side side = s->old;
    int64_t from = state->from;

    s->old = s->new;
    s->new = side;
    *state = (struct rollout_state){ .phase = ROLLOUT_ABORTING,
                                     .from = state->to,
                                     .to = from,
                                     .progress_usec = s->now_usec,
                                     .target = rollout_serving(&s->new),
                                     .ready = s->new.ready,
                                     .live = s->old.live };
}

void rollout_decide(const struct rollout *rollout, struct rollout_state *state,
                    const struct rollout_sample *sample, struct rollout_actions *ret)
{
    struct rollout_sample s = *sample;
    bool is_rolling, is_last;

    *ret = (struct rollout_actions){ .new_wanted = s.goal,
                                     .old_ratio_ppm = ROLLOUT_FULL_PPM,
                                     .new_ratio_ppm = ROLLOUT_FULL_PPM,
                                     .wake_usec = INT64_MAX };
    if (!rollout_is_under_way(state))
        return;
    rollout_note_progress(state, &s);
    if (state->phase != ROLLOUT_ABORTING) {
        char why[sizeof(state->reason)];

        if (state->from > 0 && rollout_has_failed(rollout, state, &s, why, sizeof(why))) {
            rollout_turn(state, &s);
            rollout_note(state, ret, ROLLOUT_ABORTS, why);
        } else {
            rollout_fall_back(rollout, state, &s);
        }
    }
    is_rolling = state->phase == ROLLOUT_ABORTING || rollout->strategy == ROLLOUT_ROLLING
                 || state->is_rolling || s.goal == 0;
    rollout_share(rollout, state, &s,
                  is_rolling); /* by the last target, which counts new replicas */
    ret->shared = state->shared;
    if (is_rolling)
        rollout_roll(rollout, state, &s, s.goal, 0, ret);
    else if (rollout->strategy == ROLLOUT_BLUE_GREEN)
        rollout_decide_blue_green(rollout, state, &s, ret);
    else
        rollout_decide_canary(rollout, state, &s, ret);
    if (state->target != ret->new_wanted)
        state->progress_usec = s.now_usec;
    state->target = ret->new_wanted;
    if (state->phase != ROLLOUT_ABORTING && rollout_is_waiting(rollout, state, &s))
        ret->wake_usec = AQ_MIN(ret->wake_usec, state->progress_usec + rollout->stalled_usec);

    is_last = is_rolling || state->is_promoted
              || (rollout->strategy == ROLLOUT_CANARY
                  && state->step >= (int64_t)rollout->step_count);
    if (is_last && s.old.live == 0 && s.new.ready >= s.goal && ret->event == ROLLOUT_NOTHING) {
        state->phase = state->phase == ROLLOUT_ABORTING ? ROLLOUT_ABORTED : ROLLOUT_DONE;
        ret->event = ROLLOUT_ENDED;
    }
}
