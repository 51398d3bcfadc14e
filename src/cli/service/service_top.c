/* SPDX-License-Identifier: Apache-2.0 */
/* "service top": what services do, live. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/service/service.h"
#include "cli/session/live.h"
#include "cli/verbs.h"

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
    { "in_flight", "IN FLIGHT", COLUMN_NUMBER, 0 },
    { "queued", "QUEUED", COLUMN_NUMBER, 0 },
    { "per_second", "REQ/S", COLUMN_NUMBER, 0 },
    { "mean_ms", "MEAN MS", COLUMN_NUMBER, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "problem", "PROBLEM", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

/* Of each service since the former answer; unknown in the first. */
static void service_top_add_rate(json_t *service, const json_t *before, int64_t passed_usec)
{
    const json_t *old = list_find(before, "id", output_text(service, "id"));
    json_int_t more = json_integer_value(json_object_get(service, "requests"))
                      - json_integer_value(json_object_get(old, "requests"));

    if (old && passed_usec > 0 && more >= 0)
        (void)json_object_set_new(
            service, "per_second",
            json_integer((more * USEC_PER_SEC + passed_usec / 2) / passed_usec));
}

static json_t *service_top_adapt(json_t *answer, const json_t *before, int64_t passed_usec)
{
    json_t *rows = json_object_get(answer, "items"), *row;
    size_t i;

    json_array_foreach(rows, i, row) {
        service_adapt(row);
        service_top_add_rate(row, before, passed_usec);
    }
    return rows;
}

/* Until the user leaves. *inout is the last answer. */
static int service_top_loop(struct live *l, json_t **inout)
{
    int64_t taken_usec = clock_monotonic_usec();

    (void)service_top_adapt(*inout, NULL, 0);
    for (;;) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct output o = live_output(l);
        json_t *answer;
        uint32_t key;

        live_write_table(&o, service_top_columns, json_object_get(*inout, "items"), &out);
        live_draw(l, &out, "q leave");
        key = live_wait(l);
        if (key == 'q' || key == KEY_INTERRUPT || key == KEY_ESCAPE)
            return 0;
        if ((answer = live_take_answer(l))) {
            int64_t now = clock_monotonic_usec();

            (void)service_top_adapt(answer, json_object_get(*inout, "items"), now - taken_usec);
            taken_usec = now;
            json_decref(*inout);
            *inout = answer;
        }
    }
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

    (void)argc;
    (void)argv;
    strbuf_adds(&path, SERVICES_PATH "?limit=1000");
    cli_path_options(&path, service_top_opts, opts);
    if ((r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err)) < 0)
        return r;
    if (!is_live)
        return list_print(cli, service_top_columns, service_top_adapt(answer, NULL, 0), err);
    if ((r = live_open(&l, cli, path.data, interval, err)) == 0)
        r = service_top_loop(&l, &answer);
    live_close(&l);
    return r;
}

const struct cli_verb verb_service_top = {
    .name = "service top",
    .args = "",
    .summary = "Show the requests of services, live",
    .details = "IN FLIGHT are requests in replicas, QUEUED those that wait for one. On a terminal\n"
               "it stays until q, Esc or Ctrl-C, else it shows once.",
    .examples = "aliquot service top --once",
    .opts = service_top_opts,
    .opts_size = sizeof(struct service_top_opts),
    .run = service_top,
};
