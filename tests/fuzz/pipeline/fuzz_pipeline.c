/* SPDX-License-Identifier: Apache-2.0 */
/* Files of pipelines: one that is accepted has a graph without circles within its limits, and its
 * texts can be filled in; one that is not has an error.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/expression.h"
#include "pipeline/graph.h"
#include "pipeline/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int condition)
{
    if (!condition)
        __builtin_trap();
}

static void check_graph(const struct pipeline *p)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct graph_style style = { false, false };

    require(p->node_count >= p->task_count && p->node_count <= PIPELINE_NODES_MAX);
    for (size_t i = 0; i < p->task_count; i++)
        for (size_t k = 0; k < p->tasks[i].need_count; k++)
            require(p->tasks[i].needs[k] < i
                    && p->tasks[p->tasks[i].needs[k]].layer < p->tasks[i].layer);
    graph_write_text(p, NULL, style, &out);
    graph_write_dot(p, NULL, &out);
    graph_write_svg(p, NULL, &out);
}

static void check_nodes(const struct pipeline *p)
{
    AQ_CLEANUP(pipeline_identifier_done) struct pipeline_identifier of = { .arena = ARENA_INIT };
    struct aq_error err = { 0 };
    json_t *parameters = pipeline_bind(p, NULL, &err);

    for (size_t i = 0; parameters && i < AQ_MIN(p->node_count, 20); i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        const struct pipeline_task *task = &p->tasks[p->nodes[i].task];
        struct pipeline_context context = {
            .pipeline = p, .node = i, .parameters = parameters, .run = "fuzz.1"
        };
        bool runs;

        (void)pipeline_decide(&context, &runs, &err);
        (void)pipeline_fill(
            &context, json_string_value(json_object_get(task->definition, "command")), &out, &err);
        pipeline_identify(&of, p, i, parameters, &out);
        require(out.len > 0);
    }
    json_decref(parameters);
}

static const char *find_nothing(void *data, const char *reference, struct aq_error *err)
{
    (void)data;
    (void)err;
    return strlen(reference) % 2 ? "1" : "";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AQ_CLEANUP(arena_donep) struct arena arena = ARENA_INIT;
    struct expression_names names = { find_nothing, NULL };
    struct pipeline *p = NULL;
    struct aq_error err = { 0 };
    const char *value = NULL;

    if (pipeline_parse((const char *)data, size, &p, &err) == 0) {
        check_graph(p);
        check_nodes(p);
        pipeline_free(p);
    } else {
        require(err.text[0]);
    }
    if (expression_evaluate((const char *)data, size, &names, &arena, &value, &err) == 0)
        require(value != NULL);
    return 0;
}
