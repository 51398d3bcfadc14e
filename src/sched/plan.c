/* plan.c - when those that wait will start, as far as lifetimes tell
 *
 * The queue is gone through as a pass would, against the agents' future
 * (forecast.c): each session gets its earliest time beside those before it.
 * Where nothing may pass a session that waits for room, none behind it starts
 * earlier. A session that runs and has no lifetime is taken to run for ever,
 * so a time that is told is one that something promises.
 */
#include <errno.h>

#include "sched/state_private.h"

struct planner {
    struct sched *s;
    struct forecast *forecast;
    struct arena *arena;
    int64_t now_usec, from_usec; /* not before */
    size_t max, count;
    bool is_behind;              /* one that holds up the rest has no start */
    struct sched_planned *planned;
};

/* Do those behind have to wait for 'e'? */
static bool holds_up(const struct planner *p, const struct entry *e)
{
    const struct sched_options *o = &p->s->options;

    return !o->backfill && !(o->sequencer->may_pass && o->sequencer->may_pass(p->s, e));
}

static int find_start(struct planner *p, struct entry *e, struct sched_planned *ret)
{
    uint32_t account;

    if (validate_entry(p->s, e, p->now_usec, &account) != SCHED_PLACED) {
        ret->start = SCHED_START_RULED;
        return 0;
    }
    if (p->is_behind) {
        ret->start = SCHED_START_BEHIND;
        return 0;
    }
    if (forecast_plan(p->forecast, e, p->from_usec, &ret->starts_usec) < 0)
        return -ENOMEM;
    ret->start = ret->starts_usec == INT64_MAX ? SCHED_START_OPEN : SCHED_START_AT;
    if (!holds_up(p, e))
        return 0;
    if (ret->start == SCHED_START_AT)
        p->from_usec = ret->starts_usec;
    else
        p->is_behind = true;
    return 0;
}

static int plan_band(struct planner *p, size_t from, size_t to)
{
    const struct sequencer_ops *ops = p->s->options.sequencer;
    struct sequence seq = { .s = p->s, .items = &p->s->queue[from], .count = to - from };
    uint32_t handle;

    if (ops->begin && ops->begin(&seq, p->arena) < 0)
        return -ENOMEM;
    while (p->count < p->s->queue_count && (handle = ops->next(&seq)) != NO_HANDLE) {
        struct sched_planned *to_fill = &p->planned[p->count];

        *to_fill = (struct sched_planned){ handle, SCHED_START_FAR, 0 };
        if (p->count < p->max && find_start(p, &p->s->entries[handle], to_fill) < 0)
            return -ENOMEM;
        p->count++;
    }
    return 0;
}

int sched_plan(struct sched *s, int64_t now_usec, size_t max, struct arena *arena,
               struct sched_planned **ret)
{
    struct planner p = { .s = s, .arena = arena, .now_usec = now_usec, .from_usec = now_usec,
        .max = max };
    int r = 0;

    p.planned = arena_array(arena, s->queue_count + 1, sizeof(*p.planned));
    p.forecast = forecast_new(s, now_usec, true, arena);
    if (!p.planned || !p.forecast)
        return -ENOMEM;
    for (size_t from = 0, to; r == 0 && from < s->queue_count; from = to) {
        to = queue_band_end(s, from);
        r = plan_band(&p, from, to);
    }
    *ret = p.planned;
    return r < 0 ? r : (int)p.count;
}
