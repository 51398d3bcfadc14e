/* SPDX-License-Identifier: Apache-2.0 */
/* What is used, live: nodes, devices, and the sessions that use most. */
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/list.h"
#include "cli/session/session.h"
#include "cli/output/resource_usage.h"
#include "cli/verbs.h"

#define PAUSE_USUAL_USEC (2 * USEC_PER_SEC)
#define SESSIONS_USUAL 20

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

static void top_set_text(json_t *row, const char *key, const struct strbuf *text)
{
    (void)json_object_set_new(row, key, text->len ? json_string(text->data) : json_null());
}

static void top_set_metric(const struct cli *cli, json_t *row, const char *key, const json_t *used,
                           const char *metric, const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (json_object_get(used, metric))
        usage_write(&cli->output, json_object_get(used, metric), member, &text);
    top_set_text(row, key, &text);
}

static void top_set_pair(const struct cli *cli, json_t *row, const char *key, const json_t *used,
                         const char *in, const char *out, const char *member)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    if (json_object_get(used, in)) {
        usage_write(&cli->output, json_object_get(used, in), member, &text);
        strbuf_adds(&text, " / ");
        usage_write(&cli->output, json_object_get(used, out), member, &text);
    }
    top_set_text(row, key, &text);
}

/* "cuda 73 % 1.5 GiB" for each kind of device that the session has. */
static void top_set_accelerators(const struct cli *cli, json_t *row, const json_t *used)
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
    top_set_text(row, "accelerators", &text);
}

/* The columns for users, beside what the manager said. */
static void top_adapt(const struct cli *cli, json_t *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf cpu = STRBUF_INIT;
    const json_t *used = json_object_get(row, "used");

    if (json_object_get(used, "cpu_util"))
        strbuf_addf(&cpu, "%.1f", usage_number(json_object_get(used, "cpu_util"), "current") / 10);
    top_set_text(row, "cpu", &cpu);
    top_set_metric(cli, row, "mem", used, "mem", "current");
    top_set_accelerators(cli, row, used);
    top_set_pair(cli, row, "net", used, "net_rx", "net_tx", "current");
    top_set_pair(cli, row, "io", used, "io_read", "io_write", "current");
}

static void top_write_agents(const struct cli *cli, const json_t *agents, struct strbuf *out)
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

/* The whole answer for programs, the picture for users. */
static int top_write_answer(struct cli *cli, const json_t *answer, struct strbuf *out,
                            struct aq_error *err)
{
    json_t *sessions = json_object_get(answer, "sessions"), *session;
    size_t i;

    cli->output.now_usec = clock_realtime_usec();
    if (cli->output.format == OUTPUT_JSON) {
        output_json(answer, out);
        return strbuf_ok(out) ? 0 : aq_fail_oom(err);
    }
    json_array_foreach(sessions, i, session)
        top_adapt(cli, session);
    if (output_is_human(&cli->output))
        top_write_agents(cli, json_object_get(answer, "agents"), out);
    return output_list(&cli->output, top_columns, sessions, out, err);
}

static int top_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
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
            r = top_write_answer(cli, answer, &out, err);
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
               "redrawn every two seconds until Ctrl-C, else once.",
    .examples = "aliquot top\n"
                "aliquot top --all -n 50\n"
                "aliquot top -o json",
    .opts = top_opts,
    .opts_size = sizeof(struct top_opts),
    .run = top_run,
};
