/* SPDX-License-Identifier: Apache-2.0 */
/* workload.c - who comes when, and to how large a cluster */
#include "sim/workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/random.h"

static bool workload_has_times(const struct trace_task *t)
{
    return t->created_sec >= 0 && t->duration_sec >= 0;
}

/* ---- the size of the cluster ---- */

struct workload_change {
    int64_t at_sec, gpu_milli;
};

static int workload_compare_changes(const void *a, const void *b)
{
    const struct workload_change *x = a, *y = b;

    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    return (x->gpu_milli > y->gpu_milli) - (x->gpu_milli < y->gpu_milli);
}

/* The mean of what 'changes' add up to while it is at least half of its peak. */
static double workload_busy_demand(const struct workload_change *changes, size_t count)
{
    int64_t level = 0, peak = 0;
    double sum = 0, time = 0;

    for (size_t i = 0; i < count; i++) {
        level += changes[i].gpu_milli;
        peak = AQ_MAX(peak, level);
    }
    level = 0;
    for (size_t i = 0; i + 1 < count; i++) {
        double passed = (double)(changes[i + 1].at_sec - changes[i].at_sec);

        level += changes[i].gpu_milli;
        if (2 * level >= peak) {
            sum += passed * (double)level;
            time += passed;
        }
    }
    return time > 0 ? sum / time : (double)peak;
}

static double workload_find_demand(const struct trace_tasks *tasks)
{
    struct workload_change *changes = aq_alloc_array(2 * tasks->count + 1, sizeof(*changes));
    size_t count = 0;
    double demand;

    for (size_t i = 0; i < tasks->count; i++) {
        const struct trace_task *t = &tasks->items[i];

        if (!workload_has_times(t) || t->gpus == 0)
            continue;
        changes[count++] = (struct workload_change){ t->created_sec, task_gpu_milli(t) };
        changes[count++] = (struct workload_change){ t->created_sec + t->duration_sec,
                                                     -task_gpu_milli(t) };
    }
    qsort(changes, count, sizeof(*changes), workload_compare_changes);
    demand = workload_busy_demand(changes, count);
    free(changes);
    return demand;
}

static const struct trace_node *workload_first_with_gpus(const struct trace_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        if (nodes->items[i].gpus)
            return &nodes->items[i];
    return NULL;
}

/* Every n-th node, so that all kinds are kept in proportion, and one with GPUs at least. */
static void workload_keep_nodes(const struct trace_nodes *all, double part, struct workload *ret)
{
    ret->nodes.items = aq_alloc_array(all->count + 1, sizeof(*ret->nodes.items));
    for (size_t i = 0; i < all->count; i++)
        if ((size_t)((double)(i + 1) * part) > ret->nodes.count || part == 1)
            ret->nodes.items[ret->nodes.count++] = all->items[i];
    if (!workload_first_with_gpus(&ret->nodes) && workload_first_with_gpus(all))
        ret->nodes.items[ret->nodes.count++] = *workload_first_with_gpus(all);
}

static int64_t workload_count_gpus(const struct trace_nodes *nodes)
{
    int64_t milli = 0;

    for (size_t i = 0; i < nodes->count; i++)
        milli += nodes->items[i].gpus * INT64_C(1000);
    return milli;
}

/* ---- users ---- */

/* User k has 1/(k+1) of the weight. */
static uint32_t workload_draw_user(struct random *random)
{
    double total = 0, at;

    for (int k = 0; k < WORKLOAD_USERS; k++)
        total += 1.0 / (k + 1);
    at = (double)(random_next(random) >> 11) / 9007199254740992.0 * total;
    for (uint32_t k = 0; k + 1 < WORKLOAD_USERS; k++)
        if ((at -= 1.0 / (k + 1)) < 0)
            return k;
    return WORKLOAD_USERS - 1;
}

