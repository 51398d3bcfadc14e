/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_expand.c - the graph: what tasks need, their order, layers and nodes */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/memory.h"
#include "base/suggest.h"
#include "pipeline/pipeline_internal.h"

/* ---- needs ---- */

static int expand_fail_missing(const struct pipeline_reader *in, const char *path,
                               const struct pipeline_task *task, const char *name)
{
    struct suggest suggest = suggest_for(name, strlen(name));

    for (size_t i = 0; i < in->p->task_count; i++)
        suggest_offer(&suggest, in->p->tasks[i].name);
    return suggest.best ? pipeline_refuse(in, path,
                                          "task '%s' needs '%.40s', which does not exist; did you "
                                          "mean '%s'?",
                                          task->name, name, suggest.best)
                        : pipeline_refuse(in, path, "task '%s' needs '%.40s', which does not exist",
                                          task->name, name);
}

static int expand_read_needs(const struct pipeline_reader *in, const struct map *names,
                             struct pipeline_task *task)
{
    const json_t *needs = json_object_get(task->definition, "needs");
    size_t count = json_is_string(needs) ? 1 : json_array_size(needs);
    AQ_CLEANUP(aq_freep) char *base = aq_format("tasks.%s.needs", task->name);
    size_t *places = arena_array(&in->p->arena, count + 1, sizeof(*places));

    if (needs && !json_is_string(needs) && !json_is_array(needs))
        return pipeline_refuse(in, base, "'needs' must be a list of tasks");
    task->needs = places;
    for (size_t i = 0; i < count; i++) {
        const json_t *item = json_is_string(needs) ? needs : json_array_get(needs, i);
        const char *name = json_string_value(item);
        struct pipeline_task *needed = name ? map_gets(names, name) : NULL;
        char path[160];

        (void)snprintf(path, sizeof(path), json_is_string(needs) ? "%s%.0d" : "%s.%d", base,
                       (int)i);
        if (!name)
            return pipeline_refuse(in, path, "'needs' must be a list of names of tasks");
        if (!needed)
            return expand_fail_missing(in, path, task, name);
        for (size_t k = 0; k < task->need_count; k++)
            if (places[k] == (size_t)(needed - in->p->tasks))
                return pipeline_refuse(in, path, "task '%s' names '%s' twice in 'needs'",
                                       task->name, name);
        places[task->need_count++] = (size_t)(needed - in->p->tasks);
    }
    return 0;
}

/* ---- order ---- */

/* Depth first, without recursion: a chain may be as long as there are tasks. */
struct expand_visit {
    size_t task, next; /* the next of its needs to look at */
};

struct expand_order {
    struct expand_visit *path;
    size_t depth;
    char *marks; /* of each task: 0 = not seen, 1 = on the path, 2 = placed */
    size_t *order, count;
};

static int expand_fail_cycle(const struct pipeline_reader *in, const struct expand_order *o,
                             size_t task)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf way = STRBUF_INIT;
    AQ_CLEANUP(aq_freep) char *path = aq_format("tasks.%s.needs", in->p->tasks[task].name);
    size_t i = 0;

    while (o->path[i].task != task)
        i++;
    for (; i < o->depth; i++)
        strbuf_addf(&way, "%s -> ", in->p->tasks[o->path[i].task].name);
    strbuf_adds(&way, in->p->tasks[task].name);
    return pipeline_refuse(in, path, "tasks need each other in a circle: %.250s", way.data);
}

static int expand_visit_from(const struct pipeline_reader *in, struct expand_order *o, size_t first)
{
    o->path[o->depth++] = (struct expand_visit){ first, 0 };
    o->marks[first] = 1;
    while (o->depth > 0) {
        struct expand_visit *at = &o->path[o->depth - 1];
        struct pipeline_task *task = &in->p->tasks[at->task];
        size_t needed;

        if (at->next == task->need_count) {
            o->marks[at->task] = 2;
            o->order[o->count++] = at->task;
            o->depth--;
            continue;
        }
        needed = task->needs[at->next++];
        if (o->marks[needed] == 1)
            return expand_fail_cycle(in, o, needed);
        if (o->marks[needed] == 0) {
            o->marks[needed] = 1;
            o->path[o->depth++] = (struct expand_visit){ needed, 0 };
        }
    }
    return 0;
}

/* Put the tasks into the order and set their layers: needs come before. */
static void expand_arrange(struct pipeline *p, const size_t *order)
{
    struct pipeline_task *tasks = arena_array(&p->arena, p->task_count, sizeof(*tasks));
    size_t *place = aq_alloc_array(p->task_count, sizeof(*place));

    for (size_t i = 0; i < p->task_count; i++) {
        struct pipeline_task *task = &tasks[i];
        size_t *needs;

        *task = p->tasks[order[i]];
        place[order[i]] = i;
        needs = arena_array(&p->arena, task->need_count + 1, sizeof(*needs));
        for (size_t k = 0; k < task->need_count; k++) {
            needs[k] = place[task->needs[k]];
            task->layer = AQ_MAX(task->layer, tasks[needs[k]].layer + 1);
        }
        task->needs = needs;
    }
    p->tasks = tasks;
    free(place);
}

