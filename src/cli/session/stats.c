/* SPDX-License-Identifier: Apache-2.0 */
/* What a session uses, or has used. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/session/session.h"
#include "cli/output/resource_usage.h"
#include "cli/verbs.h"

struct stats_opts {
    bool history;
    struct cli_int back;
};

static const struct cli_opt stats_opts[] = {
    { 0, "history", CLI_FLAG, offsetof(struct stats_opts, history), NULL,
      "in the course of time, a row for each quarter of an hour" },
    { 0, "back", CLI_DURATION, offsetof(struct stats_opts, back), "TIME",
      "with --history: of the last so many hours; a month unless given" },
    CLI_OPT_END,
};

static const struct column stats_columns[] = {
    { "kernel", "KERNEL", COLUMN_TEXT, 0 },
    { "metric", "METRIC", COLUMN_TEXT, COLUMN_IS_NAME },
    { "now", "NOW", COLUMN_NUMBER, 0 },
    { "of", "OF", COLUMN_NUMBER, 0 },
    { "pct", "%", COLUMN_NUMBER, 0 },
    { "max", "MAX", COLUMN_NUMBER, 0 },
    { "avg", "AVG", COLUMN_NUMBER, 0 },
    { "rate", "RATE", COLUMN_NUMBER, 0 },
    { "at", "AGE", COLUMN_TIME, COLUMN_IS_WIDE },
    COLUMN_END,
};

static const struct column series_columns[] = {
    { "kernel", "KERNEL", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "at", "AGE", COLUMN_TIME, 0 },
    { "metric", "METRIC", COLUMN_TEXT, COLUMN_IS_NAME },
    { "min", "MIN", COLUMN_NUMBER, 0 },
    { "avg", "AVG", COLUMN_NUMBER, 0 },
    { "max", "MAX", COLUMN_NUMBER, 0 },
    { "samples", "SAMPLES", COLUMN_NUMBER, COLUMN_IS_WIDE },
    COLUMN_END,
};

/* A member as it came for programs, in its unit for users. */
static void stats_set_member(const struct cli *cli, json_t *row, const char *key,
                             const json_t *metric, const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_t *value = json_object_get(metric, member);

    if (value && output_is_human(&cli->output)) {
        usage_write(&cli->output, metric, member, &text);
        (void)json_object_set_new(row, key, json_string(text.data));
    } else {
        (void)json_object_set(row, key, value ? value : json_null());
    }
}

static json_t *stats_new_row(json_t *rows, const char *kernel, const char *metric, json_t *at)
{
    json_t *row = json_object();

    (void)json_object_set_new(row, "kernel", json_string(kernel ? kernel : "?"));
    (void)json_object_set_new(row, "metric", json_string(metric));
    (void)json_object_set(row, "at", at ? at : json_null());
    (void)json_array_append_new(rows, row);
    return row;
}

static void stats_add_kernel(const struct cli *cli, json_t *rows, const json_t *kernel)
{
    const char *hostname = json_string_value(json_object_get(kernel, "hostname")), *key;
    json_t *metric;

    json_object_foreach(json_object_get(kernel, "statistics"), key, metric) {
        json_t *row = stats_new_row(rows, hostname, key, json_object_get(kernel, "at"));

        stats_set_member(cli, row, "now", metric, "current");
        stats_set_member(cli, row, "of", metric, "capacity");
        (void)json_object_set(row, "pct", json_object_get(metric, "pct"));
        stats_set_member(cli, row, "max", metric, "stats.max");
        stats_set_member(cli, row, "avg", metric, "stats.avg");
        stats_set_member(cli, row, "rate", metric, "stats.rate");
        (void)json_object_set(row, "unit_hint", json_object_get(metric, "unit_hint"));
    }
}

static void stats_add_series(const struct cli *cli, json_t *rows, const json_t *item)
{
    static const char *const members[] = { "min", "avg", "max" };
    const char *kernel = json_string_value(json_object_get(item, "kernel")), *key;
    json_t *metric;

    json_object_foreach(json_object_get(item, "metrics"), key, metric) {
        json_t *row = stats_new_row(rows, kernel, key, json_object_get(item, "at"));

        for (size_t i = 0; i < AQ_COUNT(members); i++)
            stats_set_member(cli, row, members[i], metric, members[i]);
        (void)json_object_set(row, "samples", json_object_get(metric, "samples"));
    }
}

static void stats_path(const struct cli *cli, const struct stats_opts *opts, const char *session,
                       struct strbuf *path)
{
    int64_t hour = 3600 * USEC_PER_SEC;
    char hours[24];

    (void)snprintf(hours, sizeof(hours), "%lld",
                   (long long)AQ_MAX((opts->back.value + hour - 1) / hour, INT64_C(1)));
    session_path(cli, path, session, opts->history ? "/statistics/series" : "/statistics");
    cli_path_query(path, "hours", opts->history && opts->back.is_set ? hours : NULL);
}

static int stats_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct stats_opts *opts = data;
    json_t *answer = NULL, *rows = json_array(), *item;
    size_t i;
    int r;

    (void)argc;
    stats_path(cli, opts, argv[0], &path);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    cli->output.now_usec = clock_realtime_usec();
    json_array_foreach(json_object_get(answer, opts->history ? "items" : "kernels"), i, item) {
        if (opts->history)
            stats_add_series(cli, rows, item);
        else
            stats_add_kernel(cli, rows, item);
    }
    if (r == 0)
        r = output_list(&cli->output, opts->history ? series_columns : stats_columns, rows, &out,
                        err);
    if (r == 0)
        r = cli_print(&out, err);
    json_decref(rows);
    json_decref(answer);
    return r < 0 ? aq_error_wrap(err, "session '%s'", argv[0]) : 0;
}

const struct cli_verb verb_session_stats = {
    .name = "session stats",
    .args = "SESSION",
    .summary = "Show what a session uses, or has used",
    .examples = "aliquot session stats train-3fa2b1\n"
                "aliquot session stats --history --back 24h train-3fa2b1",
    .opts = stats_opts,
    .opts_size = sizeof(struct stats_opts),
    .min_args = 1,
    .max_args = 1,
    .run = stats_run,
};