/* The same users for the same names; beyond the sixteenth they share places. */
static uint32_t workload_user_of(const struct trace_task *t, struct random *random)
{
    uint32_t hash = 2166136261u;

    if (!t->user)
        return workload_draw_user(random);
    for (const char *c = t->user; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    return hash % WORKLOAD_USERS;
}

/* ---- arrivals ---- */

/* Could an empty node hold it? */
static bool workload_can_ever_run(const struct trace_nodes *nodes, const struct trace_task *t)
{
    for (size_t i = 0; i < nodes->count; i++) {
        const struct trace_node *n = &nodes->items[i];
        bool is_model = t->model_count == 0 || t->gpus == 0;

        for (uint32_t m = 0; m < t->model_count && !is_model; m++)
            is_model = n->model && strcmp(n->model, t->models[m]) == 0;
        if (is_model && n->cpu_milli >= t->cpu_milli && n->memory_mib >= t->memory_mib
            && n->gpus >= t->gpus)
            return true;
    }
    return false;
}

static int workload_compare_arrivals(const void *a, const void *b)
{
    const struct arrival *x = a, *y = b;

    if (x->at_sec != y->at_sec)
        return x->at_sec < y->at_sec ? -1 : 1;
    return (x->task > y->task) - (x->task < y->task);
}

/* As recorded, of those that can be. */
static void workload_read_arrivals(const struct trace_tasks *tasks, struct random *random,
                                   struct workload *ret)
{
    for (size_t i = 0; i < tasks->count; i++) {
        const struct trace_task *t = &tasks->items[i];
        uint32_t owner = workload_user_of(t, random);

        if (!workload_has_times(t) || !workload_can_ever_run(&ret->nodes, t))
            ret->left_out++;
        else
            ret->arrivals[ret->count++] = (struct arrival){ t->created_sec, t->duration_sec,
                                                            (uint32_t)i, owner };
    }
}

/* Draw from what workload_read_arrivals() has found, in its place; the GPU (1/1000) times seconds.
 */
static double workload_draw_arrivals(const struct trace_tasks *tasks,
                                     const struct workload_spec *spec, struct random *random,
                                     struct workload *ret)
{
    struct arrival *from = &ret->arrivals[spec->draw];
    double sum = 0;

    memmove(from, ret->arrivals, ret->count * sizeof(*from));
    for (uint32_t i = 0; i < spec->draw; i++) {
        struct arrival *a = &ret->arrivals[i];

        *a = from[random_below(random, ret->count)];
        a->owner = workload_user_of(&tasks->items[a->task], random);
        if (spec->longest_sec)
            a->duration_sec = AQ_MIN(a->duration_sec, spec->longest_sec);
        sum += (double)task_gpu_milli(&tasks->items[a->task]) * (double)a->duration_sec;
    }
    ret->count = spec->draw;
    return sum;
}

static void workload_spread_arrivals(struct workload *load, double seconds, struct random *random)
{
    for (size_t i = 0; i < load->count; i++)
        load->arrivals[i].at_sec = (int64_t)((double)(random_next(random) >> 32) / 4294967296.0
                                             * seconds);
}

static int workload_find_arrivals(const struct trace_tasks *tasks, const struct workload_spec *spec,
                                  uint64_t seed, struct workload *ret, struct aq_error *err)
{
    struct random random = random_make(seed);
    double gpus = (double)workload_count_gpus(&ret->nodes), work;

    ret->arrivals = aq_alloc_array(tasks->count + spec->draw + 1, sizeof(*ret->arrivals));
    workload_read_arrivals(tasks, &random, ret);
    if (ret->count == 0)
        return aq_fail_field(err, EINVAL, "tasks",
                             "no task says when it came and ended; a replay "
                             "in time needs creation_time and deletion_time");
    if (spec->draw) {
        work = workload_draw_arrivals(tasks, spec, &random, ret);
        if (work <= 0)
            return aq_fail_field(err, EINVAL, "tasks", "no task that was drawn asks for a GPU");
        workload_spread_arrivals(ret, work / gpus / spec->load, &random);
        ret->load = spec->load;
    }
    qsort(ret->arrivals, ret->count, sizeof(*ret->arrivals), workload_compare_arrivals);
    return 0;
}

/* ---- the whole ---- */

static int workload_build(const struct trace_nodes *nodes, const struct trace_tasks *tasks,
                          const struct workload_spec *spec, uint64_t seed, struct workload *ret,
                          struct aq_error *err)
{
    double gpus = (double)workload_count_gpus(nodes),
           demand = spec->draw ? 0 : workload_find_demand(tasks);

    workload_keep_nodes(nodes, gpus > 0 && demand > 0 ? AQ_MIN(demand / spec->load / gpus, 1.0) : 1,
                        ret);
    if (workload_count_gpus(&ret->nodes) == 0)
        return aq_fail_field(err, EINVAL, "nodes", "none of the nodes has a GPU");
    ret->load = demand / (double)workload_count_gpus(&ret->nodes);
    return workload_find_arrivals(tasks, spec, seed, ret, err);
}

int workload_make(const struct trace_nodes *nodes, const struct trace_tasks *tasks,
                  const struct workload_spec *spec, uint64_t seed, struct workload *ret,
                  struct aq_error *err)
{
    int r;

    *ret = (struct workload){ 0 };
    r = workload_build(nodes, tasks, spec, seed, ret, err);
    if (r < 0)
        workload_done(ret);
    return r;
}

void workload_done(struct workload *load)
{
    free(load->nodes.items);
    free(load->arrivals);
    *load = (struct workload){ 0 };
}
