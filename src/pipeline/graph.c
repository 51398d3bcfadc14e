/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - drawing pipelines */
#include "pipeline/graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/utf8.h"

#define GRAPH_NODES_MAX 20 /* of a task that are listed one by one */

struct graph_look {
    const char *word, *mark, *ascii, *colour; /* the last for terminals */
    const char *fill;                         /* of a box */
};

static const struct graph_look graph_looks[] = {
    { "failed", "✗", "x", "31", "#f8d0cc" },    { "running", "●", "*", "33", "#fdf0c0" },
    { "waiting", "○", "o", "2", "#ffffff" },    { "cancelled", "⊘", "-", "35", "#e4d4f0" },
    { "succeeded", "✔", "+", "32", "#cdebd0" }, { "skipped", "–", ".", "2", "#e8e8e8" },
};

static const struct graph_look *graph_look(const char *word)
{
    for (size_t i = 0; i < AQ_COUNT(graph_looks); i++)
        if (strcmp(graph_looks[i].word, word) == 0)
            return &graph_looks[i];
    return &graph_looks[2];
}

static size_t graph_count(const struct pipeline_task *task, const struct graph_state *states,
                          const char *word)
{
    size_t count = 0;

    for (size_t i = task->node; i < task->node + task->node_count; i++)
        count += strcmp(states[i].word, word) == 0;
    return count;
}

/* The state of a task: the first in the order of graph_looks that a node has. */
static const struct graph_look *graph_look_of(const struct pipeline_task *task,
                                              const struct graph_state *states)
{
    for (size_t i = 0; states && i < AQ_COUNT(graph_looks); i++)
        if (graph_count(task, states, graph_looks[i].word))
            return &graph_looks[i];
    return graph_look("waiting");
}

/* "4 tasks: 2 succeeded, 2 running" of a matrix. */
static void graph_write_counts(const struct pipeline_task *task, const struct graph_state *states,
                               struct strbuf *out)
{
    const char *mark = ": ";

    strbuf_addf(out, "%zu tasks", task->node_count);
    for (size_t i = 0; states && i < AQ_COUNT(graph_looks); i++) {
        size_t count = graph_count(task, states, graph_looks[i].word);

        if (count)
            strbuf_addf(out, "%s%zu %s", mark, count, graph_looks[i].word);
        mark = count ? ", " : mark;
    }
}

static void graph_write_needs(const struct pipeline *p, const struct pipeline_task *task,
                              struct strbuf *out)
{
    for (size_t i = 0; i < task->need_count; i++)
        strbuf_addf(out, "%s%s", i ? ", " : "", p->tasks[task->needs[i]].name);
}

/* ---- text ---- */

static void graph_write_mark(const struct graph_look *look, struct graph_style style,
                             struct strbuf *out)
{
    const char *mark = style.is_ascii ? look->ascii : look->mark;

    if (style.has_colour)
        strbuf_addf(out, "\033[%sm%s\033[0m", look->colour, mark);
    else
        strbuf_adds(out, mark);
}

static void graph_write_note(const struct graph_state *state, struct strbuf *out)
{
    if (state->note[0]) {
        strbuf_adds(out, "  ");
        utf8_write_printable(state->note, strlen(state->note), out);
    }
}

static void graph_write_matrix(const struct pipeline_node *node, struct strbuf *out)
{
    const json_t *value;
    const char *name;

    json_object_foreach((json_t *)(uintptr_t)node->matrix, name, value) {
        strbuf_addf(out, " %s=", name);
        utf8_write_printable(json_string_value(value), json_string_length(value), out);
    }
}

static void graph_write_task(const struct pipeline *p, const struct pipeline_task *task,
                             const struct graph_state *states, struct graph_style style, int width,
                             struct strbuf *out)
{
    strbuf_adds(out, "  ");
    graph_write_mark(graph_look_of(task, states), style, out);
    strbuf_addf(out, " %-*s", width, task->name);
    if (task->matrix) {
        strbuf_adds(out, "  ");
        graph_write_counts(task, states, out);
    } else if (states) {
        strbuf_addf(out, "  %-9s", states[task->node].word);
        graph_write_note(&states[task->node], out);
    }
    if (task->need_count && !states) {
        strbuf_adds(out, "  needs ");
        graph_write_needs(p, task, out);
    }
    strbuf_addc(out, '\n');
    for (size_t i = task->node;
         task->matrix && task->node_count <= GRAPH_NODES_MAX && i < task->node + task->node_count;
         i++) {
        strbuf_adds(out, "      ");
        graph_write_mark(graph_look(states ? states[i].word : "waiting"), style, out);
        strbuf_addf(out, " %s", p->nodes[i].name);
        graph_write_matrix(&p->nodes[i], out);
        if (states) {
            strbuf_addf(out, "  %s", states[i].word);
            graph_write_note(&states[i], out);
        }
        strbuf_addc(out, '\n');
    }
}

static size_t graph_layers(const struct pipeline *p)
{
    size_t count = 0;

    for (size_t i = 0; i < p->task_count; i++)
        count = AQ_MAX(count, p->tasks[i].layer + 1);
    return count;
}

void graph_write_text(const struct pipeline *p, const struct graph_state *states,
                      struct graph_style style, struct strbuf *out)
{
    size_t width = 0, layers = graph_layers(p);

