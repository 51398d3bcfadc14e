/* SPDX-License-Identifier: Apache-2.0 */
/* "admin preset": amounts with a name, for people to choose from. */
#include <errno.h>

#include "cli/account_tables.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static int preset_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return list_show_whole(cli, "/aliquot/v1/resource-presets", "items",
                           resource_preset_table.columns, err);
}

const struct cli_verb verb_admin_preset_ls = {
    .name = "admin preset ls",
    .args = "",
    .summary = "List resource presets",
    .details = "What clients such as web pages offer their users: amounts with a name.",
    .examples = "aliquot admin preset ls",
    .if_empty = "there are no presets",
    .run = preset_ls,
};

static const struct cli_things presets = { "/aliquot/v1/resource-presets/", NULL };

static int preset_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_object();
    int r = cli_options_add(resource_preset_table.create, data, body, err);

    (void)argc;
    if (r < 0)
        return r;
    if (!json_object_get(body, "resource_slots"))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "give amounts, such as -r cpu=2 -r mem=4g");
    return cli_thing_call(cli, METHOD_PUT, &presets, argv[0], "", body, NULL, err);
}

const struct cli_verb verb_admin_preset_set = {
    .name = "admin preset set",
    .args = "PRESET",
    .summary = "Make a resource preset, or give it other amounts",
    .details = "The console and Backend.AI's clients offer presets when a session is created.\n"
               "All amounts of a preset are given at once. For superadmins.",
    .examples = "aliquot admin preset set small -r cpu=2 -r mem=8g\n"
                "aliquot admin preset set quarter-gpu -r cpu=2,mem=8g,cuda.shares=0.25",
    .opts = resource_preset_table.create,
    .opts_size = sizeof(struct account_options),
    .min_args = 1,
    .max_args = 1,
    .run = preset_set,
};

static int preset_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return cli_things_call(cli, METHOD_DELETE, &presets, "", NULL, argc, argv, err);
}

const struct cli_verb verb_admin_preset_rm = {
    .name = "admin preset rm",
    .args = "PRESET...",
    .summary = "Remove resource presets",
    .details = "Existing sessions are unaffected. For superadmins.",
    .examples = "aliquot admin preset rm small",
    .min_args = 1,
    .max_args = -1,
    .run = preset_rm,
};
