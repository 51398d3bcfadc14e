/* SPDX-License-Identifier: Apache-2.0 */
/* sim_cluster.c - a scheduler with the nodes of a trace, and its tasks as sessions */
#include "sim/sim_cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define GPU "cuda.shares"
#define MIB INT64_C(1048576)
#define MILLI (AMOUNT_ONE / 1000)

static const char *const slot_priority[] = { "cuda", "cpu", "mem" };

static void sim_cluster_put_slots(struct slots *s, int64_t cpu_milli, int64_t memory_mib,
                                  int64_t gpus)
{
    slots_put(s, slot_name_find("cpu", strlen("cpu")), cpu_milli * MILLI);
    slots_put(s, slot_name_find("mem", strlen("mem")), memory_mib * MIB);
    if (gpus)
        slots_put(s, slot_name_find(GPU, strlen(GPU)), gpus);
}

/* ---- nodes ---- */

static int sim_cluster_add_node(struct sim_cluster *s, const struct trace_node *n,
                                struct map *names, struct aq_error *err)
{
    AQ_CLEANUP(slots_donep) struct slots free = { 0 };
    struct sched_device devices[1024];
    const char *gpu = slot_name_find(GPU, strlen(GPU));
    struct sched_agent agent = {
        .id = n->name, .free = &free, .devices = devices, .device_count = n->gpus
    };

    if (map_gets(names, n->name))
        return aq_fail_field(err, EINVAL, "sn", "the node '%.60s' is there twice", n->name);
    map_sets(names, n->name, s);
    sim_cluster_put_slots(&free, n->cpu_milli, n->memory_mib, n->gpus * AMOUNT_ONE);
    for (uint32_t d = 0; d < n->gpus; d++)
        devices[d] = (struct sched_device){ gpu, n->model, AMOUNT_ONE, AMOUNT_ONE, 0 };
    s->gpu_milli += n->gpus * INT64_C(1000);
    s->policy.cpu_max = AQ_MAX(s->policy.cpu_max, (double)n->cpu_milli * MILLI);
    s->policy.devices_max = AQ_MAX(s->policy.devices_max, (double)n->gpus * AMOUNT_ONE);
    return sched_set_agent(s->sched, &agent, err);
}

static int sim_cluster_add_nodes(struct sim_cluster *s, struct aq_error *err)
{
    struct map names = MAP_INIT;
    int r = 0;

    for (size_t i = 0; i < s->nodes->count && r == 0; i++)
        r = sim_cluster_add_node(s, &s->nodes->items[i], &names, err);
    map_done(&names);
    return r;
}

/* ---- tasks ---- */

static void sim_cluster_make_requests(struct sim_cluster *s)
{
    s->requests = aq_alloc_array(s->tasks->count + 1, sizeof(*s->requests));
    s->kernels = aq_alloc_array(s->tasks->count + 1, sizeof(struct slots *));
    for (size_t i = 0; i < s->tasks->count; i++) {
        const struct trace_task *t = &s->tasks->items[i];

        s->kernels[i] = &s->requests[i];
        sim_cluster_put_slots(&s->requests[i], t->cpu_milli, t->memory_mib,
                              t->gpus ? task_gpu_milli(t) * MILLI : 0);
    }
}

struct sched_session sim_cluster_session(const struct sim_cluster *s, size_t task, int64_t row)
{
    const struct trace_task *t = &s->tasks->items[task];

    return (struct sched_session){ .row = row,
                                   .type = SESSION_BATCH,
                                   .priority = t->priority,
                                   .single_node = true,
                                   .kernels = &s->kernels[task],
                                   .kernel_count = 1,
                                   .accounts = SCHED_NO_ACCOUNTS,
                                   .owner = SCHED_NO_ACCOUNT,
                                   .models = t->models,
                                   .model_count = t->model_count };
}

/* The shapes of the list, for policies that know them before. */
static void sim_cluster_learn_tasks(struct sim_cluster *s)
{
    struct policy *p = &s->policy;

    for (size_t i = 0; i < s->tasks->count; i++) {
        struct sched_session session = sim_cluster_session(s, i, (int64_t)i);
        struct request_shape shape;

        sched_request_shape(s->sched, &session, &shape);
        request_mix_add(&p->typical, &shape);
    }
    p->typical_count = request_mix_sort(&p->typical, 0.95);
    for (size_t i = 0; i < p->typical_count; i++)
        p->typical_total += p->typical.shapes[i].count;
}

/* ---- the whole ---- */

static void sim_cluster_make_types(struct sim_cluster *s)
{
    struct slot_types *types = slot_types_new();

    s->types = slot_types_merge(types, GPU, SLOT_COUNT, NULL);
    slot_types_unref(types);
}

int sim_cluster_open(struct sim_cluster *s, const struct trace_nodes *nodes,
                     const struct trace_tasks *tasks, const struct selector_ops *ops,
                     const struct sched_options *options, uint64_t seed, struct aq_error *err)
{
    struct sched_options o = *options;
    int r;

    *s = (struct sim_cluster){ .nodes = nodes,
                               .tasks = tasks,
                               .policy = { .ops = ops,
                                           .random = random_make(seed ^ 0x5eed),
                                           .cpu_max = 1,
                                           .devices_max = 1 } };
    o.selector = (struct selector){ ops, ops->open ? NULL : &s->policy };
    o.slot_priority = slot_priority;
    o.slot_priority_count = AQ_COUNT(slot_priority);
    sim_cluster_make_types(s);
    sim_cluster_make_requests(s);
    s->sched = sched_new(s->types, &o);
    r = sim_cluster_add_nodes(s, err);
    if (r == 0 && ops == &policy_fgd)
        sim_cluster_learn_tasks(s);
    if (r < 0)
        sim_cluster_close(s);
    return r;
}

void sim_cluster_close(struct sim_cluster *s)
{
    sched_free(s->sched);
    for (size_t i = 0; s->requests && i < s->tasks->count; i++)
        slots_done(&s->requests[i]);
    free(s->requests);
    free(s->kernels);
    request_mix_done(&s->policy.typical);
    slot_types_unref(s->types);
    *s = (struct sim_cluster){ 0 };
}
