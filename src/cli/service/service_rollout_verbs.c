/* SPDX-License-Identifier: Apache-2.0 */
/* "service rollout", "promote", "abort", "history". */
#include <string.h>

#include "base/clock.h"
#include "cli/service/service.h"
#include "cli/service/service_rollout.h"
#include "cli/session/live.h"
#include "cli/verbs.h"

#define WATCH_USEC USEC_PER_SEC

/* ---- rollout ---- */

struct rollout_opts {
    bool watch;
};

static const struct cli_opt rollout_opts[] = {
    { 'w', "watch", CLI_FLAG, offsetof(struct rollout_opts, watch), NULL,
      "follow it until it ends; q leaves" },
    CLI_OPT_END,
};

/* Of "rollout", with the name of the service. */
static const struct column rollout_columns[] = {
    { "service", "SERVICE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "strategy", "STRATEGY", COLUMN_TEXT, 0 },
    { "max_surge", "MAX-SURGE", COLUMN_TEXT, 0 },
    { "max_unavailable", "MAX-UNAVAILABLE", COLUMN_TEXT, 0 },
    { "steps", "STEPS", COLUMN_NAMES, 0 },
    { "step_interval", "STEP-INTERVAL", COLUMN_SPAN, 0 },
    { "auto_promote", "AUTO-PROMOTE", COLUMN_BOOL, 0 },
    { "promote_delay", "PROMOTE-DELAY", COLUMN_SPAN, 0 },
    { "keep", "KEEP", COLUMN_SPAN, 0 },
    { "when_full", "WHEN-FULL", COLUMN_TEXT, 0 },
    { "abort", "ABORT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "state", "STATE", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

/* Until it has ended, or the user leaves. *inout is the last answer. */
static int rollout_watch(struct cli *cli, json_t **inout, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    struct live l = { .path = STRBUF_INIT };
    int r;

    cli_thing_path(&model_services, output_text(*inout, "id"), "", &path);
    r = live_open(&l, cli, path.data, WATCH_USEC, err);
    while (r == 0 && service_rollout_is_under_way(*inout)) {
        AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
        struct output o = live_output(&l);
        json_t *answer;
        uint32_t key;

        service_write_rollout(&o, *inout, &out);
        live_draw(&l, &out, "q leave");
        key = live_wait(&l);
        if (key == 'q' || key == KEY_INTERRUPT || key == KEY_ESCAPE)
            break;
        if ((answer = live_take_answer(&l))) {
            json_decref(*inout);
            *inout = answer;
        }
    }
    live_close(&l);
    return r;
}

static int service_rollout(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct rollout_opts *opts = data;
    bool is_human = output_is_human(&cli->output);
    json_auto_t *service = NULL;
    json_t *rollout;
    int r = service_get(cli, argv[0], &service, err);

    (void)argc;
    if (r == 0 && opts->watch && is_human && service_rollout_is_under_way(service)
        && screen_is_possible())
        r = rollout_watch(cli, &service, err);
    if (r < 0)
        return r;
    if (is_human) {
        service_write_rollout(&cli->output, service, &out);
        return cli_print(&out, err);
    }
    rollout = json_object_get(service, "rollout");
    (void)json_object_set(rollout, "service", json_object_get(service, "name"));
    return record_print(cli, rollout_columns, rollout, err);
}

const struct cli_verb verb_service_rollout = {
    .name = "service rollout",
    .args = "SERVICE",
    .summary = "Show how a new revision takes over",
    .details = "The bars are replicas: '#' ready, '+' starting or draining. Below them stands the\n"
               "last event, such as the next step of a canary or the reason of an abort.",
    .examples = "aliquot service rollout digits --watch\n"
                "aliquot service rollout digits -o json",
    .opts = rollout_opts,
    .opts_size = sizeof(struct rollout_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_rollout,
};

/* ---- promote, abort ---- */

static int rollout_send(struct cli *cli, const char *name, const char *rest,
                        const struct service_wait_opts *opts, struct aq_error *err)
{
    json_auto_t *service = NULL;
    int r = cli_thing_call(cli, METHOD_POST, &model_services, name, rest, NULL, &service, err);

    if (r < 0 || (r = service_print_line(cli, service, err)) < 0)
        return r;
    return service_wait_if(cli, opts, output_text(service, "id"), 0, err);
}

static int service_promote(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)argc;
    return rollout_send(cli, argv[0], "/rollout/promote", data, err);
}

const struct cli_verb verb_service_promote = {
    .name = "service promote",
    .args = "SERVICE",
    .summary = "Continue a rollout that waits",
    .details = "A blue-green rollout whose new replicas are all ready moves all requests to them;\n"
               "a canary goes to its next step at once.",
    .examples = "aliquot service promote digits --wait",
    .opts = service_wait_rows,
    .opts_size = sizeof(struct service_wait_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_promote,
};

static int service_abort(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)argc;
    return rollout_send(cli, argv[0], "/rollout/abort", data, err);
}

const struct cli_verb verb_service_abort = {
    .name = "service abort",
    .args = "SERVICE",
    .summary = "Stop a rollout and go back to the previous revision",
    .details = "The revision from which the rollout began is the goal again. Its replicas that\n"
               "still run get all requests; those of the new revision end when they have answered\n"
               "those under way.",
    .examples = "aliquot service abort digits --wait",
    .opts = service_wait_rows,
    .opts_size = sizeof(struct service_wait_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_abort,
};

/* ---- history ---- */

struct history_opts {
    struct cli_int limit;
};

static const struct cli_opt history_opts[] = {
    { 'n', "limit", CLI_INT, offsetof(struct history_opts, limit), "N",
      "at most N changes, 1 to 500; default 100", "limit" },
    CLI_OPT_END,
};

static const struct column history_columns[] = {
    { "at", "WHEN", COLUMN_CLOCK, 0 },
    { "version", "CHANGE", COLUMN_NUMBER, COLUMN_IS_WIDE | COLUMN_IS_NAME },
    { "replicas", "REPLICAS", COLUMN_NUMBER, 0 },
    { "share", "SHARE", COLUMN_NUMBER, 0 },
    { "revision", "REVISION", COLUMN_NUMBER, 0 },
    { "reason", "WHY", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

static int service_history(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)argc;
    cli_thing_path(&model_services, argv[0], "/history", &path);
    cli_path_options(&path, history_opts, data);
    return list_show_whole(cli, path.data, "items", history_columns, err);
}

const struct cli_verb verb_service_history = {
    .name = "service history",
    .args = "SERVICE",
    .summary = "List the changes of a service, who made them and why, newest first",
    .details =
        "Changes by users, by the autoscaler and by rollouts; the last 500 are kept. SHARE\n"
        "is - where the share is that of the revision. A service that has ended is found by\n"
        "its id, or by its name unless another has it.",
    .examples = "aliquot service history digits --limit 20",
    .opts = history_opts,
    .opts_size = sizeof(struct history_opts),
    .min_args = 1,
    .max_args = 1,
    .run = service_history,
};
