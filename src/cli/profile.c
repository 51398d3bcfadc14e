/* SPDX-License-Identifier: Apache-2.0 */
/* "profile": the clusters that you are logged in to, and which one is used. */
#include <string.h>

#include "cli/list.h"
#include "cli/verbs.h"

static const struct column columns[] = {
    { "mark", "", COLUMN_TEXT, 0 },
    { "name", "PROFILE", COLUMN_TEXT, COLUMN_IS_NAME },
    { "endpoint", "ENDPOINT", COLUMN_TEXT, 0 },
    { "access_key", "ACCESS-KEY", COLUMN_TEXT, 0 },
    { "is_current", "CURRENT", COLUMN_BOOL, COLUMN_IS_WIDE },
    COLUMN_END,
};

static int profile_ls_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *profiles = NULL, *rows = json_array(), *settings;
    const char *name;
    int r = cli_profiles_read(&cli->config, &profiles, err);

    (void)data;
    (void)argc;
    (void)argv;
    json_object_foreach(profiles, name, settings) {
        bool is_current = strcmp(name, cli->config.profile) == 0;

        (void)json_array_append_new(
            rows, json_pack("{s:s, s:s, s:O?, s:O?, s:b}", "mark", is_current ? "*" : " ", "name",
                            name, "endpoint", json_object_get(settings, "endpoint"), "access_key",
                            json_object_get(settings, "access_key"), "is_current", is_current));
    }
    if (r == 0)
        r = list_print(cli, columns, rows, err);
    if (r == 0)
        (void)list_note_empty(cli, rows);
    json_decref(rows);
    json_decref(profiles);
    return r;
}

const struct cli_verb verb_profile_ls = {
    .name = "profile ls",
    .args = "",
    .summary = "List the clusters that you are logged in to",
    .details = "The one with a star is used: it is the last that you logged in to or chose by\n"
               "'aliquot profile use', unless --profile or ALIQUOT_PROFILE names another. Secret\n"
               "keys are not shown.",
    .examples = "aliquot profile ls\naliquot ps --profile work",
    .if_empty = "you are not logged in anywhere; log in: aliquot login URL",
    .run = profile_ls_run,
};

static int profile_use_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const char *variable = getenv("ALIQUOT_PROFILE");
    int r = cli_profile_use(&cli->config, argv[0], err);

    (void)data;
    (void)argc;
    if (r < 0) {
        cli_hint(cli, "see what there is: aliquot profile ls");
        return r;
    }
    if (variable && variable[0] && strcmp(variable, argv[0]) != 0)
        cli_note(cli, "the variable ALIQUOT_PROFILE is set to '%s' and goes before it", variable);
    return 0;
}

const struct cli_verb verb_profile_use = {
    .name = "profile use",
    .args = "PROFILE",
    .summary = "Use another cluster from now on",
    .examples = "aliquot profile use work",
    .min_args = 1,
    .max_args = 1,
    .run = profile_use_run,
};

static int profile_rm_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++)
        r = cli_profile_remove(&cli->config, argv[i], err);
    if (r < 0)
        cli_hint(cli, "see what there is: aliquot profile ls");
    return r;
}

const struct cli_verb verb_profile_rm = {
    .name = "profile rm",
    .args = "PROFILE...",
    .summary = "Forget profiles and their keypairs",
    .details = "The keypairs stay valid: an administrator removes them from the cluster.",
    .examples = "aliquot profile rm old-cluster",
    .min_args = 1,
    .max_args = -1,
    .run = profile_rm_run,
};
