/* What is used, live: nodes, devices, and the sessions that use most. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/session.h"
#include "cli/usage.h"
#include "cli/verbs.h"

#define PAUSE_USUAL_USEC (2 * USEC_PER_SEC)
#define SESSIONS_USUAL 20

/* ---- top ---- */

struct top_opts {
    bool all, once;
    struct cli_int limit, pause;
};

static const struct cli_opt top_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct top_opts, all), NULL,
      "everybody's sessions; administrators" },
    { 'n', "limit", CLI_INT, offsetof(struct top_opts, limit), "N",
      "at most so many sessions; 20 unless given" },
    { 0, "interval", CLI_DURATION, offsetof(struct top_opts, pause), "TIME",
      "show it again after so long; 2s unless given" },
    { 0, "once", CLI_FLAG, offsetof(struct top_opts, once), NULL, "show it once" },
    CLI_OPT_END,
};

static const struct column top_columns[] = {
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "name", "SESSION", COLUMN_TEXT, COLUMN_IS_NAME },
    { "user", "USER", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_MAY_SHRINK },
    { "running_since", "AGE", COLUMN_TIME, 0 },
    { "cpu", "CPU %", COLUMN_NUMBER, 0 },
    { "mem", "MEMORY", COLUMN_NUMBER, 0 },
    { "accelerators", "ACCELERATORS", COLUMN_TEXT, 0 },
    { "net", "NET IN/OUT", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "io", "IO READ/WRITE", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

static void set_text(json_t *row, const char *key, const struct strbuf *text)
{
    (void)json_object_set_new(row, key, text->len ? json_string(text->data) : json_null());
}

static void set_metric(const struct cli *cli, json_t *row, const char *key, const json_t *used,
                       const char *metric, const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (json_object_get(used, metric))
        usage_write(&cli->output, json_object_get(used, metric), member, &text);
    set_text(row, key, &text);
}

static void set_pair(const struct cli *cli, json_t *row, const char *key, const json_t *used,
                     const char *in, const char *out, const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (json_object_get(used, in)) {
        usage_write(&cli->output, json_object_get(used, in), member, &text);
        strbuf_adds(&text, " / ");
        usage_write(&cli->output, json_object_get(used, out), member, &text);
    }
    set_text(row, key, &text);
}

/* "cuda 73 % 1.5 GiB" for each kind of device that the session has. */
static void set_accelerators(const struct cli *cli, json_t *row, const json_t *used)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const char *key;
    json_t *metric;

    json_object_foreach((json_t *)(uintptr_t)used, key, metric) {
        size_t len = strlen(key);
        char memory[80];

        if (len < 6 || strcmp(key + len - 5, "_util") != 0 || strcmp(key, "cpu_util") == 0)
            continue;
        (void)snprintf(memory, sizeof(memory), "%.*s_mem", (int)AQ_MIN(len - 5, (size_t)60), key);
        strbuf_addf(&text, "%s%.*s %.0f %%", text.len ? ", " : "", (int)(len - 5), key,
                    usage_number(metric, "pct"));
        if (json_object_get(used, memory)) {
            strbuf_addc(&text, ' ');
            usage_write(&cli->output, json_object_get(used, memory), "current", &text);
        }
    }
    set_text(row, "accelerators", &text);
}

/* The columns for people, beside what the manager said. */
static void adapt(const struct cli *cli, json_t *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf cpu = STRBUF_INIT;
    const json_t *used = json_object_get(row, "used");

    if (json_object_get(used, "cpu_util"))
        strbuf_addf(&cpu, "%.1f", usage_number(json_object_get(used, "cpu_util"), "current") / 10);
    set_text(row, "cpu", &cpu);
    set_metric(cli, row, "mem", used, "mem", "current");
    set_accelerators(cli, row, used);
    set_pair(cli, row, "net", used, "net_rx", "net_tx", "current");
    set_pair(cli, row, "io", used, "io_read", "io_write", "current");
}

static void write_agents(const struct cli *cli, const json_t *agents, struct strbuf *out)
{
    const struct column column = { "", "", COLUMN_TEXT, 0 };
    const json_t *agent;
    size_t i;

    json_array_foreach(agents, i, agent) {
        cell_write(&cli->output, &column, json_object_get(agent, "id"), out);
        strbuf_adds(out, "  ");
        cell_write(&cli->output, &column, json_object_get(agent, "status"), out);
        strbuf_addc(out, '\n');
        usage_write_node(&cli->output, json_object_get(agent, "statistics"), out);
        strbuf_addc(out, '\n');
    }
}

static int write_json(const json_t *answer, struct strbuf *out, struct aq_error *err)
{
    char *text = json_dumps(answer, JSON_INDENT(2));

    if (!text)
        return aq_fail(err, ENOMEM, "top");
    strbuf_addf(out, "%s\n", text);
    free(text);
    return 0;
}

/* The whole answer for programs, the picture for people. */
static int write_answer(struct cli *cli, const json_t *answer, struct strbuf *out,
                        struct aq_error *err)
{
    json_t *sessions = json_object_get(answer, "sessions"), *session;
    size_t i;

    cli->output.now_usec = clock_realtime_usec();
    if (cli->output.format == OUTPUT_JSON)
        return write_json(answer, out, err);
    json_array_foreach(sessions, i, session)
        adapt(cli, session);
    if (output_is_human(&cli->output))
        write_agents(cli, json_object_get(answer, "agents"), out);
    return output_list(&cli->output, top_columns, sessions, out, err);
}

