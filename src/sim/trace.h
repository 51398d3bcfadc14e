/* SPDX-License-Identifier: Apache-2.0 */
/* trace.h - nodes and tasks to replay, from CSV
 *
 * The first line names the columns, in any order; others than these are
 * ignored, so that the files of the Alibaba GPU trace of 2023 and what
 * `aliquot sim` is told to write can both be read:
 *
 *   nodes  sn, cpu_milli, memory_mib, gpu (how many), model
 *   tasks  name, cpu_milli, memory_mib, num_gpu, gpu_milli (of each);
 *          optional: gpu_spec (models joined by '|', empty = any),
 *          creation_time, scheduled_time, deletion_time (seconds), user,
 *          project, domain, priority (0 to 100)
 *
 * A task with one GPU may take a part of it; with more it takes whole ones.
 * No quotes: a name with a comma or a quote in it is refused.
 */
#ifndef AQ_SIM_TRACE_H
#define AQ_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define TRACE_LINES_MAX 2000000
#define TRACE_MODELS_MAX 32

struct trace_node {
    const char *name;
    int64_t cpu_milli, memory_mib;
    uint32_t gpus;
    const char *model; /* NULL = not said */
};

struct trace_task {
    const char *name;
    int64_t cpu_milli, memory_mib;
    uint32_t gpus;      /* 0 = none */
    uint32_t gpu_milli; /* of each */
    const char *const *models;
    uint32_t model_count;                /* 0 = any */
    int64_t created_sec;                 /* -1 = not said */
    int64_t duration_sec;                /* -1 = not said */
    const char *user, *project, *domain; /* NULL = not said */
    int priority;
};

struct trace_nodes {
    struct trace_node *items;
    size_t count;
};

static inline int64_t task_gpu_milli(const struct trace_task *t)
{
    return (int64_t)t->gpus * t->gpu_milli;
}

struct trace_tasks {
    struct trace_task *items;
    size_t count;
};

/* Everything lives in 'arena'. -EINVAL names the line and the column. */
int trace_read_nodes(const char *text, size_t len, struct arena *arena, struct trace_nodes *ret,
                     struct aq_error *err) AQ_UNTRUSTED;
int trace_read_tasks(const char *text, size_t len, struct arena *arena, struct trace_tasks *ret,
                     struct aq_error *err) AQ_UNTRUSTED;

/* The same from files; the path comes before what is wrong. */
int trace_load_nodes(const char *path, struct arena *arena, struct trace_nodes *ret,
                     struct aq_error *err);
int trace_load_tasks(const char *path, struct arena *arena, struct trace_tasks *ret,
                     struct aq_error *err);

#endif
