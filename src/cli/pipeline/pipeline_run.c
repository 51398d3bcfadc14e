/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline run", "runs", "cancel" and "resume": runs of pipelines. */
#include <errno.h>
#include <string.h>

#include "cli/list.h"
#include "cli/pipeline/pipeline_file.h"
#include "cli/pipeline/pipeline_trigger.h"
#include "cli/pipeline/pipeline_view.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column run_columns[] = {
    { "name", "RUN", COLUMN_TEXT, COLUMN_IS_NAME },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "succeeded", "SUCCEEDED", COLUMN_NUMBER, 0 },
    { "failed", "FAILED", COLUMN_NUMBER, 0 },
    { "running", "RUNNING", COLUMN_NUMBER, 0 },
    { "task_count", "TASKS", COLUMN_NUMBER, 0 },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "user_email", "USER", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "version", "VERSION", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "ended_at", "ENDED", COLUMN_TIME, COLUMN_IS_WIDE },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

static const struct cli_things pipeline_runs = { PIPELINE_RUNS "/", NULL };

/* ---- run ---- */

struct pipeline_run_opts {
    struct cli_list parameters;
    const char *group, *resource_group;
    bool cache, watch;
};

static const struct cli_opt run_opts[] = {
    { 'p', "parameter", CLI_LIST, offsetof(struct pipeline_run_opts, parameters), "NAME=VALUE",
      "a parameter of the pipeline; repeatable" },
    { 'g', "group", CLI_STR, offsetof(struct pipeline_run_opts, group), "PROJECT",
      "project that the sessions belong to", "group" },
    { 0, "resource-group", CLI_STR, offsetof(struct pipeline_run_opts, resource_group),
      "RESOURCE-GROUP", "of tasks that name none", "resource_group" },
    { 0, "cache", CLI_FLAG, offsetof(struct pipeline_run_opts, cache), NULL,
      "reuse unchanged tasks that succeeded in an earlier run", "cache" },
    { 'w', "watch", CLI_FLAG, offsetof(struct pipeline_run_opts, watch), NULL,
      "follow it until it has ended, as 'pipeline watch'" },
    CLI_OPT_END,
};

static int pipeline_run_parameters(const struct cli_list *list, json_t *body, struct aq_error *err)
{
    json_t *all = json_object();

    (void)json_object_set_new(body, "parameters", all);
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        AQ_CLEANUP(aq_freep) char *name = equals ? aq_format("%.*s", (int)(equals - list->items[i]),
                                                             list->items[i])
                                                 : NULL;

        if (!equals || json_object_set_new(all, name, json_string(equals + 1)) < 0)
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "-p takes NAME=VALUE in UTF-8, not '%.60s'", list->items[i]);
    }
    return 0;
}

static int pipeline_run_print_name(struct cli *cli, const json_t *run, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;

    if (output_is_human(&cli->output))
        strbuf_addf(&out, "%s\n", output_text(run, "name"));
    else
        output_document(&cli->output, run, &out);
    return cli_print(&out, err);
}

static int pipeline_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    const struct pipeline_run_opts *opts = data;
    json_auto_t *body = json_object();
    json_auto_t *run = NULL;
    int r;

    (void)argc;
    if ((r = pipeline_file_add_source(argv[0], body, &p, err)) < 0
        || (r = pipeline_run_parameters(&opts->parameters, body, err)) < 0
        || (r = cli_options_add(run_opts, opts, body, err)) < 0)
        return r;
    if (cli->globals.owner)
        (void)json_object_set_new(body, "owner_access_key", json_string(cli->globals.owner));
    if ((r = cli_call_once(cli, PIPELINE_RUNS, body, &run, err)) < 0
        || (r = pipeline_run_print_name(cli, run, err)) < 0)
        return r;
    if (p)
        pipeline_triggers_note_off(cli, p);
    return opts->watch ? pipeline_watch_run(cli, output_text(run, "id"), err) : 0;
}

