/* SPDX-License-Identifier: Apache-2.0 */
/* The apps of a session, and how they are. */
#include <errno.h>
#include <string.h>

#include "cli/list.h"
#include "cli/request.h"
#include "cli/session/session.h"
#include "cli/verbs.h"

static const struct column session_apps_columns[] = {
    { "name", "APP", COLUMN_TEXT, COLUMN_IS_NAME },
    { "protocol", "PROTOCOL", COLUMN_TEXT, 0 },
    { "ports", "PORTS", COLUMN_NAMES, 0 },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "why", "WHY", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "url_template", "URL-TEMPLATE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "allowed_envs", "ALLOWED-ENVS", COLUMN_NAMES, COLUMN_IS_EXTRA },
    { "allowed_arguments", "ALLOWED-ARGUMENTS", COLUMN_NAMES, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static const struct column session_traffic_columns[] = {
    { "app", "APP", COLUMN_TEXT, COLUMN_IS_NAME },
    { "connections", "CONNECTIONS", COLUMN_NUMBER, 0 },
    { "requests", "REQUESTS", COLUMN_NUMBER, 0 },
    { "bytes_in", "IN", COLUMN_BYTES, 0 },
    { "bytes_out", "OUT", COLUMN_BYTES, 0 },
    COLUMN_END,
};

/* Users read what a port is for; machine formats keep the protocol's name. */
static void session_apps_name_protocols(const struct output *o, const json_t *apps)
{
    const json_t *app;
    size_t i;

    json_array_foreach(apps, i, app) {
        json_t *protocol = json_object_get(app, "protocol");
        const char *name = json_string_value(protocol);

        if (name && output_is_human(o) && strcmp(name, "preopen") == 0)
            (void)json_string_set(protocol, "tcp (opened by you)");
    }
}

int session_apps_get(struct cli *cli, const char *name, const char *kernel, json_t **ret,
                     struct aq_error *err)
{
    const struct cli_things streams = { "/stream/session/", NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    cli_thing_path(&streams, name, "/apps", &path);
    cli_path_query(&path, "owner_access_key", cli->globals.owner);
    cli_path_query(&path, "kernel", kernel);
    return cli_call(cli, METHOD_GET, path.data, NULL, ret, err);
}

int session_apps_print(struct cli *cli, const json_t *session, struct aq_error *err)
{
    const char *id = json_string_value(json_object_get(session, "id"));
    const char *status = json_string_value(json_object_get(session, "status"));
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct output plain = cli->output;
    struct aq_error ignored = { 0 };
    json_t *apps = NULL;
    int r = 0;

    if (!output_is_human(&cli->output) || cli->output.columns || !id || !status
        || strncmp(status, "RUNNING", strlen("RUNNING")) != 0)
        return 0;
    plain.sort = NULL;
    if (session_apps_get(cli, id, NULL, &apps, &ignored) == 0 && json_array_size(apps)) {
        strbuf_addc(&out, '\n');
        session_apps_name_protocols(&plain, apps);
        r = output_list(&plain, session_apps_columns, apps, &out, err);
    }
    json_decref(apps);
    return r < 0 || !out.len ? r : cli_print(&out, err);
}

int session_traffic_print(struct cli *cli, const json_t *session, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const json_t *traffic = json_object_get(session, "app_traffic");
    struct output plain = cli->output;
    int r;

    if (!output_is_human(&cli->output) || cli->output.columns || !json_array_size(traffic))
        return 0;
    strbuf_addc(&out, '\n');
    plain.sort = NULL;
    r = output_list(&plain, session_traffic_columns, traffic, &out, err);
    return r < 0 ? r : cli_print(&out, err);
}

int session_apps_show(struct cli *cli, const json_t *apps, struct aq_error *err)
{
    int r;

    session_apps_name_protocols(&cli->output, apps);
    r = list_print(cli, session_apps_columns, apps, err);
    if (r == 0 && json_array_size(apps) == 0)
        cli_note(cli, "the session has no apps; images name them, or have their programs");
    return r;
}

struct apps_opts {
    const char *kernel;
};

static const struct cli_opt apps_opts[] = {
    SESSION_KERNEL_OPT_ROW(struct apps_opts, kernel),
    CLI_OPT_END,
};

static int session_apps(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct apps_opts *opts = data;
    json_t *apps = NULL;
    int r = session_apps_get(cli, argv[0], opts->kernel, &apps, err);

    (void)argc;
    r = r < 0 ? session_wrap_error(err, argv[0]) : session_apps_show(cli, apps, err);
    json_decref(apps);
    return r;
}

const struct cli_verb verb_session_apps = {
    .name = "session apps",
    .args = "SESSION",
    .summary = "List the apps of a session, and how they are",
    .details = "The image's label names apps, sessions open ports, and programs that are found in\n"
               "the container (Jupyter, code-server, TensorBoard) are apps, too. One that is\n"
               "'not-started' is started by the first connection to it; WHY says why one\n"
               "'failed', and the next connection starts it again.",
    .examples = "aliquot session apps lab\n"
                "aliquot session apps lab -o json",
    .opts = apps_opts,
    .opts_size = sizeof(struct apps_opts),
    .min_args = 1,
    .max_args = 1,
    .run = session_apps,
};
