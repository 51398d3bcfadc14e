/* SPDX-License-Identifier: Apache-2.0 */
/* What is used, live: nodes, devices, and the sessions that use most. */
#include "base/clock.h"
#include "base/screen.h"
#include "cli/client.h"
#include "cli/output/resource_usage.h"
#include "cli/session/top.h"
#include "cli/verbs.h"

#define INTERVAL_USUAL_USEC (2 * USEC_PER_SEC)
#define SESSIONS_USUAL 20
#define SESSIONS_MAX 1000 /* of the manager */
#define TOP_PATH_MAX 80

struct top_opts {
    bool all, once;
    struct cli_int limit, interval;
};

static const struct cli_opt top_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct top_opts, all), NULL,
      "everybody's sessions; administrators" },
    { 'n', "limit", CLI_INT, offsetof(struct top_opts, limit), "N",
      "at most so many sessions; default 20 once, 1000 live" },
    { 0, "interval", CLI_DURATION, offsetof(struct top_opts, interval), "TIME",
      "show it again after so long; default 2s" },
    { 0, "once", CLI_FLAG, offsetof(struct top_opts, once), NULL, "show it once" },
    CLI_OPT_END,
};

void top_write_agents(const struct output *o, const json_t *agents, struct strbuf *out)
{
    const struct column column = { "", "", COLUMN_TEXT, 0 };
    const json_t *agent;
    size_t i;

    json_array_foreach(agents, i, agent) {
        cell_write(o, &column, json_object_get(agent, "id"), out);
        strbuf_adds(out, "  ");
        cell_write(o, &column, json_object_get(agent, "status"), out);
        strbuf_addc(out, '\n');
        usage_write_node(o, json_object_get(agent, "statistics"), out);
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
        return 0;
    }
    json_array_foreach(sessions, i, session)
        top_adapt(&cli->output, session);
    if (output_is_human(&cli->output))
        top_write_agents(&cli->output, json_object_get(answer, "agents"), out);
    return output_list(&cli->output, top_columns, sessions, out, err);
}

static int top_show_once(struct cli *cli, const json_t *answer, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = top_write_answer(cli, answer, &out, err);

    return r < 0 ? r : cli_print(&out, err);
}

/* The busiest for a picture; for a view all there are, as it sorts and searches them. */
static void top_path(const struct top_opts *opts, bool is_live, char path[TOP_PATH_MAX])
{
    long long usual = is_live ? SESSIONS_MAX : SESSIONS_USUAL;

    (void)snprintf(path, TOP_PATH_MAX, "/aliquot/v1/top?limit=%lld%s",
                   opts->limit.is_set ? (long long)opts->limit.value : usual,
                   opts->all ? "&all=true" : "");
}

static int top_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct top_opts *opts = data;
    bool is_live = !opts->once && output_is_human(&cli->output) && screen_is_possible();
    int64_t interval = opts->interval.is_set ? opts->interval.value : INTERVAL_USUAL_USEC;
    char path[TOP_PATH_MAX];
    json_t *answer = NULL;
    int r;

    (void)argc;
    (void)argv;
    top_path(opts, is_live, path);
    r = cli_call(cli, METHOD_GET, path, NULL, &answer, err);
    if (r < 0)
        return r;
    if (is_live)
        return top_view_run(cli, path, interval, answer, err);
    r = top_show_once(cli, answer, err);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_top = {
    .name = "top",
    .args = "",
    .summary = "Show what nodes, devices and sessions use, live",
    .details = "Nodes and devices are shown to administrators; others see their sessions'\n"
               "accelerators. On a terminal it stays until q, Esc or Ctrl-C, else it shows once.\n"
               "Keys: arrows, PgUp, PgDn, Home and End move; Enter shows what a session uses, as\n"
               "'session stats --watch' does; c, m, g, a and n sort by cores, memory,\n"
               "accelerators, age and name, and the same key again the other way; / searches;\n"
               "space or p pauses; d hides the devices; ? shows the keys. CPU CORES are those in\n"
               "use of those that were asked for. Bars are green, from 70 % yellow, from 90 %\n"
               "red.",
    .examples = "aliquot top\n"
                "aliquot top --all -n 50\n"
                "aliquot top -o json",
    .opts = top_opts,
    .opts_size = sizeof(struct top_opts),
    .run = top_run,
};
