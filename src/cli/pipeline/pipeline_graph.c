/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline graph": a pipeline, or a run of one, as a picture. */
#include <errno.h>
#include <string.h>

#include <unistd.h>

#include "base/clock.h"
#include "cli/pipeline/pipeline_file.h"
#include "cli/pipeline/pipeline_view.h"
#include "cli/request.h"
#include "cli/verbs.h"

struct pipeline_graph_opts {
    int format; /* enum graph_format + 1; 0 = text */
};

enum graph_format { GRAPH_TEXT, GRAPH_SVG, GRAPH_DOT };

static const struct cli_opt graph_opts[] = {
    { 0, "format", CLI_CHOICE, offsetof(struct pipeline_graph_opts, format), "text|svg|dot",
      "default text; dot is for Graphviz" },
    CLI_OPT_END,
};

static void pipeline_graph_write(const struct cli *cli, const struct pipeline_graph_opts *opts,
                                 const struct pipeline *p, const struct graph_state *states,
                                 struct strbuf *out)
{
    if (opts->format == GRAPH_SVG + 1)
        graph_write_svg(p, states, out);
    else if (opts->format == GRAPH_DOT + 1)
        graph_write_dot(p, states, out);
    else
        graph_write_text(p, states, (struct graph_style){ cli->output.ascii, cli->output.colour },
                         out);
}

static int pipeline_graph_file(struct cli *cli, const struct pipeline_graph_opts *opts,
                               const char *path, struct strbuf *out, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    int r = pipeline_file_read(path, &text, &p, err);

    if (r == 0)
        pipeline_graph_write(cli, opts, p, NULL, out);
    return r;
}

static int pipeline_graph_run(struct cli *cli, const struct pipeline_graph_opts *opts,
                              const char *name, struct strbuf *out, struct aq_error *err)
{
    static const struct cli_things runs = { PIPELINE_RUNS "/", NULL };
    struct pipeline_view view;
    json_auto_t *run = NULL;
    int r = cli_config_load(&cli->config, cli->globals.endpoint, cli->globals.profile, err);

    if (r < 0 || (r = cli_thing_call(cli, METHOD_GET, &runs, name, "", NULL, &run, err)) < 0)
        return r;
    if ((r = pipeline_view_open(&view, run, clock_realtime_usec(), err)) == 0)
        pipeline_graph_write(cli, opts, view.file, view.states, out);
    pipeline_view_close(&view);
    return r;
}

static int pipeline_graph(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    bool is_file = strcmp(argv[0], "-") == 0 || access(argv[0], F_OK) == 0;
    int r = is_file ? pipeline_graph_file(cli, data, argv[0], &out, err)
                    : pipeline_graph_run(cli, data, argv[0], &out, err);

    (void)argc;
    return r < 0 ? r : cli_print(&out, err);
}

const struct cli_verb verb_pipeline_graph = {
    .name = "pipeline graph",
    .args = "FILE|RUN",
    .summary = "Draw the graph of a pipeline, or of a run",
    .details =
        "As text, as an SVG image, or as DOT for Graphviz. A run's shows how far it is; for a\n"
        "file no manager is needed.",
    .examples = "aliquot pipeline graph digits.yaml\n"
                "aliquot pipeline graph digits.yaml --format svg >digits.svg\n"
                "aliquot pipeline graph digits.7",
    .opts = graph_opts,
    .opts_size = sizeof(struct pipeline_graph_opts),
    .min_args = 1,
    .max_args = 1,
    .flags = CLI_NO_CONFIG,
    .run = pipeline_graph,
};
