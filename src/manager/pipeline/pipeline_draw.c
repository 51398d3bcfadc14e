/* SPDX-License-Identifier: Apache-2.0 */
/* The graph and the parameters of a pipeline's file as JSON: see pipeline_draw.h. */
#include "manager/pipeline/pipeline_draw.h"

#include <string.h>

#include "pipeline/graph_layout.h"

static void pipeline_draw_matrix(const struct pipeline *p, struct strbuf *out)
{
    struct jsonw w = jsonw_make(out);

    jsonw_object_begin(&w);
    for (size_t i = 0; i < p->node_count; i++) {
        const struct pipeline_node *node = &p->nodes[i];
        const json_t *value;
        const char *name;

        if (!node->matrix)
            continue;
        jsonw_key(&w, node->name);
        jsonw_object_begin(&w);
        json_object_foreach((json_t *)(uintptr_t)node->matrix, name, value)
            jsonw_member_str(&w, name, json_string_value(value));
        jsonw_object_end(&w);
        if (out->len > PIPELINE_BYTES_MAX) {
            strbuf_clear(out);
            strbuf_adds(out, "null");
            return;
        }
    }
    jsonw_object_end(&w);
}

void pipeline_draw(const char *text, struct arena *arena, struct pipeline_drawing *ret)
{
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout = { .arena = ARENA_INIT };
    AQ_CLEANUP(strbuf_donep) struct strbuf graph = STRBUF_INIT, parameters = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf matrix = STRBUF_INIT;
    struct jsonw graph_w = jsonw_make(&graph), parameters_w = jsonw_make(&parameters);
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    struct aq_error err = { 0 };

    *ret = (struct pipeline_drawing){ .graph = "null", .parameters = "null", .matrix = "null" };
    if (pipeline_parse(text, strlen(text), &p, &err) < 0)
        return;
    graph_layout_init(p, &layout);
    graph_layout_write(&layout, p, &graph_w);
    pipeline_write_parameters(p, &parameters_w);
    ret->graph = arena_strdup(arena, graph.data);
    ret->parameters = arena_strdup(arena, parameters.data);
    pipeline_draw_matrix(p, &matrix);
    ret->matrix = arena_strdup(arena, matrix.data);
}
