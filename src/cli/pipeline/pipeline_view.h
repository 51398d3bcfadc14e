/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_view.h - how far a run of a pipeline is */
#ifndef AQ_CLI_PIPELINE_PIPELINE_VIEW_H
#define AQ_CLI_PIPELINE_PIPELINE_VIEW_H

#include "cli/cli.h"
#include "pipeline/graph.h"

#define PIPELINE_RUNS "/aliquot/v1/pipeline-runs"

/* A run as the manager answered it, with its graph. */
struct pipeline_view {
    struct arena arena;
    struct pipeline *file;
    struct graph_state *states; /* of each node of the file */
};

/* 'run' has to live as long. -EPROTO. */
int pipeline_view_open(struct pipeline_view *view, const json_t *run, int64_t now_usec,
                       struct aq_error *err);
void pipeline_view_close(struct pipeline_view *view);

/* One line about the whole run, and the graph as text. */
void pipeline_view_write(const struct pipeline_view *view, const json_t *run,
                         const struct output *o, struct strbuf *out);

/* Follow the run until it has ended: on a terminal its graph, else a line for each change. */
int pipeline_watch_run(struct cli *cli, const char *run, struct aq_error *err);

#endif