static int expand_sort(const struct pipeline_reader *in)
{
    size_t count = in->p->task_count;
    struct expand_order o = { .path = aq_alloc_array(count, sizeof(*o.path)),
                              .marks = aq_alloc(count),
                              .order = aq_alloc_array(count, sizeof(*o.order)) };
    int r = 0;

    for (size_t i = 0; i < count && r == 0; i++)
        if (!o.marks[i])
            r = expand_visit_from(in, &o, i);
    if (r == 0)
        expand_arrange(in->p, o.order);
    free(o.path);
    free(o.marks);
    free(o.order);
    return r;
}

/* ---- nodes ---- */

/* How many there are of a task; PIPELINE_NODES_MAX + 1 = too many. */
static size_t expand_count(const struct pipeline_task *task)
{
    const json_t *values;
    const char *name;
    size_t count = 1;

    json_object_foreach((json_t *)(uintptr_t)task->matrix, name, values) {
        if (json_array_size(values) > PIPELINE_NODES_MAX / count)
            return PIPELINE_NODES_MAX + 1;
        count *= json_array_size(values);
    }
    return count;
}

/* Combination 'number' of the matrix: the last name varies fastest. Texts are shared. */
static json_t *expand_combine(struct arena *arena, const json_t *matrix, size_t number,
                              size_t count)
{
    json_t *chosen = json_object();
    const json_t *values;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)matrix, name, values) {
        size_t size = json_array_size(values);
        json_t *value;

        count /= size;
        value = json_array_get(values, number / count % size);
        (void)json_object_set_new(chosen, name,
                                  json_is_string(value)
                                      ? json_incref(value)
                                      : json_string(pipeline_scalar(arena, value)));
    }
    return chosen;
}

/* Bytes of what a node of the task says at most, values of parameters left out. */
static size_t expand_measure(const struct pipeline_task *task)
{
    size_t bytes = task->need_count * PIPELINE_TASK_NAME_MAX, i;
    const json_t *member, *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)task->definition, name, member)
        if (member != task->matrix)
            bytes += strlen(name) + json_dumpb(member, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
    json_object_foreach((json_t *)(uintptr_t)task->matrix, name, member) {
        size_t longest = 0;

        json_array_foreach(member, i, value)
            longest = AQ_MAX(longest, json_string_length(value));
        bytes += strlen(name) + longest;
    }
    return bytes;
}

static void expand_add_nodes(struct pipeline *p, size_t place)
{
    struct pipeline_task *task = &p->tasks[place];
    json_t *kept = json_object_get(p->root, ".nodes"); /* owns the combinations */

    task->node = p->node_count;
    for (size_t i = 0; i < task->node_count; i++) {
        struct pipeline_node *node = &p->nodes[p->node_count++];
        AQ_CLEANUP(aq_freep) char *name = aq_format("%s.%zu", task->name, i + 1);

        node->task = place;
        node->name = task->matrix ? arena_strdup(&p->arena, name) : task->name;
        if (!task->matrix)
            continue;
        node->matrix = expand_combine(&p->arena, task->matrix, i, task->node_count);
        (void)json_array_append_new(kept, (json_t *)(uintptr_t)node->matrix);
    }
}

/* Counted before any node is made. */
static int expand_check_size(const struct pipeline_reader *in, size_t *ret)
{
    struct pipeline *p = in->p;
    size_t nodes = 0, edges = 0, bytes = 0;
    char path[64];

    for (size_t i = 0; i < p->task_count; i++) {
        struct pipeline_task *task = &p->tasks[i];

        (void)snprintf(path, sizeof(path), "tasks.%s", task->name);
        task->node_count = expand_count(task);
        nodes += task->node_count;
        if (nodes > PIPELINE_NODES_MAX)
            return pipeline_refuse(in, path,
                                   "with task '%s' and its matrix the pipeline has more than %d "
                                   "tasks",
                                   task->name, PIPELINE_NODES_MAX);
        bytes += task->node_count * expand_measure(task);
        if (bytes > PIPELINE_NODES_BYTES_MAX)
            return pipeline_refuse(in, path,
                                   "with task '%s' and its matrix the tasks have more than %d MiB "
                                   "of text; keep long texts in a folder",
                                   task->name, PIPELINE_NODES_BYTES_MAX >> 20);
    }
    for (size_t i = 0; i < p->task_count; i++)
        edges += p->tasks[i].need_count;
    if (edges > PIPELINE_NEEDS_MAX)
        return pipeline_refuse(in, "tasks", "the tasks have more than %d needs in all",
                               PIPELINE_NEEDS_MAX);
    *ret = nodes;
    return 0;
}

int pipeline_expand(const struct pipeline_reader *in)
{
    struct pipeline *p = in->p;
    struct map names = MAP_INIT;
    size_t count = 0;
    int r = 0;

    for (size_t i = 0; i < p->task_count; i++)
        (void)map_sets(&names, p->tasks[i].name, &p->tasks[i]);
    for (size_t i = 0; i < p->task_count && r == 0; i++)
        r = expand_read_needs(in, &names, &p->tasks[i]);
    map_done(&names);
    if (r < 0 || (r = expand_sort(in)) < 0 || (r = expand_check_size(in, &count)) < 0)
        return r;
    p->nodes = arena_array(&p->arena, count, sizeof(*p->nodes));
    (void)json_object_set_new(p->root, ".nodes", json_array());
    for (size_t i = 0; i < p->task_count; i++)
        expand_add_nodes(p, i);
    return 0;
}
