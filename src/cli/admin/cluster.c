/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster itself: audit; init, db and backup, which run the manager's program. */
#include <errno.h>

#include "base/memory.h"
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
        output_document(&cli->output, answer, &out);
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
    AQ_CLEANUP(aq_freep) char **args = aq_alloc_array((size_t)argc + 3, sizeof(*args));

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

static int cluster_backup(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    char verb[] = "backup";

    (void)cli;
    (void)data;
    return cluster_exec_manager(verb, argc, argv, err);
}

const struct cli_verb verb_admin_backup = {
    .name = "admin backup",
    .args = "create | verify | restore | ls PATH [OPTIONS]",
    .summary = "Back up the cluster into one sealed file while it serves, and restore it",
    .details =
        "Runs 'aliquot-manager backup' on the manager's machine. The file has the database,\n"
        "whatever engine it is on, the key of its secrets, the certificate authority and\n"
        "manager.toml. create takes a file's name or a folder's, in which --keep removes all\n"
        "but the newest. verify reads all of it and audits the ledger. restore puts it where\n"
        "--state and --database say, where no cluster is yet; --passphrase-file names a file\n"
        "whose first line seals it, else the terminal is asked.\n\n"
        "create needs --state unless the manager's state folder is the default one; that of\n"
        "'aliquot up --state DIR' is DIR/manager.",
    .examples =
        "aliquot admin backup create /var/backups/aliquot --keep 14\n"
        "aliquot admin backup create cluster.backup --state ~/.local/state/aliquot/dev/manager\n"
        "aliquot admin backup verify cluster.backup\n"
        "aliquot admin backup restore cluster.backup --state /var/lib/aliquot/manager",
    .min_args = 2,
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST,
    .run = cluster_backup,
};

const struct cli_verb verb_admin_db = {
    .name = "admin db",
    .args = "info|check|vacuum|shell|migrate|take-over|mark-restored [OPTIONS]",
    .summary = "Show, check or copy the database, or bring it up to date",
    .details = "The options are those of aliquot-manager.\n"
               "info says what it is, how many rows it has and what is dangerous about its\n"
               "server; it works while the manager serves, and so do shell and, on a server,\n"
               "vacuum; the others do not. vacuum gives the space of removed rows back.\n"
               "shell is sqlite3 or psql on the database, which only reads; --write lets it\n"
               "change rows, which a manager that runs would not see: stop it before.\n"
               "migrate --to copies all rows to another database, a file or one on a PostgreSQL\n"
               "server, compares them and says what to put into manager.toml; the old one stays\n"
               "as it is. What broke off is continued by the same command; --dry-run only looks.\n"
               "take-over gives a database on a server to the manager that opens it next: the one\n"
               "that has it, because its machine sleeps, say, cannot write any more.\n"
               "mark-restored is for a database that was restored by other means than admin\n"
               "backup, such as pg_dumpall: the manager starts no session then, and keeps what\n"
               "is newer on agents, until 'admin orphan finish'. It also raises the epoch of a\n"
               "database on a server, so that agents follow it.",
    .examples =
        "aliquot admin db info\n"
        "aliquot admin db check\n"
        "echo 'SELECT status, COUNT(*) FROM sessions GROUP BY 1;' | aliquot admin db shell\n"
        "aliquot admin db migrate --state /srv/aliquot\n"
        "aliquot admin db migrate --to postgresql://aliquot@db.example.org/aliquot",
    .min_args = 1,
    .max_args = -1,
    .flags = CLI_NO_CONFIG | CLI_STOP_AT_FIRST,
    .run = cluster_db,
};
