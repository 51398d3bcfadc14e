/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_outputs.c - values that the tasks of a run have handed on */
#include "manager/pipeline/pipeline_outputs.h"

#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/jsonw.h"
#include "base/name_values.h"

void pipeline_outputs_done(struct pipeline_outputs *outputs)
{
    for (size_t i = 0; outputs->nodes && i < outputs->file->node_count; i++)
        json_decref(outputs->nodes[i]);
    map_done(&outputs->values);
    arena_done(&outputs->arena);
}

/* NULL = the node has no such value. */
static const char *pipeline_outputs_of_node(struct pipeline_outputs *outputs, size_t node,
                                            const char *name)
{
    const char *text = outputs->tasks[node].outputs;

    if (!text)
        return NULL;
    if (!outputs->nodes)
        outputs->nodes = arena_array(&outputs->arena, outputs->file->node_count,
                                     sizeof(*outputs->nodes));
    if (!outputs->nodes[node])
        outputs->nodes[node] = json_load_string(text, 0);
    return json_string_value(json_object_get(outputs->nodes[node], name));
}

static const char *pipeline_outputs_list(struct pipeline_outputs *outputs,
                                         const struct pipeline_task *task, const char *name)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf list = STRBUF_INIT;
    struct jsonw w = jsonw_make(&list);

    jsonw_array_begin(&w);
    for (size_t i = task->node; i < task->node + task->node_count; i++)
        jsonw_str(&w, pipeline_outputs_of_node(outputs, i, name));
    jsonw_array_end(&w);
    return arena_strdup(&outputs->arena, list.data);
}

const char *pipeline_outputs_find(struct pipeline_outputs *outputs, size_t task, const char *name)
{
    const struct pipeline_task *of = &outputs->file->tasks[task];
    char key[PIPELINE_TASK_NAME_MAX + NAME_VALUES_NAME_MAX + 2];
    const char *value;

    (void)snprintf(key, sizeof(key), "%s %s", of->name, name);
    if ((value = map_gets(&outputs->values, key)))
        return value;
    value = of->matrix ? pipeline_outputs_list(outputs, of, name)
                       : pipeline_outputs_of_node(outputs, of->node, name);
    if (!value)
        value = "";
    (void)map_sets(&outputs->values, arena_strdup(&outputs->arena, key), (void *)(uintptr_t)value);
    return value;
}

const char *pipeline_outputs_find_missing(const struct pipeline_task *task, const char *outputs)
{
    json_auto_t *has = outputs ? json_load_string(outputs, 0) : NULL;
    const json_t *item;
    size_t i;

    json_array_foreach(task->outputs, i, item)
        if (!json_object_get(has, json_string_value(item)))
            return json_string_value(item);
    return NULL;
}
