/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - nodes and tasks to replay, from CSV */
#include "sim/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fs.h"
#include "sim/csv.h"

#define FILE_MAX_BYTES ((size_t)512 << 20)
#define MILLI_MAX INT64_C(1000000000000)
#define GPUS_MAX 1024

/* Columns that must be there; -EINVAL names the first that is not. */
static int trace_find_columns(const struct csv *csv, const char *const *names, int *columns,
                              size_t required, size_t count, struct aq_error *err)
{
    for (size_t i = 0; i < count; i++) {
        columns[i] = csv_find(csv, names[i]);
        if (columns[i] < 0 && i < required)
            return aq_fail_field(err, EINVAL, names[i], "there is no column '%s' in the first line",
                                 names[i]);
    }
    return 0;
}

/* NULL for an empty value or a column that is not there. */
static const char *trace_copy_text(const struct csv *csv, int column, struct arena *arena)
{
    const struct csv_value *v = column < 0 ? NULL : &csv->values[column];

    return v && v->len ? arena_strndup(arena, v->text, v->len) : NULL;
}

static int trace_too_long(struct aq_error *err)
{
    return aq_fail(err, EINVAL, "more than %d lines", TRACE_LINES_MAX);
}

/* ---- nodes ---- */

enum { N_NAME, N_CPU, N_MEMORY, N_GPU, N_MODEL, N_COUNT };
static const char *const node_columns[] = { "sn", "cpu_milli", "memory_mib", "gpu", "model" };

static int trace_read_node(const struct csv *csv, const int *columns, struct arena *arena,
                           struct trace_node *ret, struct aq_error *err)
{
    int64_t gpus;

    if (csv_number(csv, columns[N_CPU], 0, MILLI_MAX, INT64_MIN, &ret->cpu_milli, err) < 0
        || csv_number(csv, columns[N_MEMORY], 0, MILLI_MAX, INT64_MIN, &ret->memory_mib, err) < 0
        || csv_number(csv, columns[N_GPU], 0, GPUS_MAX, 0, &gpus, err) < 0)
        return -EINVAL;
    ret->gpus = (uint32_t)gpus;
    ret->name = trace_copy_text(csv, columns[N_NAME], arena);
    ret->model = trace_copy_text(csv, columns[N_MODEL], arena);
    return ret->name ? 0 : csv_fail(csv, columns[N_NAME], err, "a node needs a name");
}

int trace_read_nodes(const char *text, size_t len, struct arena *arena, struct trace_nodes *ret,
                     struct aq_error *err)
{
    struct csv csv;
    int columns[N_COUNT], r;
    struct trace_nodes nodes = { 0 };
    size_t lines = csv_count_lines(text, len);

    if (lines > TRACE_LINES_MAX)
        return trace_too_long(err);
    if ((r = csv_begin(&csv, text, len, err)) < 0
        || (r = trace_find_columns(&csv, node_columns, columns, N_MODEL, N_COUNT, err)) < 0)
        return r;
    nodes.items = arena_array(arena, lines, sizeof(*nodes.items));
    while ((r = csv_next(&csv, err)) > 0)
        if ((r = trace_read_node(&csv, columns, arena, &nodes.items[nodes.count++], err)) < 0)
            return r;
    if (r == 0)
        *ret = nodes;
    return r;
}

/* ---- tasks ---- */

enum {
    T_NAME,
    T_CPU,
    T_MEMORY,
    T_GPUS,
    T_MILLI,
    T_SPEC,
    T_CREATED,
    T_SCHEDULED,
    T_DELETED,
    T_USER,
    T_PROJECT,
    T_DOMAIN,
    T_PRIORITY,
    T_COUNT
};
static const char *const task_columns[] = { "name",          "cpu_milli",      "memory_mib",
                                            "num_gpu",       "gpu_milli",      "gpu_spec",
                                            "creation_time", "scheduled_time", "deletion_time",
                                            "user",          "project",        "domain",
                                            "priority" };

/* "V100M16|V100M32" */
static int trace_read_models(const struct csv *csv, int column, struct arena *arena,
                             struct trace_task *ret, struct aq_error *err)
{
    const struct csv_value *v = column < 0 ? NULL : &csv->values[column];
    const char **models;
    const char *at, *end;

    if (!v || v->len == 0)
        return 0;
    models = arena_array(arena, TRACE_MODELS_MAX, sizeof(*models));
    for (at = v->text, end = v->text + v->len; at <= end;) {
        const char *bar = memchr(at, '|', (size_t)(end - at)), *to = bar ? bar : end;

        if (to == at || ret->model_count == TRACE_MODELS_MAX)
            return csv_fail(csv, column, err, to == at ? "an empty model" : "more than 32 models");
        models[ret->model_count++] = arena_strndup(arena, at, (size_t)(to - at));
        at = to + 1;
    }
    ret->models = models;
    return 0;
}

