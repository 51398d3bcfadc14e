/* SPDX-License-Identifier: Apache-2.0 */
/* "pipeline triggers", "enable" and "disable": schedules of pipelines, and chains of them. */
#include "cli/pipeline/pipeline_trigger.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/pipeline/pipeline_file.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define TRIGGERS "/aliquot/v1/pipeline-triggers"
#define PIPELINES "/aliquot/v1/pipelines"
#define NEXT_SHOWN 3 /* due times of a schedule */

/* ---- triggers of a file ---- */

static void pipeline_trigger_name(const struct pipeline_trigger *trigger, struct strbuf *out)
{
    if (trigger->cron)
        strbuf_addf(out, "%s %s", trigger->cron, trigger->zone);
    else
        strbuf_addf(out, "after %s (%s)", trigger->after, trigger->ends);
}

void pipeline_triggers_write(const struct pipeline *p, struct strbuf *out)
{
    for (size_t i = 0; i < p->trigger_count; i++) {
        strbuf_adds(out, i == 0 ? "triggers: " : ", ");
        pipeline_trigger_name(&p->triggers[i], out);
    }
    if (p->trigger_count > 0)
        strbuf_addf(out, "; overlap %s, missed %s\n", p->overlap, p->missed);
}

/* The next due times of a schedule, Unix time in seconds; how many. */
static size_t pipeline_trigger_next(const struct pipeline_trigger *trigger, int64_t ret[NEXT_SHOWN],
                                    int32_t ret_offsets[NEXT_SHOWN])
{
    AQ_CLEANUP(time_zone_freep) struct time_zone *zone = NULL;
    int64_t at = clock_realtime_usec() / USEC_PER_SEC;
    size_t count = 0;

    if (!trigger->cron || time_zone_open(trigger->zone, &zone, NULL) < 0)
        return 0;
    while (count < NEXT_SHOWN && (at = cron_next(&trigger->schedule, zone, at)) < CRON_NEVER) {
        ret_offsets[count] = time_zone_find(zone, at).offset;
        ret[count++] = at;
    }
    return count;
}

void pipeline_triggers_write_next(const struct pipeline *p, struct strbuf *out)
{
    for (size_t i = 0; i < p->trigger_count; i++) {
        int64_t next[NEXT_SHOWN];
        int32_t offsets[NEXT_SHOWN];
        size_t count = pipeline_trigger_next(&p->triggers[i], next, offsets);

        pipeline_trigger_name(&p->triggers[i], out);
        for (size_t k = 0; k < count; k++) {
            char text[CLOCK_ISO_MAX];

            (void)clock_format_iso((next[k] + offsets[k]) * USEC_PER_SEC, text);
            text[10] = ' '; /* "2026-12-01 02:30" of "2026-12-01T02:30:00+00:00" */
            strbuf_addf(out, "%s%.16s", k == 0 ? ": next " : ", ", text);
        }
        strbuf_addc(out, '\n');
    }
}

json_t *pipeline_triggers_describe(const struct pipeline *p)
{
    json_t *all = json_array();

    for (size_t i = 0; i < p->trigger_count; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf name = STRBUF_INIT;
        json_t *times = json_array();
        int64_t next[NEXT_SHOWN];
        int32_t offsets[NEXT_SHOWN];
        size_t count = pipeline_trigger_next(&p->triggers[i], next, offsets);

        pipeline_trigger_name(&p->triggers[i], &name);
        for (size_t k = 0; k < count; k++) {
            char text[CLOCK_ISO_MAX];

            (void)json_array_append_new(
                times, json_string(clock_format_iso(next[k] * USEC_PER_SEC, text)));
        }
        (void)json_array_append_new(all,
                                    json_pack("{s:s, s:o}", "trigger", name.data, "next", times));
    }
    return all;
}

/* ---- triggers ---- */

