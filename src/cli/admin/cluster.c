/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster itself: audit; init and db, which run the manager's program. */
#include <errno.h>

#include "cli/client.h"
#include "cli/verbs.h"

static int cluster_audit(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *answer = NULL, *finding;
    bool is_clean;
    size_t i;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/audit", NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    is_clean = json_is_true(json_object_get(answer, "clean"));
    if (output_is_human(&cli->output)) {
        json_array_foreach(json_object_get(answer, "findings"), i, finding)
            strbuf_addf(&out, "%s\n", json_string_value(finding));
        strbuf_adds(&out, is_clean ? "clean\n" : "");
    } else {
        output_json(answer, &out);
    }
    json_decref(answer);
    r = cli_print(&out, err);
    return r < 0 ? r : is_clean ? CLI_EXIT_OK : CLI_EXIT_FAILURE;
}

const struct cli_verb verb_admin_audit = {
    .name = "admin audit",
    .args = "",
    .summary = "Compare the ledger with the sessions, and memory with the database",
    .details = "Prints what differs, a line each, and fails then. Changes nothing.",
    .examples = "aliquot admin audit",
    .run = cluster_audit,
};

/* The manager's program with its own options: 'verb' and what follows. */
static int cluster_exec_manager(char *verb, int argc, char **argv, struct aq_error *err)
{
    char program[] = "aliquot-manager";
    AQ_CLEANUP(aq_freep) char **args = calloc((size_t)argc + 3, sizeof(*args));

    if (!args)
        return aq_fail_oom(err);
    args[0] = program;
    args[1] = verb;
    for (int i = 0; i < argc; i++)
        args[i + 2] = argv[i];
    return cli_exec_program("aliquot-manager", args, err);
}

static int cluster_init(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    char verb[] = "init";

    (void)cli;
    (void)data;
    return cluster_exec_manager(verb, argc, argv, err);
}

const struct cli_verb verb_admin_init = {
    .name = "admin init",
    .args = "[-- OPTIONS OF aliquot-manager]",
    .summary = "Make a new cluster's database, first administrator and fresh secrets",
    .details = "Runs 'aliquot-manager init' on this machine, before the manager is started.\n"
               "The password and secret key that it prints are shown once.",
    .examples =
        "aliquot admin init\naliquot admin init -- --email ann@example.com --state /srv/aliquot",
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST,
    .run = cluster_init,
};

static int cluster_db(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    char verb[] = "db";

    (void)cli;
    (void)data;
    return cluster_exec_manager(verb, argc, argv, err);
}

const struct cli_verb verb_admin_db = {
    .name = "admin db",
    .args = "migrate | check [OPTIONS OF aliquot-manager]",
    .summary = "Look at the database or bring it up to date, while the manager is stopped",
    .examples = "aliquot admin db check\naliquot admin db migrate --state /srv/aliquot",
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST,
    .run = cluster_db,
};
