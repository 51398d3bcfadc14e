/* SPDX-License-Identifier: Apache-2.0 */
/* "service top": what services do, or one of them by its revisions and replicas; live. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/service/service.h"
#include "cli/service/service_figures.h"
#include "cli/session/live.h"
#include "cli/verbs.h"
#include "http/url.h"

#define TOP_INTERVAL_USEC (2 * USEC_PER_SEC)

struct service_top_opts {
    bool all, once;
    struct cli_int interval;
};

static const struct cli_opt service_top_opts[] = {
    { 'A', "everyone", CLI_FLAG, offsetof(struct service_top_opts, all), NULL,
      "services of all users (administrators)", "all" },
    { 0, "interval", CLI_DURATION, offsetof(struct service_top_opts, interval), "TIME",
      "show it again after so long; default 2s" },
    { 0, "once", CLI_FLAG, offsetof(struct service_top_opts, once), NULL, "show it once" },
    CLI_OPT_END,
};

static const struct column service_top_columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "ready", "READY", COLUMN_TEXT, 0 },
    { "load", "IN FLIGHT", COLUMN_LOAD, 0 },
    { "queued", "WAITING", COLUMN_NUMBER, 0 },
    { "per_second", "REQ/S", COLUMN_NUMBER, 0 },
    { "error_percent", "ERR %", COLUMN_NUMBER, 0 },
    { "p50_ms", "P50 MS", COLUMN_NUMBER, 0 },
    { "p99_ms", "P99 MS", COLUMN_NUMBER, 0 },
    { "first_byte_ms", "FIRST BYTE MS", COLUMN_NUMBER, 0 },
    { "tokens_per_second", "TOKENS/S", COLUMN_NUMBER, 0 },
    { "share_text", "SHARE", COLUMN_TEXT, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "problem", "PROBLEM", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static const struct column service_top_revision_columns[] = {
    { "revision", "REVISION", COLUMN_NUMBER, COLUMN_IS_NAME },
    { "in_flight", "IN FLIGHT", COLUMN_NUMBER, 0 },
    { "per_second", "REQ/S", COLUMN_NUMBER, 0 },
    { "error_percent", "ERR %", COLUMN_NUMBER, 0 },
    { "p50_ms", "P50 MS", COLUMN_NUMBER, 0 },
    { "p99_ms", "P99 MS", COLUMN_NUMBER, 0 },
    { "first_byte_ms", "FIRST BYTE MS", COLUMN_NUMBER, 0 },
    { "tokens_per_second", "TOKENS/S", COLUMN_NUMBER, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    COLUMN_END,
};

static const struct column service_top_replica_columns[] = {
    { "number", "REPLICA", COLUMN_NUMBER, COLUMN_IS_NAME },
    { "revision", "REVISION", COLUMN_NUMBER, 0 },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "load", "IN FLIGHT", COLUMN_LOAD, 0 },
    { "per_second", "REQ/S", COLUMN_NUMBER, 0 },
    { "error_percent", "ERR %", COLUMN_NUMBER, 0 },
    { "recent_mean_ms", "MEAN MS", COLUMN_NUMBER, 0 },
    { "first_byte_ms", "FIRST BYTE MS", COLUMN_NUMBER, 0 },
    { "tokens_per_second", "TOKENS/S", COLUMN_NUMBER, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "failures", "FAILURES", COLUMN_NUMBER, 0 },
    { "share", "SHARE", COLUMN_NUMBER, 0 },
    { "agent", "AGENT", COLUMN_TEXT, 0 },
    COLUMN_END,
};

/* ---- rows ---- */

static json_int_t service_top_cap(const json_t *service)
{
    return json_integer_value(json_object_get(json_object_get(service, "limits"), "cap"));
}

static void service_top_adapt(json_t *service)
{
    const json_t *figures = json_object_get(service, "figures");
    const json_t *share = json_object_get(json_object_get(service, "share"), "wanted");
    json_int_t ready = json_integer_value(
        json_object_get(json_object_get(service, "replicas"), "ready"));
    json_int_t in_flight = json_integer_value(json_object_get(figures, "in_flight"));
    json_t *row;
    char text[32];
    size_t i;

    service_adapt(service);
    service_figures_add_recent(service, figures);
    service_figures_add_load(service, in_flight, ready * service_top_cap(service));
    if (json_is_number(share)) {
        (void)snprintf(text, sizeof(text), "%g", json_number_value(share));
        (void)json_object_set_new(service, "share_text", json_string(text));
    }
    json_array_foreach(json_object_get(service, "revision_figures"), i, row)
        service_figures_add_recent(row, row);
    json_array_foreach(json_object_get(service, "replica_list"), i, row) {
        service_figures_add_recent(row, row);
        service_figures_add_load(row, json_integer_value(json_object_get(row, "in_flight")),
                                 service_top_cap(service));
    }
}

