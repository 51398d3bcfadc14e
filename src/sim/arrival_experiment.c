/* SPDX-License-Identifier: Apache-2.0 */
/* arrival_experiment.c - how many GPUs can be allocated before nothing more fits */
#include "sim/arrival_experiment.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "sim/sim_cluster.h"

/* Indexes of tasks, in the order in which they arrive. */
struct experiment_arrivals {
    uint32_t *items;
    size_t count, cap;
};

static int64_t arrival_experiment_demand(const struct trace_tasks *tasks)
{
    int64_t sum = 0;

    for (size_t i = 0; i < tasks->count; i++)
        sum += task_gpu_milli(&tasks->items[i]);
    return sum;
}

static void arrival_experiment_grow(struct experiment_arrivals *a, const struct trace_tasks *tasks,
                                    int64_t demand, double limit, struct random *random)
{
    while (demand < limit) {
        uint32_t i = (uint32_t)random_below(random, tasks->count);

        if ((double)(demand + tasks->items[i].gpu_milli) > limit)
            break;
        vec_grow(&a->items, &a->cap, a->count + 1, sizeof(*a->items));
        a->items[a->count++] = i;
        demand += task_gpu_milli(&tasks->items[i]);
    }
}

static void arrival_experiment_cut(struct experiment_arrivals *a, const struct trace_tasks *tasks,
                                   int64_t demand, double limit, struct random *random)
{
    while ((double)demand > limit && a->count > 0) {
        size_t i = random_below(random, a->count);

        demand -= task_gpu_milli(&tasks->items[a->items[i]]);
        a->items[i] = a->items[--a->count];
    }
}

static void arrival_experiment_draw(struct experiment_arrivals *a, const struct trace_tasks *tasks,
                                    double limit, struct random *random)
{
    int64_t demand = arrival_experiment_demand(tasks);

    vec_grow(&a->items, &a->cap, tasks->count + 1, sizeof(*a->items));
    for (size_t i = 0; i < tasks->count; i++)
        a->items[a->count++] = (uint32_t)i;
    if ((double)demand > limit)
        arrival_experiment_cut(a, tasks, demand, limit, random);
    else if (demand > 0)
        arrival_experiment_grow(a, tasks, demand, limit, random);
    for (size_t i = a->count; i > 1; i--) {
        size_t j = random_below(random, i);
        uint32_t other = a->items[i - 1];

        a->items[i - 1] = a->items[j];
        a->items[j] = other;
    }
}

/* 1 = placed, 0 = it fits nowhere. */
static int arrival_experiment_place(struct sim_cluster *s, uint32_t task, int64_t row,
                                    struct arena *arena, struct aq_error *err)
{
    struct sched_session session = sim_cluster_session(s, task, row);
    struct sched_result result;
    uint32_t handle;
    bool is_placed;
    int r = sched_add(s->sched, &session, &handle, err);

    if (r < 0)
        return r;
    sched_pass(s->sched, 0, arena, &result);
    is_placed = result.count == 1 && result.outcomes[0].verdict == SCHED_PLACED;
    arena_clear(arena, 1 << 16);
    if (!is_placed)
        sched_drop(s->sched, handle);
    return is_placed;
}

static int arrival_experiment_place_all(const struct arrival_experiment *e, struct sim_cluster *s,
                                        const struct experiment_arrivals *a,
                                        struct arrival_experiment_result *ret, struct aq_error *err)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    int64_t allocated = 0, arrived = 0;
    double whole = (double)AQ_MAX(s->gpu_milli, INT64_C(1));

    for (size_t i = 0; i < a->count; i++) {
        int64_t gpu = task_gpu_milli(&e->tasks->items[a->items[i]]);
        int r = arrival_experiment_place(s, a->items[i], (int64_t)i, &arena, err);

        if (r < 0)
            return r;
        arrived += gpu;
        allocated += r ? gpu : 0;
        ret->placed += (size_t)r;
        while (ret->points < ARRIVAL_EXPERIMENT_POINTS
               && 100.0 * (double)arrived / whole >= (double)ret->points)
            ret->curve[ret->points++] = 100.0 * (double)allocated / whole;
    }
    ret->arrived = a->count;
    ret->gpu_allocation_pct = 100.0 * (double)allocated / whole;
    return 0;
}

int arrival_experiment_run(const struct arrival_experiment *e, uint64_t seed,
                           struct arrival_experiment_result *ret, struct aq_error *err)
{
    static const struct sched_options options = { .sequencer = &sched_fifo };
    struct random random = random_make(seed);
    struct experiment_arrivals a = { 0 };
    struct sim_cluster s;
    int r = sim_cluster_open(&s, e->nodes, e->tasks, e->policy, &options, seed, err);

    if (r < 0)
        return r;
    *ret = (struct arrival_experiment_result){ 0 };
    if (e->tasks->count == 0 || s.gpu_milli == 0)
        r = aq_fail(err, EINVAL, "the nodes have no GPU, or there is no task");
    if (r == 0)
        arrival_experiment_draw(&a, e->tasks, e->arrival * (double)s.gpu_milli, &random);
    if (r == 0)
        r = arrival_experiment_place_all(e, &s, &a, ret, err);
    free(a.items);
    sim_cluster_close(&s);
    return r;
}
