/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h - the graph of a pipeline, and how far a run of it is, as text, SVG and DOT */
#ifndef AQ_PIPELINE_GRAPH_H
#define AQ_PIPELINE_GRAPH_H

#include "pipeline/pipeline.h"

/* How far a node is, of the caller. */
struct graph_state {
    const char *word; /* "waiting", "running", "succeeded", "failed", "skipped", "cancelled" */
    const char *note; /* such as a time or a reason; "" = none */
};

struct graph_style {
    bool is_ascii, has_colour;
};

/* 'states' has one of each node; NULL = the graph of a file. Layers from top to bottom, nodes of a
 * matrix below their task unless there are many.
 */
void graph_write_text(const struct pipeline *p, const struct graph_state *states,
                      struct graph_style style, struct strbuf *out);

/* For Graphviz: a box of each task. */
void graph_write_dot(const struct pipeline *p, const struct graph_state *states,
                     struct strbuf *out);

/* An image for browsers, layers from left to right. */
void graph_write_svg(const struct pipeline *p, const struct graph_state *states,
                     struct strbuf *out);

#endif