/* The rows of an answer, which is a list of services or one of them. */
static void service_top_take(json_t *answer)
{
    json_t *services = json_object_get(answer, "items"), *row;
    size_t i;

    json_array_foreach(services, i, row)
        service_top_adapt(row);
    if (!services)
        service_top_adapt(answer);
}

/* A table of the answer. */
struct top_table {
    const struct column *columns;
    const json_t *rows;
};

#define TOP_TABLES_MAX 3

/* The list of services; or one, by revisions and replicas. 'one' has that service alone. */
static size_t service_top_list(const json_t *answer, const json_t *one,
                               struct top_table ret[TOP_TABLES_MAX])
{
    const json_t *services = json_object_get(answer, "items");

    ret[0] = (struct top_table){ service_top_columns, services ? services : one };
    ret[1] = (struct top_table){ service_top_revision_columns,
                                 json_object_get(answer, "revision_figures") };
    ret[2] = (struct top_table){ service_top_replica_columns,
                                 json_object_get(answer, "replica_list") };
    return services ? 1 : TOP_TABLES_MAX;
}

static void service_top_draw(const struct output *o, const json_t *answer, struct strbuf *out)
{
    json_auto_t *one = json_pack("[O]", answer);
    struct top_table tables[TOP_TABLES_MAX];
    size_t count = service_top_list(answer, one, tables);

    for (size_t i = 0; i < count; i++) {
        if (i)
            strbuf_addc(out, '\n');
        live_write_table(o, tables[i].columns, tables[i].rows, out);
    }
}

/* ---- showing ---- */

/* Until the user leaves. *inout is the last answer. */
static int service_top_loop(struct live *l, json_t **inout)
{
    for (;;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct output o = live_output(l);
        json_t *answer;
        uint32_t key;

        service_top_draw(&o, *inout, &out);
        live_draw(l, &out, "q leave");
        key = live_wait(l);
        if (key == 'q' || key == KEY_INTERRUPT || key == KEY_ESCAPE)
            return 0;
        if ((answer = live_take_answer(l))) {
            service_top_take(answer);
            json_decref(*inout);
            *inout = answer;
        }
    }
}

/* Once: programs get the rows of the services, or of the replicas of the one that is named. */
static int service_top_print(struct cli *cli, const json_t *answer, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *services = json_object_get(answer, "items");
    const struct output *o = &cli->output;
    struct top_table tables[TOP_TABLES_MAX];
    json_auto_t *one = NULL;
    size_t count;
    int r = 0;

    if (services)
        return list_note_empty(cli, services) ? 0
                                              : list_print(cli, service_top_columns, services, err);
    if (!output_is_human(o) || o->columns || o->sort)
        return list_print(cli, service_top_replica_columns, json_object_get(answer, "replica_list"),
                          err);
    one = json_pack("[O]", answer);
    count = service_top_list(answer, one, tables);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (i)
            strbuf_addc(&out, '\n');
        r = output_list(o, tables[i].columns, tables[i].rows, &out, err);
    }
    return r < 0 ? r : cli_print(&out, err);
}

static int service_top(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct service_top_opts *opts = data;
    bool is_live = !opts->once && output_is_human(&cli->output) && screen_is_possible();
    int64_t interval = opts->interval.is_set ? opts->interval.value : TOP_INTERVAL_USEC;
    json_auto_t *answer = NULL;
    struct live l = { .path = STRBUF_INIT };
    int r;

    if (argc && opts->all)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "--everyone is for the list of services, not for service '%.64s'",
                            argv[0]);
    if (argc) {
        strbuf_adds(&path, SERVICES_PATH "/");
        url_encode(&path, argv[0]);
    } else {
        strbuf_adds(&path, SERVICES_PATH "?limit=1000");
        cli_path_options(&path, service_top_opts, opts);
    }
    r = argc ? service_get(cli, argv[0], &answer, err)
             : cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    if (r < 0)
        return r;
    service_top_take(answer);
    if (!is_live)
        return service_top_print(cli, answer, err);
    if ((r = live_open(&l, cli, path.data, interval, err)) == 0)
        r = service_top_loop(&l, &answer);
    live_close(&l);
    return r;
}

const struct cli_verb verb_service_top = {
    .name = "service top",
    .args = "[SERVICE]",
    .summary = "Show the requests of services, live, or of one by revision and replica",
    .details = "IN FLIGHT are requests in replicas, with a bar if they have a cap; WAITING those\n"
               "that wait for one. REQ/S and TOKENS/S are of the last ten seconds, the others\n"
               "of the last minute: ERR % are answers of 500 and above, or missing; FIRST BYTE is\n"
               "the median, of a replica the mean. On a terminal the view is live until q, Esc\n"
               "or Ctrl-C; elsewhere it is printed once.",
    .examples = "aliquot service top --once\n"
                "aliquot service top digits --once",
    .if_empty = "you have no model services; to create one: aliquot service create",
    .opts = service_top_opts,
    .opts_size = sizeof(struct service_top_opts),
    .max_args = 1,
    .run = service_top,
};
