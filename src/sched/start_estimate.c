/* SPDX-License-Identifier: Apache-2.0 */
/* start_estimate.c - when the sessions that wait will start, as far as lifetimes tell
 *
 * The queue is walked as a pass would, against the agents' future
 * (forecast.c): each session gets its earliest time beside those before it.
 * Where nothing may pass a session that waits for resources, none behind it starts
 * earlier. The end of a session without a lifetime is not known, in a pass as here,
 * so a start time rests on lifetimes alone.
 */

#include "sched/scheduler_internal.h"

struct start_estimator {
    struct sched *s;
    struct forecast *forecast;
    struct arena *arena;
    int64_t now_usec, from_usec; /* not before */
    size_t max, count;
    bool is_behind; /* one that holds up the rest has no start */
    struct sched_start_estimate *planned;
};

/* Do those behind have to wait for 'e'? */
static bool estimate_holds_up(const struct start_estimator *p, const struct sched_entry *e)
{
    const struct sched_options *o = &p->s->options;

    return !o->backfill && !(o->sequencer->may_pass && o->sequencer->may_pass(p->s, e));
}

/* What a pass keeps for 'e', and what it keeps from it. */
static void estimate_find_delay(struct start_estimator *p, struct sched_entry *e,
                                struct sched_start_estimate *ret)
{
    if (ret->starts_usec > p->now_usec)
        ret->promised = forecast_find_promised(p->forecast, e);
    if (ret->promised == (uint32_t)(e - p->s->entries))
        ret->promised = SCHED_NO_SESSION;
    ret->is_due = ret->start == SCHED_START_OPEN && claim_is_due(p->s, e, p->now_usec);
    ret->has_claim = ret->is_due && claim_keep(p->forecast, e, false);
}

static void estimate_find_start(struct start_estimator *p, struct sched_entry *e,
                                struct sched_start_estimate *ret)
{
    uint32_t account;

    if (place_find_obstacle(p->s, e, p->arena) == SCHED_NO_CAPACITY
        || validate_entry(p->s, e, p->now_usec, &account) != SCHED_PLACED) {
        ret->start = SCHED_START_RULED_OUT;
        return;
    }
    if (p->is_behind) {
        ret->start = SCHED_START_BEHIND;
        return;
    }
    booked_limit_lifetime(p->s, e, p->now_usec);
    ret->starts_usec = forecast_estimate_start(p->forecast, e, p->from_usec);
    ret->start = ret->starts_usec == INT64_MAX ? SCHED_START_OPEN : SCHED_START_AT;
    if (p->s->options.backfill)
        estimate_find_delay(p, e, ret);
    else if (!estimate_holds_up(p, e))
        return;
    else if (ret->start == SCHED_START_AT)
        p->from_usec = ret->starts_usec;
    else
        p->is_behind = true;
}

static void estimate_band(struct start_estimator *p, size_t from, size_t to)
{
    const struct sequencer_ops *ops = p->s->options.sequencer;
    struct queue_order seq = { .s = p->s, .items = &p->s->queue[from], .count = to - from };
    uint32_t handle;

    if (ops->begin)
        ops->begin(&seq, p->arena);
    while (p->count < p->s->queue_count && (handle = ops->next(&seq)) != NO_HANDLE) {
        struct sched_start_estimate *to_fill = &p->planned[p->count];

        *to_fill = (struct sched_start_estimate){ .handle = handle,
                                                  .start = SCHED_START_NOT_ESTIMATED,
                                                  .promised = SCHED_NO_SESSION };
        if (p->count < p->max)
            estimate_find_start(p, &p->s->entries[handle], to_fill);
        p->count++;
    }
}

size_t sched_estimate_starts(struct sched *s, int64_t now_usec, size_t max, struct arena *arena,
                             struct sched_start_estimate **ret)
{
    struct start_estimator p = {
        .s = s, .arena = arena, .now_usec = now_usec, .from_usec = now_usec, .max = max
    };

    wait_queue_close_gaps(s);
    booked_advance(s, now_usec);
    p.planned = arena_array(arena, s->queue_count + 1, sizeof(*p.planned));
    p.forecast = forecast_new(s, now_usec, false, arena);
    for (size_t from = 0, to; from < s->queue_count; from = to) {
        to = wait_queue_band_end(s, from);
        if (s->queue[from].unit == SCHED_SESSION)
            estimate_band(&p, from, to);
    }
    *ret = p.planned;
    return p.count;
}