static int top(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct top_opts *opts = data;
    bool is_live = !opts->once && output_is_human(&cli->output) && isatty(STDOUT_FILENO);
    int64_t pause = opts->pause.is_set ? opts->pause.value : PAUSE_USUAL_USEC;
    struct timespec wait = { pause / USEC_PER_SEC, (long)(pause % USEC_PER_SEC) * 1000 };
    char path[80];
    int r;

    (void)argc;
    (void)argv;
    (void)snprintf(path, sizeof(path), "/aliquot/v1/top?limit=%lld%s",
                   (long long)(opts->limit.is_set ? opts->limit.value : SESSIONS_USUAL),
                   opts->all ? "&all=true" : "");
    do {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        json_t *answer = NULL;

        r = cli_call(cli, METHOD_GET, path, NULL, &answer, err);
        if (is_live)
            strbuf_adds(&out, "\033[H\033[2J");
        if (r == 0)
            r = write_answer(cli, answer, &out, err);
        if (r == 0)
            r = cli_print(&out, err);
        json_decref(answer);
        if (r == 0 && is_live)
            (void)nanosleep(&wait, NULL);
    } while (r == 0 && is_live);
    return r;
}

const struct cli_verb verb_top = {
    .name = "top",
    .args = "",
    .summary = "Show what nodes, devices and sessions use, live",
    .details = "Nodes and devices are shown to administrators. On a terminal the picture is\n"
               "drawn anew every two seconds until Ctrl-C, else once.",
    .examples = "aliquot top\n"
                "aliquot top --all -n 50\n"
                "aliquot top -o json",
    .opts = top_opts,
    .opts_size = sizeof(struct top_opts),
    .min_args = 0,
    .max_args = 0,
    .run = top,
};

/* ---- session stats ---- */

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

/* A member as it came for programs, in its unit for people. */
static void set_member(const struct cli *cli, json_t *row, const char *key, const json_t *metric,
                       const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    json_t *value = json_object_get(metric, member);

    if (value && output_is_human(&cli->output)) {
        usage_write(&cli->output, metric, member, &text);
        set_text(row, key, &text);
    } else {
        (void)json_object_set(row, key, value ? value : json_null());
    }
}

static json_t *new_row(json_t *rows, const char *kernel, const char *metric, json_t *at)
{
    json_t *row = json_object();

    (void)json_object_set_new(row, "kernel", json_string(kernel ? kernel : "?"));
    (void)json_object_set_new(row, "metric", json_string(metric));
    (void)json_object_set(row, "at", at ? at : json_null());
    (void)json_array_append_new(rows, row);
    return row;
}

static void add_kernel(const struct cli *cli, json_t *rows, const json_t *kernel)
{
    const char *hostname = json_string_value(json_object_get(kernel, "hostname")), *key;
    json_t *metric;

    json_object_foreach(json_object_get(kernel, "statistics"), key, metric) {
        json_t *row = new_row(rows, hostname, key, json_object_get(kernel, "at"));

        set_member(cli, row, "now", metric, "current");
        set_member(cli, row, "of", metric, "capacity");
        (void)json_object_set(row, "pct", json_object_get(metric, "pct"));
        set_member(cli, row, "max", metric, "stats.max");
        set_member(cli, row, "avg", metric, "stats.avg");
        set_member(cli, row, "rate", metric, "stats.rate");
        (void)json_object_set(row, "unit_hint", json_object_get(metric, "unit_hint"));
    }
}

static void add_series(const struct cli *cli, json_t *rows, const json_t *item)
{
    static const char *const members[] = { "min", "avg", "max" };
    const char *kernel = json_string_value(json_object_get(item, "kernel")), *key;
    json_t *metric;

    json_object_foreach(json_object_get(item, "metrics"), key, metric) {
        json_t *row = new_row(rows, kernel, key, json_object_get(item, "at"));

        for (size_t i = 0; i < AQ_COUNT(members); i++)
            set_member(cli, row, members[i], metric, members[i]);
        (void)json_object_set(row, "samples", json_object_get(metric, "samples"));
    }
}

static void ask_for(const struct cli *cli, const struct stats_opts *opts, const char *session,
                    struct strbuf *path)
{
    int64_t hour = 3600 * USEC_PER_SEC;
    char hours[24];

    (void)snprintf(hours, sizeof(hours), "%lld",
                   (long long)AQ_MAX((opts->back.value + hour - 1) / hour, INT64_C(1)));
    session_path(cli, path, session, opts->history ? "/statistics/series" : "/statistics");
    cli_path_query(path, "hours", opts->history && opts->back.is_set ? hours : NULL);
}

static int stats(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct stats_opts *opts = data;
    json_t *answer = NULL, *rows = json_array(), *item;
    size_t i;
    int r;

    (void)argc;
    ask_for(cli, opts, argv[0], &path);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    cli->output.now_usec = clock_realtime_usec();
    json_array_foreach(json_object_get(answer, opts->history ? "items" : "kernels"), i, item) {
        if (opts->history)
            add_series(cli, rows, item);
        else
            add_kernel(cli, rows, item);
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
    .run = stats,
};