static int trace_read_times(const struct csv *csv, const int *columns, struct trace_task *ret,
                            struct aq_error *err)
{
    int64_t scheduled, deleted;

    if (csv_number(csv, columns[T_CREATED], 0, MILLI_MAX, -1, &ret->created_sec, err) < 0
        || csv_number(csv, columns[T_SCHEDULED], 0, MILLI_MAX, -1, &scheduled, err) < 0
        || csv_number(csv, columns[T_DELETED], 0, MILLI_MAX, -1, &deleted, err) < 0)
        return -EINVAL;
    if (scheduled < 0)
        scheduled = ret->created_sec;
    ret->duration_sec = scheduled < 0 || deleted < 0 ? -1 : deleted - scheduled;
    return deleted >= 0 && ret->duration_sec < 0 && scheduled >= 0
               ? csv_fail(csv, columns[T_DELETED], err, "it ends before it begins")
               : 0;
}

static int trace_read_task(const struct csv *csv, const int *columns, struct arena *arena,
                           struct trace_task *ret, struct aq_error *err)
{
    int64_t gpus, milli, priority;
    int r;

    if (csv_number(csv, columns[T_CPU], 0, MILLI_MAX, INT64_MIN, &ret->cpu_milli, err) < 0
        || csv_number(csv, columns[T_MEMORY], 0, MILLI_MAX, INT64_MIN, &ret->memory_mib, err) < 0
        || csv_number(csv, columns[T_GPUS], 0, GPUS_MAX, 0, &gpus, err) < 0
        || csv_number(csv, columns[T_MILLI], 0, 1000, 0, &milli, err) < 0
        || csv_number(csv, columns[T_PRIORITY], 0, 100, 10, &priority, err) < 0)
        return -EINVAL;
    if (gpus > 0 && milli == 0)
        return csv_fail(csv, columns[T_MILLI], err, "a task with a GPU takes a part of it");
    ret->gpus = (uint32_t)gpus;
    ret->gpu_milli = gpus == 1 ? (uint32_t)milli : gpus ? 1000 : 0;
    ret->priority = (int)priority;
    ret->name = trace_copy_text(csv, columns[T_NAME], arena);
    ret->user = trace_copy_text(csv, columns[T_USER], arena);
    ret->project = trace_copy_text(csv, columns[T_PROJECT], arena);
    ret->domain = trace_copy_text(csv, columns[T_DOMAIN], arena);
    if ((r = trace_read_models(csv, columns[T_SPEC], arena, ret, err)) < 0)
        return r;
    return trace_read_times(csv, columns, ret, err);
}

int trace_read_tasks(const char *text, size_t len, struct arena *arena, struct trace_tasks *ret,
                     struct aq_error *err)
{
    struct csv csv;
    int columns[T_COUNT], r;
    struct trace_tasks tasks = { 0 };
    size_t lines = csv_count_lines(text, len);

    if (lines > TRACE_LINES_MAX)
        return trace_too_long(err);
    if ((r = csv_begin(&csv, text, len, err)) < 0
        || (r = trace_find_columns(&csv, task_columns, columns, T_SPEC, T_COUNT, err)) < 0)
        return r;
    tasks.items = arena_array(arena, lines, sizeof(*tasks.items));
    while ((r = csv_next(&csv, err)) > 0)
        if ((r = trace_read_task(&csv, columns, arena, &tasks.items[tasks.count++], err)) < 0)
            return r;
    if (r == 0)
        *ret = tasks;
    return r;
}

/* ---- files ---- */

static int trace_load(const char *path, struct strbuf *text, struct aq_error *err)
{
    return fs_read(AT_FDCWD, path, FILE_MAX_BYTES, text, err);
}

int trace_load_nodes(const char *path, struct arena *arena, struct trace_nodes *ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = trace_load(path, &text, err);

    if (r < 0)
        return r;
    r = trace_read_nodes(text.data, text.len, arena, ret, err);
    return r < 0 ? aq_error_wrap(err, "%s", path) : 0;
}

int trace_load_tasks(const char *path, struct arena *arena, struct trace_tasks *ret,
                     struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = trace_load(path, &text, err);

    if (r < 0)
        return r;
    r = trace_read_tasks(text.data, text.len, arena, ret, err);
    return r < 0 ? aq_error_wrap(err, "%s", path) : 0;
}
