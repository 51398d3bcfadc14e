/* SPDX-License-Identifier: Apache-2.0 */
/* What a session uses, or has used. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/output/progress.h"
#include "cli/output/resource_usage.h"
#include "cli/session/live.h"
#include "cli/session/session.h"
#include "cli/session/stats_table.h"
#include "cli/session/summary.h"
#include "cli/verbs.h"

#define TIMEOUT_USUAL_USEC (30 * USEC_PER_SEC) /* agents measure every five seconds, usually */
#define INTERVAL_USUAL_USEC (2 * USEC_PER_SEC)

struct stats_opts {
    bool history, watch;
    struct cli_int back, interval, timeout;
    const char *kernel;
};

static const struct cli_opt stats_opts[] = {
    { 0, "history", CLI_FLAG, offsetof(struct stats_opts, history), NULL,
      "in the course of time, a row for each quarter of an hour" },
    { 0, "back", CLI_DURATION, offsetof(struct stats_opts, back), "TIME",
      "with --history: of the last so many hours; default a month" },
    { 'w', "watch", CLI_FLAG, offsetof(struct stats_opts, watch), NULL,
      "show it again and again, with a time line" },
    { 0, "interval", CLI_DURATION, offsetof(struct stats_opts, interval), "TIME",
      "with --watch: after so long; default 2s" },
    { 0, "timeout", CLI_DURATION, offsetof(struct stats_opts, timeout), "TIME",
      "wait so long for the first sample; default 30s" },
    { 0, "kernel", CLI_STR, offsetof(struct stats_opts, kernel), "HOSTNAME",
      "of this kernel alone, such as sub1" },
    CLI_OPT_END,
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

/* A member of the metric 'key' as it came for programs, in its unit for users. */
static void stats_set_member(const struct cli *cli, json_t *row, const char *key,
                             const json_t *metric, const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_t *value = json_object_get(metric, member);

    if (value && output_is_human(&cli->output)) {
        usage_write_used(&cli->output, key, metric, member, &text);
        (void)json_object_set_new(row, member, json_string(text.data));
    } else {
        (void)json_object_set(row, member, value ? value : json_null());
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

static void stats_add_series(const struct cli *cli, json_t *rows, const json_t *item)
{
    static const char *const members[] = { "min", "avg", "max" };
    const char *kernel = json_string_value(json_object_get(item, "kernel")), *key;
    json_t *metric;

    json_object_foreach(json_object_get(item, "metrics"), key, metric) {
        json_t *row = stats_new_row(rows, kernel, key, json_object_get(item, "at"));

        for (size_t i = 0; i < AQ_COUNT(members); i++)
            stats_set_member(cli, row, key, metric, members[i]);
        (void)json_object_set(row, "samples", json_object_get(metric, "samples"));
    }
}

static void stats_series_path(const struct cli *cli, const struct stats_opts *opts,
                              const char *session, struct strbuf *path)
{
    int64_t hour = 3600 * USEC_PER_SEC;
    char hours[24];

    (void)snprintf(hours, sizeof(hours), "%lld",
                   (long long)AQ_MAX((opts->back.value + hour - 1) / hour, INT64_C(1)));
    session_path(cli, path, session, "/statistics/series");
    cli_path_query(path, "hours", opts->back.is_set ? hours : NULL);
    cli_path_query(path, "kernel", opts->kernel);
}

static int stats_show_series(struct cli *cli, const struct stats_opts *opts, const char *session,
                             struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *answer = NULL, *rows = json_array(), *item;
    size_t i;
    int r;

    stats_series_path(cli, opts, session, &path);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    cli->output.now_usec = clock_realtime_usec();
    json_array_foreach(json_object_get(answer, "items"), i, item)
        stats_add_series(cli, rows, item);
    if (r == 0)
        r = list_print(cli, series_columns, rows, err);
    json_decref(rows);
    json_decref(answer);
    return r;
}

/* ---- the first sample ---- */

static int stats_fail_late(const char *status, int64_t timeout_usec, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf span = STRBUF_INIT;

    cell_write_span(timeout_usec, &span);
    return aq_fail(err, ETIMEDOUT, "it is %s and was not measured within %s", status, span.data);
}

static void stats_pause(struct progress *progress)
{
    const struct timespec pause = { 0, (long)(100 * USEC_PER_MSEC) * 1000 };

    progress_stage(progress, "waiting for the first sample");
    progress_tick(progress);
    (void)nanosleep(&pause, NULL);
}

/* One that does not run yet is followed until it does, with what it waits for. */
static int stats_await_start(struct cli *cli, const char *name, int64_t left_usec,
                             struct aq_error *err)
{
    struct follow_session session;
    int r = session_resolve(cli, name, &session, err), status;

    return r < 0 ? r : follow_sessions(cli, &session, 1, FOLLOW_START, left_usec, &status, err);
}

/* What to wait for after an answer without a sample; 0 = ask again. */
static int stats_await_more(struct cli *cli, const char *name, const json_t *answer,
                            int64_t deadline_usec, int64_t timeout_usec, struct progress *progress,
                            struct aq_error *err)
{
    const char *text = json_string_value(json_object_get(answer, "status"));
    int64_t left_usec = deadline_usec - clock_monotonic_usec();
    enum session_status status;
    int r = 0;

    if (!text || session_status_parse(text, &status) < 0)
        return aq_fail(err, EPROTO, "the manager's answer has no status");
    if (session_is_terminal(status))
        return aq_fail(err, ENODATA, "it has ended (%s) and was never measured", text);
    if (left_usec <= 0)
        return stats_fail_late(text, timeout_usec, err);
    if (status == SESSION_RUNNING || status == SESSION_RUNNING_DEGRADED)
        stats_pause(progress);
    else
        r = stats_await_start(cli, name, left_usec, err);
    if (r == -ETIMEDOUT)
        cli_hint(cli, "see what it waits for: aliquot session why %s", name);
    return r == -ETIMEDOUT ? stats_fail_late(text, timeout_usec, err) : r;
}

static int stats_await(struct cli *cli, const struct stats_opts *opts, const char *name,
                       const char *path, json_t **ret, struct aq_error *err)
{
    int64_t timeout_usec = opts->timeout.is_set ? opts->timeout.value : TIMEOUT_USUAL_USEC;
    int64_t deadline_usec = clock_monotonic_usec() + timeout_usec;
    struct progress progress;
    json_t *answer = NULL;
    int r;

    progress_init(&progress, cli->globals.quiet, cli->output.ascii);
    do {
        json_decref(answer);
        answer = NULL;
        r = cli_call(cli, METHOD_GET, path, NULL, &answer, err);
        if (r < 0 || stats_is_measured(answer))
            break;
        r = stats_await_more(cli, name, answer, deadline_usec, timeout_usec, &progress, err);
    } while (r == 0);
    progress_clear(&progress);
    if (r == 0)
        *ret = AQ_TAKE(answer);
    json_decref(answer);
    return r;
}

/* ---- now, and again and again ---- */

static int stats_print(struct cli *cli, const struct stats_history *h, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r;

    cli->output.now_usec = clock_realtime_usec();
    r = stats_write(&cli->output, h, &out, err);
    return r < 0 ? r : cli_print(&out, err);
}

static bool stats_is_final(const struct stats_history *h)
{
    const char *text = json_string_value(json_object_get(h->answers[h->count - 1], "status"));
    enum session_status status;

    return text && session_status_parse(text, &status) == 0 && session_is_terminal(status);
}

static void stats_draw(struct live *l, const struct stats_history *h)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct output o = live_output(l);

    stats_write_live(&o, h, &text);
    live_draw(l, &text, "q quit");
}

static bool stats_is_quit(uint32_t key)
{
    return key == 'q' || key == KEY_ESCAPE || key == KEY_INTERRUPT;
}

/* On the terminal until a key leaves it, or the session has ended; then what was last. */
static int stats_watch_live(struct cli *cli, const char *path, int64_t interval_usec,
                            struct stats_history *h, struct aq_error *err)
{
    struct live live;
    uint32_t key = KEY_NONE;
    int r = live_open(&live, cli, path, interval_usec, err);

    while (r == 0 && !stats_is_final(h) && !stats_is_quit(key)) {
        json_t *answer;

        stats_draw(&live, h);
        key = live_wait(&live);
        answer = live_take_answer(&live);
        if (answer)
            stats_history_add(h, answer);
    }
    live_close(&live);
    return r < 0 ? r : stats_print(cli, h, err);
}

/* Elsewhere one list after the other. */
static int stats_watch_plain(struct cli *cli, const char *path, int64_t interval_usec,
                             struct stats_history *h, struct aq_error *err)
{
    const struct timespec pause = { interval_usec / USEC_PER_SEC,
                                    (long)(interval_usec % USEC_PER_SEC) * 1000 };
    int r = stats_print(cli, h, err);

    while (r == 0 && !stats_is_final(h)) {
        json_t *answer = NULL;

        (void)nanosleep(&pause, NULL);
        r = cli_call(cli, METHOD_GET, path, NULL, &answer, err);
        if (r < 0)
            break;
        stats_history_add(h, answer);
        r = stats_print(cli, h, err);
    }
    return r;
}

/* Usage of a batch session compared with its request, below the table. */
static int stats_print_summary(struct cli *cli, const char *name, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *session = NULL;
    int r;

    if (!output_is_human(&cli->output))
        return 0;
    r = session_get(cli, name, &session, err);
    if (r == 0)
        summary_write(json_object_get(session, "summary"), "\n", &out);
    json_decref(session);
    return r < 0 || !out.len ? r : cli_print(&out, err);
}

static int stats_show(struct cli *cli, const struct stats_opts *opts, const char *name,
                      struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(stats_history_done) struct stats_history h = { .count = 0 };
    int64_t interval = opts->interval.is_set ? opts->interval.value : INTERVAL_USUAL_USEC;
    json_t *answer = NULL;
    int r;

    session_path(cli, &path, name, "/statistics");
    cli_path_query(&path, "kernel", opts->kernel);
    r = stats_await(cli, opts, name, path.data, &answer, err);
    if (r < 0)
        return r;
    stats_history_add(&h, answer);
    if (!opts->watch) {
        r = stats_print(cli, &h, err);
        return r < 0 || opts->kernel ? r : stats_print_summary(cli, name, err);
    }
    if (output_is_human(&cli->output) && screen_is_possible())
        r = stats_watch_live(cli, path.data, interval, &h, err);
    else
        r = stats_watch_plain(cli, path.data, interval, &h, err);
    if (r == 0 && stats_is_final(&h))
        cli_note(cli, "'%s' has ended", name);
    return r;
}

static int stats_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct stats_opts *opts = data;
    int r;

    (void)argc;
    if (opts->history && opts->watch)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--history and --watch exclude each other");
    r = opts->history ? stats_show_series(cli, opts, argv[0], err)
                      : stats_show(cli, opts, argv[0], err);
    return r < 0 ? session_fail(cli, argv[0], err) : 0;
}

const struct cli_verb verb_session_stats = {
    .name = "session stats",
    .args = "SESSION",
    .summary = "Show what a session uses, or has used",
    .details = "Waits for the first sample of a session that has none yet. cpu_util is shown in\n"
               "cores, of those that were asked for, as 'aliquot top' shows it; with -o json and\n"
               "the like in thousandths of a core, as the API has it. Below it is how much of its\n"
               "request a batch session used, and what to request next time. --watch ends with\n"
               "the session, on a terminal also with q.",
    .examples = "aliquot session stats train-3fa2b1\n"
                "aliquot session stats --watch train-3fa2b1\n"
                "aliquot session stats --history --back 24h train-3fa2b1",
    .opts = stats_opts,
    .opts_size = sizeof(struct stats_opts),
    .min_args = 1,
    .max_args = 1,
    .run = stats_run,
};
