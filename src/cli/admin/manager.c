/* SPDX-License-Identifier: Apache-2.0 */
/* Commands on the managers of a cluster: ls, yield, rm, and the token for another one. */
#include "cli/admin/join_token.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column manager_columns[] = {
    { "name", "MANAGER", COLUMN_TEXT, COLUMN_IS_NAME },
    { "role", "ROLE", COLUMN_STATUS, 0 },
    { "connected", "CONNECTED", COLUMN_BOOL, 0 },
    { "version", "VERSION", COLUMN_TEXT, 0 },
    { "api", "API", COLUMN_TEXT, 0 },
    { "link", "LINK", COLUMN_TEXT, 0 },
    { "heard", "HEARD", COLUMN_TIME, COLUMN_IS_WIDE },
    { "epoch", "EPOCH", COLUMN_NUMBER, COLUMN_IS_WIDE },
    { "since", "LEADS SINCE", COLUMN_TIME, COLUMN_IS_WIDE },
    COLUMN_END,
};

static const struct cli_things managers = { "/aliquot/v1/managers/", "manager" };

/* ---- ls ---- */

static int manager_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *answer = NULL;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/managers", NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r == 0)
        r = list_print(cli, manager_columns, json_object_get(answer, "items"), err);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_manager_ls = {
    .name = "manager ls",
    .args = "",
    .summary = "List the managers of the cluster, and which one leads",
    .details = "One manager leads; it alone schedules and writes. The others, standbys, pass\n"
               "requests on to it, and one of them takes over when it fails.",
    .examples = "aliquot manager ls\naliquot manager ls -o wide",
    .run = manager_ls,
};

/* ---- yield ---- */

struct manager_yield_opts {
    const char *to;
};

static const struct cli_opt yield_opts[] = {
    { 0, "to", CLI_STR, offsetof(struct manager_yield_opts, to), "MANAGER",
      "the next leader; default: the first manager that can lead", "to" },
    CLI_OPT_END,
};

static int manager_yield(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_object(), *answer = NULL;
    int r = cli_options_add(yield_opts, data, body, err);

    (void)argc;
    (void)argv;
    if (r == 0)
        r = cli_call(cli, METHOD_POST, "/aliquot/v1/managers/yield", body, &answer, err);
    if (r == 0)
        cli_note(cli,
                 "the leader finishes its requests and lets another manager lead; see: aliquot "
                 "manager ls");
    return r;
}

const struct cli_verb verb_manager_yield = {
    .name = "manager yield",
    .args = "",
    .summary = "Let another manager lead, before the leader's machine is serviced",
    .details = "Sessions continue; requests wait for the next leader.",
    .examples = "aliquot manager yield\naliquot manager yield --to manager2",
    .opts = yield_opts,
    .opts_size = sizeof(struct manager_yield_opts),
    .run = manager_yield,
};

/* ---- rm ---- */

struct manager_rm_opts {
    bool yes;
};

static const struct cli_opt rm_opts[] = {
    { 'y', "yes", CLI_FLAG, offsetof(struct manager_rm_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int manager_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct manager_rm_opts *opts = data;
    int r = cli_confirm(opts->yes, err, "Remove %d manager%s from the cluster?", argc,
                        argc == 1 ? "" : "s");

    return r != 0 ? r : cli_things_call(cli, METHOD_DELETE, &managers, "", NULL, argc, argv, err);
}

const struct cli_verb verb_manager_rm = {
    .name = "manager rm",
    .args = "MANAGER...",
    .summary = "Remove managers from the cluster",
    .details =
        "The leader does not accept them any longer, and they cannot lead again. Their\n"
        "machines still have the keys of the cluster and the address of its database: remove\n"
        "their state folders. If one was stolen, change the password of the database and make\n"
        "new keys.",
    .examples = "aliquot manager rm --yes manager3",
    .opts = rm_opts,
    .opts_size = sizeof(struct manager_rm_opts),
    .min_args = 1,
    .max_args = -1,
    .run = manager_rm,
};

/* ---- token ---- */

struct manager_token_opts {
    struct cli_int expires;
    const char *name;
};

static const struct cli_opt token_opts[] = {
    { 0, "expires", CLI_DURATION, offsetof(struct manager_token_opts, expires), "TIME",
      "how long it is valid, up to 24h; default 1h", "expires_sec" },
    { 0, "name", CLI_STR, offsetof(struct manager_token_opts, name), "MANAGER",
      "valid for a manager of this name only", "manager" },
    CLI_OPT_END,
};

static int admin_manager_token(struct cli *cli, void *data, int argc, char **argv,
                               struct aq_error *err)
{
    const struct manager_token_opts *opts = data;
    const struct join_command command = {
        .machine = "On the new machine, which receives all keys of this cluster",
        .command = "aliquot-manager join",
        .name = opts->name,
    };
    json_auto_t *body = json_object();
    int r = cli_options_add(token_opts, opts, body, err);

    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    if (!opts->name)
        (void)json_object_set_new(body, "manager", json_string("")); /* any name */
    return join_token_create(cli, body, &command, err);
}

const struct cli_verb verb_admin_manager_token = {
    .name = "admin manager token",
    .args = "",
    .summary = "Make a token that lets one machine join as a manager once",
    .details = "The machine that joins receives the key of the cluster's certificate authority,\n"
               "the sealing key of the database and its address: with these it can impersonate\n"
               "any agent, read every secret and grant access to anybody. Protect the token like\n"
               "these keys.",
    .examples = "aliquot admin manager token --name manager2\n"
                "aliquot admin manager token --expires 15m -o name",
    .opts = token_opts,
    .opts_size = sizeof(struct manager_token_opts),
    .run = admin_manager_token,
};
