/* Creating sessions: "session create", and "run" that stays with them. */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "cli/client.h"
#include "cli/follow.h"
#include "cli/list.h"
#include "cli/session.h"
#include "cli/spec.h"
#include "cli/verbs.h"

#define COUNT_MAX 100000
#define AT_ONCE_MAX 1000 /* sessions in one request */

static const struct column created_columns[] = {
    { "sessionId", "ID", COLUMN_TEXT, 0 },
    { "sessionName", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    COLUMN_END,
};

/* What is to be created. */
struct order {
    const struct spec_opts *spec;
    bool is_batch;
    size_t count; /* 0 = one, without a number in its name */
    int argc;
    char **argv;
};

static int create_one(struct cli *cli, const struct order *order, json_t *created,
                      struct aq_error *err)
{
    json_t *body = NULL, *answer = NULL;
    int r = spec_to_json(cli, order->spec, order->is_batch, order->argc, order->argv, 0, &body, err);

    if (r == 0)
        r = cli_call(cli, METHOD_POST, "/session", body, &answer, err);
    if (r == 0 && json_array_append(created, answer) < 0)
        r = aq_fail(err, ENOMEM, "session");
    json_decref(body);
    json_decref(answer);
    return r;
}

static int take_items(const json_t *answer, json_t *created, struct aq_error *err)
{
    const json_t *items = json_object_get(answer, "items");

    if (!json_is_array(items))
        return aq_fail(err, EPROTO, "the manager's answer has no items");
    return json_array_extend(created, (json_t *)items) < 0 ? aq_fail(err, ENOMEM, "sessions") : 0;
}

static int create_part(struct cli *cli, const struct order *order, size_t first, size_t count,
                       json_t *created, struct aq_error *err)
{
    json_t *list = json_array(), *body = NULL, *answer = NULL;
    int r = list ? 0 : aq_fail(err, ENOMEM, "sessions");

    for (size_t i = 0; r == 0 && i < count; i++) {
        r = spec_to_json(cli, order->spec, order->is_batch, order->argc, order->argv,
                         (unsigned)(first + i + 1), &body, err);
        if (r == 0 && json_array_append_new(list, body) < 0)
            r = aq_fail(err, ENOMEM, "sessions");
    }
    if (r == 0)
        r = cli_call(cli, METHOD_POST, "/aliquot/v1/sessions", list, &answer, err);
    if (r == 0)
        r = take_items(answer, created, err);
    json_decref(list);
    json_decref(answer);
    return r;
}

static int create_several(struct cli *cli, struct order *order, json_t *created,
                          struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = spec_make_name(order->spec, order->argc, order->argv);
    struct spec_opts spec = *order->spec;
    int r = name ? 0 : aq_fail(err, ENOMEM, "sessions");

    spec.name = name;
    order->spec = &spec;
    for (size_t at = 0; r == 0 && at < order->count; at += AT_ONCE_MAX)
        r = create_part(cli, order, at, AQ_MIN(order->count - at, (size_t)AT_ONCE_MAX), created,
                        err);
    if (r < 0 && json_array_size(created))
        cli_hint(cli, "%zu of %zu were created: aliquot ps", json_array_size(created),
                 order->count);
    return r;
}

/* *ret is the list of what was created: [{"sessionId", "sessionName", "status"}]. */
static int create(struct cli *cli, struct order *order, json_t **ret, struct aq_error *err)
{
    json_t *created = json_array();
    int r = created ? 0 : aq_fail(err, ENOMEM, "sessions");

    if (r == 0)
        r = order->count ? create_several(cli, order, created, err)
                         : create_one(cli, order, created, err);
    if (r < 0) {
        json_decref(created);
        return r;
    }
    *ret = created;
    return 0;
}

static int check_count(const struct cli_int *count, struct aq_error *err)
{
    if (count->is_set && (count->value < 1 || count->value > COUNT_MAX))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--count is 1 to %d", COUNT_MAX);
    return 0;
}

static int print_created(struct cli *cli, const json_t *created, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    int r = output_list(&cli->output, created_columns, created, &out, err);

    return r < 0 ? r : cli_print(&out, err);
}

/* ---- following ---- */

static int follow_created(struct cli *cli, const json_t *created, bool is_single, unsigned flags,
                          struct aq_error *err)
{
    size_t count = json_array_size(created), i;
    AQ_CLEANUP(aq_freep) struct follow_session *sessions = calloc(count + 1, sizeof(*sessions));
    int status = 0, r;
    json_t *item;

    if (!sessions)
        return aq_fail(err, ENOMEM, "sessions");
    json_array_foreach(created, i, item) {
        const char *id = json_string_value(json_object_get(item, "sessionId"));
        const char *name = json_string_value(json_object_get(item, "sessionName"));

        if (!id || !name)
            return aq_fail(err, EPROTO, "the manager's answer has no id");
        (void)snprintf(sessions[i].id, sizeof(sessions[i].id), "%s", id);
        (void)snprintf(sessions[i].name, sizeof(sessions[i].name), "%s", name);
        (void)snprintf(sessions[i].owner, sizeof(sessions[i].owner), "%s",
                       cli->globals.owner ? cli->globals.owner : "");
        sessions[i].is_new = true;
        sessions[i].is_single = is_single;
    }
    r = follow_sessions(cli, sessions, count, flags, 0, &status, err);
    return r < 0 ? r : status;
}

/* ---- run ---- */

struct run_opts {
    struct spec_opts spec;
    struct cli_int count;
    bool detach;
};

static const struct cli_opt run_opts[] = {
    SPEC_OPT_ROWS(struct run_opts),
    { 'n', "count", CLI_INT, offsetof(struct run_opts, count), "N",
      "run it N times; each knows its name" },
    { 'd', "detach", CLI_FLAG, offsetof(struct run_opts, detach), NULL,
      "do not wait; print the session" },
    CLI_OPT_END,
};

static int run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct run_opts *opts = data;
    struct order order = { &opts->spec, true, (size_t)opts->count.value, argc, argv };
    unsigned flags = FOLLOW_LOGS | FOLLOW_CANCEL | (opts->count.is_set ? FOLLOW_PREFIX : 0);
    json_t *created = NULL;
    int r = check_count(&opts->count, err);

    if (r == 0)
        r = create(cli, &order, &created, err);
    if (r == 0 && opts->detach)
        r = print_created(cli, created, err);
    else if (r == 0)
        r = follow_created(cli, created, opts->spec.cluster_size.value <= 1, flags, err);
    json_decref(created);
    return r;
}

