/* SPDX-License-Identifier: Apache-2.0 */
/* "admin preset": amounts with a name, for people to choose from. */
#include <errno.h>

#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "resource_slots", "RESOURCES", COLUMN_SLOTS, 0 },
    { "shared_memory", "SHARED-MEMORY", COLUMN_BYTES, 0 },
    COLUMN_END,
};

static int preset_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return list_show_whole(cli, "/aliquot/v1/resource-presets", "items", columns, err);
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

struct preset_opts {
    struct cli_list resources;
    const char *shared_memory;
};

static const struct cli_opt preset_opts[] = {
    { 'r', "resource", CLI_LIST, offsetof(struct preset_opts, resources), "SLOT=AMOUNT",
      "an amount: cpu=2, mem=4g, cuda.shares=0.25; repeatable", "resource_slots" },
    { 0, "shared-memory", CLI_STR, offsetof(struct preset_opts, shared_memory), "SIZE",
      "of /dev/shm, e.g. 1g", "shared_memory" },
    CLI_OPT_END,
};

static int preset_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct preset_opts *given = data;
    json_auto_t *body = json_object();
    int r;

    (void)argc;
    if (!given->resources.count)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "give amounts, such as -r cpu=2 -r mem=4g");
    r = cli_options_add(preset_opts, given, body, err);
    return r < 0 ? r : cli_thing_call(cli, METHOD_PUT, &presets, argv[0], "", body, NULL, err);
}

const struct cli_verb verb_admin_preset_set = {
    .name = "admin preset set",
    .args = "PRESET",
    .summary = "Make a resource preset, or give it other amounts",
    .details = "All amounts of a preset are given at once. For superadmins.",
    .examples = "aliquot admin preset set small -r cpu=2 -r mem=8g\n"
                "aliquot admin preset set quarter-gpu -r cpu=2,mem=8g,cuda.shares=0.25",
    .opts = preset_opts,
    .opts_size = sizeof(struct preset_opts),
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
    .details = "Sessions are not concerned. For superadmins.",
    .examples = "aliquot admin preset rm small",
    .min_args = 1,
    .max_args = -1,
    .run = preset_rm,
};
