/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline graph": a pipeline, or a run of one, as a picture. */
#include <errno.h>
#include <string.h>

#include "cli/pipeline/pipeline_file.h"
#include "cli/verbs.h"
#include "pipeline/graph.h"

struct pipeline_graph_opts {
    int format; /* enum graph_format + 1; 0 = text */
};

enum graph_format { GRAPH_TEXT, GRAPH_SVG, GRAPH_DOT };

static const struct cli_opt graph_opts[] = {
    { 0, "format", CLI_CHOICE, offsetof(struct pipeline_graph_opts, format), "text|svg|dot",
      "default text; dot is for Graphviz" },
    CLI_OPT_END,
};

static int pipeline_graph(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, out = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    const struct pipeline_graph_opts *opts = data;
    int r = pipeline_file_read(argv[0], &text, &p, err);

    (void)argc;
    if (r < 0)
        return r;
    if (opts->format == GRAPH_SVG + 1)
        graph_write_svg(p, NULL, &out);
    else if (opts->format == GRAPH_DOT + 1)
        graph_write_dot(p, NULL, &out);
    else
        graph_write_text(p, NULL, (struct graph_style){ cli->output.ascii, cli->output.colour },
                         &out);
    return cli_print(&out, err);
}

const struct cli_verb verb_pipeline_graph = {
    .name = "pipeline graph",
    .args = "FILE",
    .summary = "Draw the graph of a pipeline",
    .details = "As text, as an SVG image, or as DOT for Graphviz. No manager is needed.",
    .examples = "aliquot pipeline graph digits.yaml\n"
                "aliquot pipeline graph digits.yaml --format svg >digits.svg",
    .opts = graph_opts,
    .opts_size = sizeof(struct pipeline_graph_opts),
    .min_args = 1,
    .max_args = 1,
    .flags = CLI_NO_CONFIG,
    .run = pipeline_graph,
};
