#include "sim/experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sim/stage.h"

/* Indexes of tasks, in the order in which they arrive. */
struct arrivals {
    uint32_t *items;
    size_t count, cap;
};

static int64_t demand_of(const struct trace_tasks *tasks)
{
    int64_t sum = 0;

    for (size_t i = 0; i < tasks->count; i++)
        sum += task_gpu_milli(&tasks->items[i]);
    return sum;
}

static int grow(struct arrivals *a, const struct trace_tasks *tasks, int64_t demand, double limit,
                struct random *random)
{
    while (demand < limit) {
        uint32_t i = (uint32_t)random_below(random, tasks->count);

        if ((double)(demand + tasks->items[i].gpu_milli) > limit)
            break;
        if (!vec_grow(&a->items, &a->cap, a->count + 1, sizeof(*a->items)))
            return -ENOMEM;
        a->items[a->count++] = i;
        demand += task_gpu_milli(&tasks->items[i]);
    }
    return 0;
}

static void cut(struct arrivals *a, const struct trace_tasks *tasks, int64_t demand, double limit,
                struct random *random)
{
    while ((double)demand > limit && a->count > 0) {
        size_t i = random_below(random, a->count);

        demand -= task_gpu_milli(&tasks->items[a->items[i]]);
        a->items[i] = a->items[--a->count];
    }
}

static int draw(struct arrivals *a, const struct trace_tasks *tasks, double limit,
                struct random *random)
{
    int64_t demand = demand_of(tasks);

    if (!vec_grow(&a->items, &a->cap, tasks->count + 1, sizeof(*a->items)))
        return -ENOMEM;
    for (size_t i = 0; i < tasks->count; i++)
        a->items[a->count++] = (uint32_t)i;
    if ((double)demand > limit)
        cut(a, tasks, demand, limit, random);
    else if (demand > 0 && grow(a, tasks, demand, limit, random) < 0)
        return -ENOMEM;
    for (size_t i = a->count; i > 1; i--) {
        size_t j = random_below(random, i);
        uint32_t other = a->items[i - 1];

        a->items[i - 1] = a->items[j];
        a->items[j] = other;
    }
    return 0;
}

/* 1 = placed, 0 = it fits nowhere. */
static int arrive(struct stage *s, uint32_t task, int64_t row, struct arena *arena,
                  struct aq_error *err)
{
    struct sched_session session = stage_session(s, task, row);
    struct sched_result result;
    uint32_t handle;
    int r = sched_add(s->sched, &session, &handle, err);

    if (r == 0)
        r = sched_pass(s->sched, 0, arena, &result, err);
    if (r < 0)
        return r;
    arena_clear(arena, 1 << 16);
    if (result.count == 1 && result.outcomes[0].verdict == SCHED_PLACED)
        return 1;
    return sched_drop(s->sched, handle) < 0 ? aq_fail(err, ENOMEM, "a replay") : 0;
}

static int place_all(const struct experiment *e, struct stage *s, const struct arrivals *a,
                     struct experiment_result *ret, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    int64_t allocated = 0, arrived = 0;
    double whole = (double)AQ_MAX(s->gpu_milli, INT64_C(1));

    for (size_t i = 0; i < a->count; i++) {
        int64_t gpu = task_gpu_milli(&e->tasks->items[a->items[i]]);
        int r = arrive(s, a->items[i], (int64_t)i, &arena, err);

        if (r < 0)
            return r;
        arrived += gpu;
        allocated += r ? gpu : 0;
        ret->placed += (size_t)r;
        while (ret->points < EXPERIMENT_POINTS &&
               100.0 * (double)arrived / whole >= (double)ret->points)
            ret->curve[ret->points++] = 100.0 * (double)allocated / whole;
    }
    ret->arrived = a->count;
    ret->gpu_allocation_pct = 100.0 * (double)allocated / whole;
    return 0;
}

int experiment_run(const struct experiment *e, uint64_t seed, struct experiment_result *ret,
                   struct aq_error *err)
{
    static const struct sched_options options = { .sequencer = &sched_fifo };
    struct random random = random_make(seed);
    struct arrivals a = { 0 };
    struct stage s;
    int r = stage_open(&s, e->nodes, e->tasks, e->policy, &options, seed, err);

    if (r < 0)
        return r;
    *ret = (struct experiment_result){ 0 };
    if (e->tasks->count == 0 || s.gpu_milli == 0)
        r = aq_fail(err, EINVAL, "the nodes have no GPU, or there is no task");
    if (r == 0 && draw(&a, e->tasks, e->arrival * (double)s.gpu_milli, &random) < 0)
        r = aq_fail(err, ENOMEM, "a replay");
    if (r == 0)
        r = place_all(e, &s, &a, ret, err);
    free(a.items);
    stage_close(&s);
    return r;
}
