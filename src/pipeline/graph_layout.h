/* SPDX-License-Identifier: Apache-2.0 */
/* graph_layout.h - the boxes of a pipeline's graph, and where each one is
 *
 * The command line draws images by it, and the manager sends it to browsers. A task is a box,
 * whatever its matrix. Above GRAPH_TASKS_PLAIN tasks, those of one column that need the same boxes
 * and are needed by the same boxes share a box if they are more than GRAPH_SHARE_MIN: a thousand
 * samples that each pass the same four steps are four boxes. Pure.
 */
#ifndef AQ_PIPELINE_GRAPH_LAYOUT_H
#define AQ_PIPELINE_GRAPH_LAYOUT_H

#include "base/jsonw.h"
#include "pipeline/pipeline.h"

#define GRAPH_TASKS_PLAIN 40
#define GRAPH_SHARE_MIN 8

struct graph_box {
    const char *name;    /* of its task; of several, the beginning of their names, with "*" */
    const size_t *tasks; /* places in pipeline.tasks, ascending */
    size_t task_count;
    size_t node_count;   /* of all of its tasks */
    const size_t *needs; /* boxes, ascending, each once */
    size_t need_count;
    size_t column, row; /* columns from left to right, each after those of the boxes it needs */
};

struct graph_layout {
    struct arena arena; /* owns all below */
    struct graph_box *boxes;
    size_t box_count, columns, rows;
};

/* 'ret' is to be ended by graph_layout_done(); 'p' may go before. */
void graph_layout_init(const struct pipeline *p, struct graph_layout *ret);
void graph_layout_done(struct graph_layout *layout);

static inline void graph_layout_donep(struct graph_layout *layout)
{
    graph_layout_done(layout);
}

/* {"columns", "rows", "boxes": [{"name", "column", "row", "tasks": how many, "nodes": [[first place
 * in pipeline.nodes, count], ...], "needs": [place in "boxes", ...]}]}
 */
void graph_layout_write(const struct graph_layout *layout, const struct pipeline *p,
                        struct jsonw *w);

#endif