const struct cli_verb verb_run = {
    .name = "run",
    .args = "COMMAND [ARG]...",
    .summary = "Run a program in a session of its own and show what it prints",
    .details =
        "Waits until the session's turn has come, copies the program's output, and\n"
        "exits as the program did. The session goes on if this command is killed or\n"
        "the connection breaks; Ctrl-C twice cancels it, Ctrl-\\ leaves it.\n\n"
        "One COMMAND word is a line for the shell; several words are the program and\n"
        "its arguments, unchanged.",
    .examples = "aliquot run -r cpu=2 -r mem=4g -- python3 train.py --epochs 3\n"
                "aliquot run 'nproc; free -m'\n"
                "aliquot run -d -n 100 -r cpu=1 ./simulate --seed 7",
    .opts = run_opts,
    .opts_size = sizeof(struct run_opts),
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST | CLI_RUNS_PROGRAM,
    .run = run,
};

/* ---- session create ---- */

struct create_opts {
    struct spec_opts spec;
    struct cli_int count;
    int type;
    bool dry_run;
};

static const struct column trial_columns[] = {
    { "resource_group", "RESOURCE-GROUP", COLUMN_TEXT, COLUMN_IS_NAME },
    { "text", "TEXT", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "explanation", "EXPLANATION", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

static const struct cli_opt create_opts[] = {
    SPEC_OPT_ROWS(struct create_opts),
    { 0, "type", CLI_CHOICE, offsetof(struct create_opts, type), "interactive|batch",
      "batch if there is a COMMAND, unless given" },
    { 'n', "count", CLI_INT, offsetof(struct create_opts, count), "N", "create N of them" },
    { 0, "dry-run", CLI_FLAG, offsetof(struct create_opts, dry_run), NULL,
      "make none: say whether and when it would start" },
    CLI_OPT_END,
};

static int try_session(struct cli *cli, const struct order *order, struct aq_error *err)
{
    json_t *body = NULL, *answer = NULL;
    int r = spec_to_json(cli, order->spec, order->is_batch, order->argc, order->argv, 0, &body, err);

    if (r == 0)
        r = cli_call(cli, METHOD_POST, "/aliquot/v1/sessions/_/dry-run", body, &answer, err);
    if (r == 0)
        r = record_print(cli, trial_columns, answer, err);
    if (r == 0)
        r = session_print_text(cli, answer, err);
    json_decref(body);
    json_decref(answer);
    return r;
}

static int create_sessions(struct cli *cli, void *data, int argc, char **argv,
                           struct aq_error *err)
{
    struct create_opts *opts = data;
    bool is_batch = opts->type ? opts->type == 2 : argc > 0;
    struct order order = { &opts->spec, is_batch, (size_t)opts->count.value, argc, argv };
    json_t *created = NULL;
    int r = check_count(&opts->count, err);

    if (r == 0 && opts->dry_run)
        return try_session(cli, &order, err);
    if (r == 0)
        r = create(cli, &order, &created, err);
    if (r == 0)
        r = print_created(cli, created, err);
    json_decref(created);
    return r;
}

const struct cli_verb verb_session_create = {
    .name = "session create",
    .args = "[COMMAND [ARG]...]",
    .summary = "Queue a session and print its id",
    .details = "Returns as soon as the session is queued, durably. Without a COMMAND the\n"
               "session is interactive: 'aliquot session attach' opens a terminal in it.",
    .examples = "aliquot session create -t notebook -r cpu=2 -r mem=8g\n"
                "aliquot session create --after prepare -- python3 train.py",
    .opts = create_opts,
    .opts_size = sizeof(struct create_opts),
    .max_args = -1,
    .flags = CLI_STOP_AT_FIRST,
    .run = create_sessions,
};