const struct cli_verb verb_pipeline_run = {
    .name = "pipeline run",
    .args = "FILE|NAME",
    .summary = "Run a pipeline, and print the name of the run",
    .details =
        "FILE is checked here and kept by the manager, as a version of its name if it differs\n"
        "from those before; NAME means the latest version that was kept. Something with a\n"
        "dot or slash is a file, and so is '-', standard input.",
    .examples = "aliquot pipeline run digits.yaml -p epochs=5 --watch\n"
                "aliquot pipeline run digits --cache",
    .opts = run_opts,
    .opts_size = sizeof(struct pipeline_run_opts),
    .min_args = 1,
    .max_args = 1,
    .run = pipeline_run,
};

/* ---- runs ---- */

struct pipeline_runs_opts {
    struct list_opts list;
    bool everyone;
};

static const struct cli_opt runs_opts[] = {
    { 'A', "everyone", CLI_FLAG, offsetof(struct pipeline_runs_opts, everyone), NULL,
      "those of all users (administrators)" },
    LIST_OPT_ROWS(struct pipeline_runs_opts),
    CLI_OPT_END,
};

static int pipeline_runs_list(struct cli *cli, void *data, int argc, char **argv,
                              struct aq_error *err)
{
    const struct pipeline_runs_opts *opts = data;

    (void)argc;
    (void)argv;
    return list_show(cli, opts->everyone ? PIPELINE_RUNS "?all=true" : PIPELINE_RUNS, &opts->list,
                     run_columns, err);
}

const struct cli_verb verb_pipeline_runs = {
    .name = "pipeline runs",
    .args = "",
    .summary = "List runs of pipelines, the newest first",
    .examples = "aliquot pipeline runs\n"
                "aliquot pipeline runs --filter name=digits --filter state=failed",
    .if_empty = "you have no runs of pipelines; to begin one: aliquot pipeline run FILE",
    .opts = runs_opts,
    .opts_size = sizeof(struct pipeline_runs_opts),
    .run = pipeline_runs_list,
};

/* ---- cancel, resume ---- */

static int pipeline_cancel(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return cli_things_call(cli, METHOD_POST, &pipeline_runs, "/cancel", NULL, argc, argv, err);
}

const struct cli_verb verb_pipeline_cancel = {
    .name = "pipeline cancel",
    .args = "RUN...",
    .summary = "End runs of pipelines and their sessions",
    .examples = "aliquot pipeline cancel digits.7",
    .min_args = 1,
    .max_args = -1,
    .run = pipeline_cancel,
};

struct pipeline_resume_opts {
    const char *file;
    bool watch;
};

static const struct cli_opt resume_opts[] = {
    { 'f', "file", CLI_STR, offsetof(struct pipeline_resume_opts, file), "FILE",
      "go on with this version of the pipeline" },
    { 'w', "watch", CLI_FLAG, offsetof(struct pipeline_resume_opts, watch), NULL,
      "follow it until it has ended, as 'pipeline watch'" },
    CLI_OPT_END,
};

static int pipeline_resume(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf file = STRBUF_INIT;
    AQ_CLEANUP(pipeline_freep) struct pipeline *p = NULL;
    const struct pipeline_resume_opts *opts = data;
    json_auto_t *body = json_object();
    json_auto_t *run = NULL;
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r = 0;

    (void)argc;
    cli_thing_path(&pipeline_runs, argv[0], "/resume", &path);
    if (opts->file && (r = pipeline_file_read(opts->file, &file, &p, err)) == 0)
        (void)json_object_set_new(body, "payload", json_string(file.data));
    if (r < 0 || (r = cli_call_once(cli, path.data, body, &run, err)) < 0
        || (r = pipeline_run_print_name(cli, run, err)) < 0)
        return r;
    return opts->watch ? pipeline_watch_run(cli, output_text(run, "id"), err) : 0;
}

const struct cli_verb verb_pipeline_resume = {
    .name = "pipeline resume",
    .args = "RUN",
    .summary = "Run again what has not succeeded in a run",
    .details = "Tasks that succeeded are kept if neither their definition nor what they need has\n"
               "changed. A run that succeeded can be resumed with another file only.",
    .examples = "aliquot pipeline resume digits.7\n"
                "aliquot pipeline resume digits.7 --file fixed.yaml --watch",
    .opts = resume_opts,
    .opts_size = sizeof(struct pipeline_resume_opts),
    .min_args = 1,
    .max_args = 1,
    .run = pipeline_resume,
};
