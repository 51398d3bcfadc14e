/* SPDX-License-Identifier: Apache-2.0 */
/* "admin orphan": after a restore, what is newer on agents than the backup. */
#include <errno.h>
#include <string.h>

#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column columns[] = {
    { "id", "SESSION", COLUMN_TEXT, COLUMN_IS_NAME },
    { "name", "NAME", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "access_key", "OWNER", COLUMN_TEXT, 0 },
    { "type", "TYPE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "image", "IMAGE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "status", "KNOWN AS", COLUMN_STATUS, 0 },
    { "reason", "REASON", COLUMN_TEXT, 0 },
    { "containers", "FOUND", COLUMN_NUMBER, 0 },
    { "cluster_size", "OF", COLUMN_NUMBER, 0 },
    { "agents", "AGENTS", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "adoptable", "ADOPTABLE", COLUMN_BOOL, 0 },
    COLUMN_END,
};

static int orphan_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *answer = NULL, *items;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/orphans", NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    items = json_object_get(answer, "items");
    r = list_print(cli, columns, items, err);
    if (json_is_null(json_object_get(answer, "backup_made_at"))) {
        if (json_array_size(items) == 0)
            cli_note(cli, "this cluster was not restored, or that is finished");
    } else if (json_array_size(items) == 0) {
        cli_note(cli, "nothing is newer than the backup on the agents that are back; "
                      "'aliquot admin orphan finish' starts sessions again");
    }
    json_decref(answer);
    return r;
}

const struct cli_verb verb_admin_orphan_ls = {
    .name = "admin orphan ls",
    .args = "",
    .summary = "List sessions on agents that are newer than the database",
    .details = "A restored manager kills nothing and starts nothing. Sessions that its database\n"
               "does not know, or knows as waiting (KNOWN AS), go on where they run until they\n"
               "are adopted or ended; 'orphan finish' then starts sessions again.\n"
               "REASON is restored, or lost-commit: the container was started by a manager\n"
               "whose last commits the database lacks. Other sessions start meanwhile.",
    .examples = "aliquot admin orphan ls",
    .run = orphan_ls,
};

/* ---- adopt, end ---- */

struct orphan_opts {
    bool all, yes;
};

static const struct cli_opt adopt_opts[] = {
    { 0, "all", CLI_FLAG, offsetof(struct orphan_opts, all), NULL, "all that can be adopted" },
    CLI_OPT_END,
};

static const struct cli_opt end_opts[] = {
    { 0, "all", CLI_FLAG, offsetof(struct orphan_opts, all), NULL, "all that are listed" },
    { 'y', "yes", CLI_FLAG, offsetof(struct orphan_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int orphan_check_args(const struct orphan_opts *opts, int argc, struct aq_error *err)
{
    return opts->all == (argc > 0)
               ? aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "name sessions, or give --all")
               : 0;
}

static const struct cli_things orphans = { "/aliquot/v1/orphans/", "session" };

static int orphan_change_all(struct cli *cli, enum method method, const char *action,
                             bool adoptable_only, struct aq_error *err)
{
    json_t *answer = NULL, *item;
    size_t i;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/orphans", NULL, &answer, err);

    if (r < 0)
        return r;
    json_array_foreach(json_object_get(answer, "items"), i, item)
        if (r == 0 && (!adoptable_only || json_is_true(json_object_get(item, "adoptable"))))
            r = cli_thing_call(cli, method, &orphans,
                               json_string_value(json_object_get(item, "id")), action, NULL, NULL,
                               err);
    json_decref(answer);
    return r;
}

static int orphan_adopt(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct orphan_opts *opts = data;
    int r = orphan_check_args(opts, argc, err);

    if (r < 0)
        return r;
    return opts->all ? orphan_change_all(cli, METHOD_POST, "/adopt", true, err)
                     : cli_things_call(cli, METHOD_POST, &orphans, "/adopt", NULL, argc, argv, err);
}

const struct cli_verb verb_admin_orphan_adopt = {
    .name = "admin orphan adopt",
    .args = "[SESSION...]",
    .summary = "Take sessions over that are newer than the backup, as they run",
    .details = "What the database does not know is made again from what the agents say that its\n"
               "containers were started from: same id, name, owner, image, command and resources.\n"
               "Tags, priorities and dependencies are lost.",
    .examples = "aliquot admin orphan adopt --all",
    .opts = adopt_opts,
    .opts_size = sizeof(struct orphan_opts),
    .max_args = -1,
    .run = orphan_adopt,
};

static int orphan_end(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct orphan_opts *opts = data;
    int r = orphan_check_args(opts, argc, err);

    if (r == 0)
        r = opts->all
                ? cli_confirm(opts->yes, err, "Kill all that is newer than the backup?")
                : cli_confirm(opts->yes, err, "Kill %d session%s?", argc, argc == 1 ? "" : "s");
    if (r != 0)
        return r;
    return opts->all ? orphan_change_all(cli, METHOD_DELETE, "", false, err)
                     : cli_things_call(cli, METHOD_DELETE, &orphans, "", NULL, argc, argv, err);
}

const struct cli_verb verb_admin_orphan_end = {
    .name = "admin orphan end",
    .args = "[SESSION...]",
    .summary = "Kill sessions that are newer than the backup",
    .examples = "aliquot admin orphan end --all --yes",
    .opts = end_opts,
    .opts_size = sizeof(struct orphan_opts),
    .max_args = -1,
    .run = orphan_end,
};

/* ---- finish ---- */

struct finish_opts {
    bool force;
};

static const struct cli_opt finish_opts[] = {
    { 'f', "force", CLI_FLAG, offsetof(struct finish_opts, force), NULL,
      "kill what is undecided, and do not wait for agents that are away", "force" },
    CLI_OPT_END,
};

static int orphan_finish(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_object();
    int r = cli_options_add(finish_opts, data, body, err);

    (void)argc;
    (void)argv;
    return r < 0 ? r : cli_call(cli, METHOD_POST, "/aliquot/v1/restore/finish", body, NULL, err);
}

const struct cli_verb verb_admin_orphan_finish = {
    .name = "admin orphan finish",
    .args = "",
    .summary = "End a restore: start sessions again",
    .details = "Refused while something is neither adopted nor ended, or an agent that was there\n"
               "when the backup was made is not back. From then on, what the manager does not\n"
               "know is killed on agents as ever.",
    .examples = "aliquot admin orphan finish",
    .opts = finish_opts,
    .opts_size = sizeof(struct finish_opts),
    .run = orphan_finish,
};
