/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline ls", "versions" and "show": pipelines that the manager keeps, and one run. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "base/uuid.h"
#include "cli/list.h"
#include "cli/pipeline/pipeline_view.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define PIPELINES "/aliquot/v1/pipelines"

static const struct cli_things kept_pipelines = { PIPELINES "/", NULL };
static const struct cli_things kept_runs = { PIPELINE_RUNS "/", NULL };

/* ---- ls ---- */

static const struct column pipeline_columns[] = {
    { "name", "PIPELINE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "version", "VERSION", COLUMN_NUMBER, 0 },
    { "last_run", "LAST RUN", COLUMN_TEXT, 0 },
    { "last_run_state", "STATE", COLUMN_STATUS, 0 },
    { "next_at", "NEXT", COLUMN_CLOCK, 0 },
    { "saved_at", "AGE", COLUMN_TIME, 0 },
    { "user_email", "USER", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "hash", "HASH", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

struct pipeline_ls_opts {
    struct list_opts list;
    bool everyone;
};

static const struct cli_opt ls_opts[] = {
    { 'A', "everyone", CLI_FLAG, offsetof(struct pipeline_ls_opts, everyone), NULL,
      "those of all users (administrators)" },
    LIST_OPT_ROWS(struct pipeline_ls_opts),
    CLI_OPT_END,
};

static int pipeline_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct pipeline_ls_opts *opts = data;

    (void)argc;
    (void)argv;
    return list_show(cli, opts->everyone ? PIPELINES "?all=true" : PIPELINES, &opts->list,
                     pipeline_columns, err);
}

const struct cli_verb verb_pipeline_ls = {
    .name = "pipeline ls",
    .args = "",
    .summary =
        "List pipelines, each with its latest version and run, and when a trigger is due next",
    .details = "Runs are listed by 'aliquot pipeline runs'.",
    .examples = "aliquot pipeline ls",
    .if_empty = "you have no pipelines; to run and keep one: aliquot pipeline run FILE",
    .opts = ls_opts,
    .opts_size = sizeof(struct pipeline_ls_opts),
    .run = pipeline_ls,
};

/* ---- versions ---- */

static const struct column version_columns[] = {
    { "version", "VERSION", COLUMN_NUMBER, COLUMN_IS_NAME },
    { "saved_at", "AGE", COLUMN_TIME, 0 },
    { "hash", "HASH", COLUMN_TEXT, 0 },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

struct pipeline_versions_opts {
    struct list_opts list;
};

static const struct cli_opt versions_opts[] = {
    LIST_OPT_ROWS(struct pipeline_versions_opts),
    CLI_OPT_END,
};

static int pipeline_versions(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    const struct pipeline_versions_opts *opts = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)argc;
    cli_thing_path(&kept_pipelines, argv[0], "/versions", &path);
    return list_show(cli, path.data, &opts->list, version_columns, err);
}

const struct cli_verb verb_pipeline_versions = {
    .name = "pipeline versions",
    .args = "NAME",
    .summary = "List the versions of a pipeline that are kept, the newest first",
    .examples = "aliquot pipeline versions digits",
    .opts = versions_opts,
    .opts_size = sizeof(struct pipeline_versions_opts),
    .min_args = 1,
    .max_args = 1,
    .run = pipeline_versions,
};

/* ---- show ---- */

struct pipeline_show_opts {
    struct cli_int version;
};

static const struct cli_opt show_opts[] = {
    { 0, "version", CLI_INT, offsetof(struct pipeline_show_opts, version), "N",
      "this version of a pipeline; default: the latest" },
    CLI_OPT_END,
};

/* A name of a pipeline has neither a dot nor the form of an id. */
static bool pipeline_show_is_run(const char *text)
{
    struct uuid id;

    return strchr(text, '.') || uuid_parse(text, &id) == 0;
}

static int pipeline_show_run(struct cli *cli, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *run = NULL;
    struct pipeline_view view;
    int r = cli_thing_call(cli, METHOD_GET, &kept_runs, name, "", NULL, &run, err);

    if (r < 0)
        return r;
    if (!output_is_human(&cli->output)) {
        output_document(&cli->output, run, &out);
        return cli_print(&out, err);
    }
    if ((r = pipeline_view_open(&view, run, clock_realtime_usec(), err)) == 0)
        pipeline_view_write(&view, run, &cli->output, &out);
    pipeline_view_close(&view);
    return r < 0 ? r : cli_print(&out, err);
}

static int pipeline_show_kept(struct cli *cli, const char *name, int64_t version,
                              struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_auto_t *kept = NULL;
    const char *text;
    char rest[40] = "";
    int r;

    if (version)
        (void)snprintf(rest, sizeof(rest), "?version=%lld", (long long)version);
    if ((r = cli_thing_call(cli, METHOD_GET, &kept_pipelines, name, rest, NULL, &kept, err)) < 0)
        return r;
    if (output_is_human(&cli->output)) {
        text = output_text(kept, "text");
        utf8_write_printable(text, strlen(text), &out);
        if (out.len && out.data[out.len - 1] != '\n')
            strbuf_addc(&out, '\n');
    } else {
        output_document(&cli->output, kept, &out);
    }
    return cli_print(&out, err);
}

static int pipeline_show(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct pipeline_show_opts *opts = data;

    (void)argc;
    if (!pipeline_show_is_run(argv[0]))
        return pipeline_show_kept(cli, argv[0], opts->version.value, err);
    if (opts->version.is_set)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--version is for the name of a pipeline, not for run '%.60s'",
                            argv[0]);
    return pipeline_show_run(cli, argv[0], err);
}

const struct cli_verb verb_pipeline_show = {
    .name = "pipeline show",
    .args = "RUN|NAME",
    .summary = "Show how far a run of a pipeline is, or the file of a pipeline",
    .details =
        "RUN is the name of a run, such as digits.7, or its id. As JSON also its file, and the\n"
        "session and the outputs of each task. NAME is a pipeline that the manager keeps.",
    .examples = "aliquot pipeline show digits.7\n"
                "aliquot pipeline show digits.7 -o json\n"
                "aliquot pipeline show digits --version 2 >digits.yaml",
    .opts = show_opts,
    .opts_size = sizeof(struct pipeline_show_opts),
    .min_args = 1,
    .max_args = 1,
    .run = pipeline_show,
};
