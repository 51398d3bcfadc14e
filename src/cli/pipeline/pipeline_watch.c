/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline watch": a run on the whole terminal, or a line for each change. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/pipeline/pipeline_view.h"
#include "cli/request.h"
#include "cli/session/live.h"
#include "cli/verbs.h"

#define WATCH_USEC USEC_PER_SEC

static const struct cli_things pipeline_watch_runs = { PIPELINE_RUNS "/", NULL };

static bool pipeline_watch_is_over(const json_t *run)
{
    return json_is_string(json_object_get(run, "ended_at"));
}

static int pipeline_watch_status(const json_t *run)
{
    return strcmp(output_text(run, "state"), "succeeded") == 0 ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
}

static int pipeline_watch_write(const json_t *run, const struct output *o, struct strbuf *out,
                                struct aq_error *err)
{
    struct pipeline_view view;
    int r = pipeline_view_open(&view, run, clock_realtime_usec(), err);

    if (r == 0)
        pipeline_view_write(&view, run, o, out);
    pipeline_view_close(&view);
    return r;
}

/* ---- without a terminal ---- */

/* A line for each task that is in another state than before. */
static void pipeline_watch_compare(const json_t *before, const json_t *now, struct strbuf *out)
{
    const json_t *tasks = json_object_get(now, "tasks"), *old = json_object_get(before, "tasks");
    const json_t *task;
    size_t i;

    json_array_foreach(tasks, i, task) {
        const char *state = output_text(task, "state"), *reason = output_text(task, "reason");

        if (strcmp(state, output_text(json_array_get(old, i), "state")) != 0
            && (old || strcmp(state, "waiting") != 0))
            strbuf_addf(out, "%s %s%s%s\n", output_text(task, "name"), state, *reason ? ": " : "",
                        reason);
    }
}

static int pipeline_watch_lines(struct cli *cli, const char *name, struct aq_error *err)
{
    json_auto_t *before = NULL;
    int64_t lost_usec = 0;

    for (;;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        json_t *run = NULL;
        int r = cli_thing_call(cli, METHOD_GET, &pipeline_watch_runs, name, "", NULL, &run, err);

        if (r < 0 && cli_awaits_manager(cli, err, before != NULL, &lost_usec)) {
            (void)usleep(WATCH_USEC);
            continue;
        }
        if (r < 0)
            return r;
        lost_usec = 0;
        if (output_is_human(&cli->output))
            pipeline_watch_compare(before, run, &out);
        json_decref(before);
        before = run;
        if (pipeline_watch_is_over(run) && !output_is_human(&cli->output))
            output_document(&cli->output, run, &out);
        else if (pipeline_watch_is_over(run))
            strbuf_addf(&out, "%s %s\n", output_text(run, "name"), output_text(run, "state"));
        if ((r = cli_print(&out, err)) < 0)
            return r;
        if (pipeline_watch_is_over(run))
            return pipeline_watch_status(run);
        (void)usleep(WATCH_USEC);
    }
}

/* ---- on a terminal ---- */

/* Until the run has ended or the user leaves; *inout is the last answer. */
static int pipeline_watch_loop(struct live *l, json_t **inout, struct aq_error *err)
{
    while (!pipeline_watch_is_over(*inout)) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct output o = live_output(l);
        json_t *answer;
        uint32_t key;
        int r = pipeline_watch_write(*inout, &o, &out, err);

        if (r < 0)
            return r;
        live_draw(l, &out, "q leave (the run goes on)");
        key = live_wait(l);
        if (key == 'q' || key == KEY_INTERRUPT)
            return CLI_EXIT_INTERRUPTED;
        if ((answer = live_take_answer(l))) {
            json_decref(*inout);
            *inout = answer;
        }
    }
    return pipeline_watch_status(*inout);
}

static int pipeline_watch_screen(struct cli *cli, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT, out = STRBUF_INIT;
    json_auto_t *run = NULL;
    struct live l = { .path = STRBUF_INIT };
    int r = cli_thing_call(cli, METHOD_GET, &pipeline_watch_runs, name, "", NULL, &run, err), shown;

    if (r < 0)
        return r;
    cli_thing_path(&pipeline_watch_runs, name, "", &path);
    if (!pipeline_watch_is_over(run)) {
        if ((r = live_open(&l, cli, path.data, WATCH_USEC, err)) == 0)
            r = pipeline_watch_loop(&l, &run, err);
        live_close(&l);
    } else {
        r = pipeline_watch_status(run);
    }
    if (r < 0)
        return r;
    shown = pipeline_watch_write(run, &cli->output, &out, err);
    if (shown == 0)
        shown = cli_print(&out, err);
    return shown < 0 ? shown : r == CLI_EXIT_INTERRUPTED ? CLI_EXIT_OK : r;
}

int pipeline_watch_run(struct cli *cli, const char *run, struct aq_error *err)
{
    return screen_is_possible() && output_is_human(&cli->output)
               ? pipeline_watch_screen(cli, run, err)
               : pipeline_watch_lines(cli, run, err);
}

static int pipeline_watch(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    return pipeline_watch_run(cli, argv[0], err);
}

const struct cli_verb verb_pipeline_watch = {
    .name = "pipeline watch",
    .args = "RUN",
    .summary = "Follow a run of a pipeline until it has ended",
    .details =
        "On a terminal its graph, drawn again as it changes; q leaves, and the run goes on.\n"
        "Elsewhere a line for each task whose state changes. Exits with 0 if the run\n"
        "succeeded, else with 1. As JSON the run is printed once, when it has ended. A manager\n"
        "that restarts meanwhile is waited for, up to five minutes.",
    .examples = "aliquot pipeline watch digits.7",
    .min_args = 1,
    .max_args = 1,
    .run = pipeline_watch,
};