    for (size_t i = 0; i < p->task_count; i++)
        width = AQ_MAX(width, strlen(p->tasks[i].name));
    for (size_t layer = 0; layer < layers; layer++) {
        if (layer)
            strbuf_addf(out, "  %s\n", style.is_ascii ? "|" : "│");
        for (size_t i = 0; i < p->task_count; i++)
            if (p->tasks[i].layer == layer)
                graph_write_task(p, &p->tasks[i], states, style, (int)width, out);
    }
}

/* ---- DOT ---- */

void graph_write_dot(const struct pipeline *p, const struct graph_state *states, struct strbuf *out)
{
    strbuf_addf(out,
                "digraph \"%s\" {\n    rankdir=LR;\n"
                "    node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"];\n",
                p->name);
    for (size_t i = 0; i < p->task_count; i++) {
        const struct pipeline_task *task = &p->tasks[i];

        strbuf_addf(out, "    \"%s\" [fillcolor=\"%s\", label=\"%s", task->name,
                    graph_look_of(task, states)->fill, task->name);
        if (task->matrix || states)
            strbuf_adds(out, "\\n");
        if (task->matrix)
            graph_write_counts(task, states, out);
        else if (states)
            strbuf_adds(out, states[task->node].word);
        strbuf_adds(out, "\"];\n");
    }
    for (size_t i = 0; i < p->task_count; i++)
        for (size_t k = 0; k < p->tasks[i].need_count; k++)
            strbuf_addf(out, "    \"%s\" -> \"%s\";\n", p->tasks[p->tasks[i].needs[k]].name,
                        p->tasks[i].name);
    strbuf_adds(out, "}\n");
}

/* ---- SVG ---- */

enum { BOX_WIDTH = 200, BOX_HEIGHT = 44, GAP_X = 70, GAP_Y = 20, MARGIN = 16 };

/* The row of each task in its layer; *ret_rows gets how many the longest layer has. */
static size_t *graph_place_rows(const struct pipeline *p, size_t layers, size_t *ret_rows)
{
    size_t *rows = aq_alloc_array(p->task_count, sizeof(*rows));
    size_t *used = aq_alloc_array(layers, sizeof(*used));

    *ret_rows = 0;
    for (size_t i = 0; i < p->task_count; i++) {
        rows[i] = used[p->tasks[i].layer]++;
        *ret_rows = AQ_MAX(*ret_rows, rows[i] + 1);
    }
    free(used);
    return rows;
}

static size_t graph_x(const struct pipeline_task *task)
{
    return MARGIN + task->layer * (BOX_WIDTH + GAP_X);
}

static size_t graph_y(size_t row)
{
    return MARGIN + row * (BOX_HEIGHT + GAP_Y);
}

static void graph_write_edge(const struct pipeline *p, const size_t *rows, size_t from, size_t to,
                             struct strbuf *out)
{
    size_t x = graph_x(&p->tasks[from]) + BOX_WIDTH, y = graph_y(rows[from]) + BOX_HEIGHT / 2;
    size_t to_x = graph_x(&p->tasks[to]), to_y = graph_y(rows[to]) + BOX_HEIGHT / 2;

    strbuf_addf(out,
                "<path d=\"M%zu %zu C%zu %zu %zu %zu %zu %zu\" fill=\"none\" stroke=\"#888\"/>\n",
                x, y, x + GAP_X / 2, y, to_x - GAP_X / 2, to_y, to_x, to_y);
}

static void graph_write_box(const struct pipeline_task *task, size_t row,
                            const struct graph_state *states, struct strbuf *out)
{
    size_t x = graph_x(task), y = graph_y(row);

    strbuf_addf(out,
                "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" "
                "stroke=\"#666\"/>\n<text x=\"%zu\" y=\"%zu\" font-size=\"13\">%s</text>\n"
                "<text x=\"%zu\" y=\"%zu\" font-size=\"10\" fill=\"#555\">",
                x, y, BOX_WIDTH, BOX_HEIGHT, graph_look_of(task, states)->fill, x + 10, y + 18,
                task->name, x + 10, y + 34);
    if (task->matrix)
        graph_write_counts(task, states, out);
    else if (states)
        strbuf_adds(out, states[task->node].word);
    strbuf_adds(out, "</text>\n");
}

void graph_write_svg(const struct pipeline *p, const struct graph_state *states, struct strbuf *out)
{
    size_t layers = graph_layers(p), row_count;
    size_t *rows = graph_place_rows(p, layers, &row_count);

    strbuf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
                "font-family=\"sans-serif\">\n<title>%s</title>\n",
                2 * MARGIN + layers * (BOX_WIDTH + GAP_X) - GAP_X,
                2 * MARGIN + row_count * (BOX_HEIGHT + GAP_Y) - GAP_Y, p->name);
    for (size_t i = 0; i < p->task_count; i++)
        for (size_t k = 0; k < p->tasks[i].need_count; k++)
            graph_write_edge(p, rows, p->tasks[i].needs[k], i, out);
    for (size_t i = 0; i < p->task_count; i++)
        graph_write_box(&p->tasks[i], rows[i], states, out);
    strbuf_adds(out, "</svg>\n");
    free(rows);
}
