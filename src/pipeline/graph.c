/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - drawing pipelines */
#include "pipeline/graph.h"

#include <string.h>

#include "base/utf8.h"
#include "pipeline/graph_layout.h"

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

static size_t graph_count(const struct pipeline *p, const size_t *tasks, size_t count,
                          const struct graph_state *states, const char *word)
{
    size_t found = 0;

    for (size_t t = 0; t < count; t++) {
        const struct pipeline_task *task = &p->tasks[tasks[t]];

        for (size_t i = task->node; i < task->node + task->node_count; i++)
            found += !states || strcmp(states[i].word, word) == 0;
    }
    return found;
}

/* The state of tasks: the first in the order of graph_looks that a node has. */
static const struct graph_look *graph_look_of(const struct pipeline *p, const size_t *tasks,
                                              size_t count, const struct graph_state *states)
{
    for (size_t i = 0; states && i < AQ_COUNT(graph_looks); i++)
        if (graph_count(p, tasks, count, states, graph_looks[i].word))
            return &graph_looks[i];
    return graph_look("waiting");
}

/* "4 tasks: 2 succeeded, 2 running" of a matrix, or of several tasks. */
static void graph_write_counts(const struct pipeline *p, const size_t *tasks, size_t count,
                               const struct graph_state *states, struct strbuf *out)
{
    const char *mark = ": ";

    strbuf_addf(out, "%zu tasks", graph_count(p, tasks, count, NULL, NULL));
    for (size_t i = 0; states && i < AQ_COUNT(graph_looks); i++) {
        size_t found = graph_count(p, tasks, count, states, graph_looks[i].word);

        if (found)
            strbuf_addf(out, "%s%zu %s", mark, found, graph_looks[i].word);
        mark = found ? ", " : mark;
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

/* The elements of a matrix, their states below each other. */
static void graph_write_nodes(const struct pipeline *p, const struct pipeline_task *task,
                              const struct graph_state *states, struct graph_style style,
                              struct strbuf *out)
{
    size_t end = task->node + task->node_count, width = 0;

    for (size_t i = task->node; states && i < end; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf label = STRBUF_INIT;

        graph_write_matrix(&p->nodes[i], &label);
        width = AQ_MAX(width, strlen(p->nodes[i].name) + utf8_width(label.data, label.len));
    }
    for (size_t i = task->node; i < end; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf label = STRBUF_INIT;

        graph_write_matrix(&p->nodes[i], &label);
        strbuf_adds(out, "      ");
        graph_write_mark(graph_look(states ? states[i].word : "waiting"), style, out);
        strbuf_addf(out, " %s%s", p->nodes[i].name, label.data);
        if (states) {
            size_t used = strlen(p->nodes[i].name) + utf8_width(label.data, label.len);

            strbuf_addf(out, "%*s  %-*s", (int)(width - used), "", states[i].note[0] ? 9 : 0,
                        states[i].word);
            graph_write_note(&states[i], out);
        }
        strbuf_addc(out, '\n');
    }
}

static void graph_write_task(const struct pipeline *p, size_t place,
                             const struct graph_state *states, struct graph_style style, int width,
                             struct strbuf *out)
{
    const struct pipeline_task *task = &p->tasks[place];
    bool has_more;

    strbuf_adds(out, "  ");
    graph_write_mark(graph_look_of(p, &place, 1, states), style, out);
    has_more = task->matrix || states || task->need_count;
    strbuf_addf(out, " %-*s", has_more ? width : 0, task->name);
    if (task->matrix) {
        strbuf_adds(out, "  ");
        graph_write_counts(p, &place, 1, states, out);
    } else if (states) {
        strbuf_addf(out, "  %-*s", states[task->node].note[0] ? 9 : 0, states[task->node].word);
        graph_write_note(&states[task->node], out);
    }
    if (task->need_count && !states) {
        strbuf_adds(out, "  needs ");
        graph_write_needs(p, task, out);
    }
    strbuf_addc(out, '\n');
    if (task->matrix && task->node_count <= GRAPH_NODES_MAX)
        graph_write_nodes(p, task, states, style, out);
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
                graph_write_task(p, i, states, style, (int)width, out);
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
                    graph_look_of(p, &i, 1, states)->fill, task->name);
        if (task->matrix || states)
            strbuf_adds(out, "\\n");
        if (task->matrix)
            graph_write_counts(p, &i, 1, states, out);
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

static size_t graph_x(size_t column)
{
    return MARGIN + column * (BOX_WIDTH + GAP_X);
}

static size_t graph_y(size_t row)
{
    return MARGIN + row * (BOX_HEIGHT + GAP_Y);
}

/* One that passes other columns runs between two rows, where no boxes are. */
static void graph_write_edge(const struct graph_box *from, const struct graph_box *to,
                             struct strbuf *out)
{
    size_t x = graph_x(from->column) + BOX_WIDTH, y = graph_y(from->row) + BOX_HEIGHT / 2;
    size_t to_x = graph_x(to->column), to_y = graph_y(to->row) + BOX_HEIGHT / 2;
    size_t lane = graph_y(from->row) + BOX_HEIGHT + GAP_Y / 2;

    strbuf_addf(out, "<path d=\"M%zu %zu", x, y);
    if (to->column - from->column > 1) {
        strbuf_addf(out, " C%zu %zu %zu %zu %zu %zu H%zu", x + GAP_X / 4, y, x + GAP_X / 4, lane,
                    x + GAP_X / 2, lane, to_x - GAP_X / 2);
        x = to_x - GAP_X / 2;
        y = lane;
    }
    strbuf_addf(out, " C%zu %zu %zu %zu %zu %zu\" fill=\"none\" stroke=\"#888\"/>\n",
                (x + to_x) / 2, y, (x + to_x) / 2, to_y, to_x, to_y);
}

static void graph_write_box(const struct graph_box *box, const struct graph_look *look,
                            struct strbuf *out)
{
    size_t x = graph_x(box->column), y = graph_y(box->row);

    strbuf_addf(out,
                "<rect x=\"%zu\" y=\"%zu\" width=\"%d\" height=\"%d\" rx=\"6\" fill=\"%s\" "
                "stroke=\"#666\"/>\n<text x=\"%zu\" y=\"%zu\" font-size=\"13\">%s</text>\n"
                "<text x=\"%zu\" y=\"%zu\" font-size=\"10\" fill=\"#555\">",
                x, y, BOX_WIDTH, BOX_HEIGHT, look->fill, x + 10, y + 18, box->name, x + 10, y + 34);
}

void graph_write_svg(const struct pipeline *p, const struct graph_state *states, struct strbuf *out)
{
    AQ_CLEANUP(graph_layout_donep) struct graph_layout layout;

    graph_layout_init(p, &layout);
    strbuf_addf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" "
                "font-family=\"sans-serif\">\n<title>%s</title>\n",
                2 * MARGIN + layout.columns * (BOX_WIDTH + GAP_X) - GAP_X,
                2 * MARGIN + layout.rows * (BOX_HEIGHT + GAP_Y), p->name);
    for (size_t i = 0; i < layout.box_count; i++)
        for (size_t k = 0; k < layout.boxes[i].need_count; k++)
            graph_write_edge(&layout.boxes[layout.boxes[i].needs[k]], &layout.boxes[i], out);
    for (size_t i = 0; i < layout.box_count; i++) {
        const struct graph_box *box = &layout.boxes[i];

        graph_write_box(box, graph_look_of(p, box->tasks, box->task_count, states), out);
        if (box->task_count > 1 || p->tasks[box->tasks[0]].matrix)
            graph_write_counts(p, box->tasks, box->task_count, states, out);
        else if (states)
            strbuf_adds(out, states[p->tasks[box->tasks[0]].node].word);
        strbuf_adds(out, "</text>\n");
    }
    strbuf_adds(out, "</svg>\n");
}