static const struct column trigger_columns[] = {
    { "pipeline", "PIPELINE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "trigger", "TRIGGER", COLUMN_TEXT, 0 },
    { "is_enabled", "ENABLED", COLUMN_BOOL, 0 },
    { "next_at", "NEXT", COLUMN_CLOCK, 0 },
    { "last_at", "LAST", COLUMN_CLOCK, COLUMN_IS_WIDE },
    { "last_result", "RESULT", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "reason", "DISABLED BECAUSE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "overlap", "OVERLAP", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "missed", "MISSED", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "user_email", "USER", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

struct pipeline_triggers_opts {
    struct list_opts list;
    bool everyone;
};

static const struct cli_opt triggers_opts[] = {
    { 'A', "everyone", CLI_FLAG, offsetof(struct pipeline_triggers_opts, everyone), NULL,
      "those of all users (administrators)" },
    LIST_OPT_ROWS(struct pipeline_triggers_opts),
    CLI_OPT_END,
};

static int pipeline_triggers(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    const struct pipeline_triggers_opts *opts = data;

    (void)argc;
    (void)argv;
    return list_show(cli, opts->everyone ? TRIGGERS "?all=true" : TRIGGERS, &opts->list,
                     trigger_columns, err);
}

const struct cli_verb verb_pipeline_triggers = {
    .name = "pipeline triggers",
    .args = "",
    .summary = "List triggers of pipelines, and when they are due next",
    .details =
        "Triggers are in the files of pipelines and start runs once they are enabled. NEXT is\n"
        "in the time zone of this machine; RESULT says what the last due time started, or why\n"
        "it started nothing.",
    .examples = "aliquot pipeline triggers\n"
                "aliquot pipeline triggers --filter pipeline=digits -o wide",
    .if_empty = "no pipeline of yours has triggers; they are in its file: aliquot-pipeline(1)",
    .opts = triggers_opts,
    .opts_size = sizeof(struct pipeline_triggers_opts),
    .run = pipeline_triggers,
};

void pipeline_triggers_note_off(struct cli *cli, const struct pipeline *p)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *rows = NULL, *row;
    struct aq_error err;
    bool is_enabled = false;
    size_t i;

    if (!p->trigger_count)
        return;
    strbuf_adds(&path, TRIGGERS);
    cli_path_query(&path, "owner_access_key", cli->globals.owner);
    if (cli_call_list(cli, path.data, CLI_PAGE, 0, &rows, NULL, &err) == 0) {
        json_array_foreach(rows, i, row)
            is_enabled |= strcmp(output_text(row, "pipeline"), p->name) == 0
                          && json_is_true(json_object_get(row, "is_enabled"));
        if (!is_enabled)
            cli_note(cli,
                     "the triggers of '%s' are off; to switch them on: aliquot pipeline "
                     "enable %s",
                     p->name, p->name);
    }
    json_decref(rows);
}

/* ---- enable, disable ---- */

struct pipeline_enable_opts {
    const char *group, *resource_group;
};

static const struct cli_opt enable_opts[] = {
    { 'g', "group", CLI_STR, offsetof(struct pipeline_enable_opts, group), "PROJECT",
      "project that the sessions belong to", "group" },
    { 0, "resource-group", CLI_STR, offsetof(struct pipeline_enable_opts, resource_group),
      "RESOURCE-GROUP", "of tasks that name none", "resource_group" },
    CLI_OPT_END,
};

static const struct cli_things pipelines = { PIPELINES "/", NULL };

/* The name of the pipeline that an argument means: a file is kept first. */
static int pipeline_enable_keep(struct cli *cli, const char *source, json_t **kept,
                                struct aq_error *err)
{
    json_auto_t *body = json_object();
    int r = pipeline_file_add_source(source, body, NULL, err);

    if (r < 0)
        return r;
    if (json_object_get(body, "pipeline")) {
        *kept = json_pack("{s:s}", "name", source);
        return 0;
    }
    if (cli->globals.owner)
        (void)json_object_set_new(body, "owner_access_key", json_string(cli->globals.owner));
    return cli_call(cli, METHOD_POST, PIPELINES, body, kept, err);
}

static int pipeline_enable(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_object();
    json_auto_t *kept = NULL;
    json_auto_t *answer = NULL;
    int r;

    (void)argc;
    if ((r = cli_options_add(enable_opts, data, body, err)) < 0
        || (r = pipeline_enable_keep(cli, argv[0], &kept, err)) < 0)
        return r;
    if (cli->globals.owner)
        (void)json_object_set_new(body, "owner_access_key", json_string(cli->globals.owner));
    if ((r = cli_thing_call(cli, METHOD_POST, &pipelines, output_text(kept, "name"), "/enable",
                            body, &answer, err))
        < 0)
        return r;
    return list_print(cli, trigger_columns, json_object_get(answer, "items"), err);
}

const struct cli_verb verb_pipeline_enable = {
    .name = "pipeline enable",
    .args = "FILE|PIPELINE",
    .summary = "Start runs of a pipeline by its triggers",
    .details =
        "A file is kept first, as by 'pipeline run'. Versions that are kept later bring their\n"
        "triggers with them. Runs are made on your behalf, with this keypair.",
    .examples = "aliquot pipeline enable nightly.yaml\n"
                "aliquot pipeline enable nightly --group research",
    .opts = enable_opts,
    .opts_size = sizeof(struct pipeline_enable_opts),
    .min_args = 1,
    .max_args = 1,
    .run = pipeline_enable,
};

static int pipeline_disable(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    json_auto_t *body = json_object();

    (void)data;
    if (cli->globals.owner)
        (void)json_object_set_new(body, "owner_access_key", json_string(cli->globals.owner));
    return cli_things_call(cli, METHOD_POST, &pipelines, "/disable", body, argc, argv, err);
}

const struct cli_verb verb_pipeline_disable = {
    .name = "pipeline disable",
    .args = "PIPELINE...",
    .summary = "Stop the triggers of pipelines",
    .details =
        "Runs that have begun go on. Due times that pass while a pipeline is disabled are not\n"
        "missed times.",
    .examples = "aliquot pipeline disable nightly",
    .min_args = 1,
    .max_args = -1,
    .run = pipeline_disable,
};
