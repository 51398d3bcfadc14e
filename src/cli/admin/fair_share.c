/* SPDX-License-Identifier: Apache-2.0 */
/* "fair-share": recent usage of a resource group and fair-share factors. */
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column columns[] = {
    { "level", "LEVEL", COLUMN_TEXT, 0 },
    { "domain", "DOMAIN", COLUMN_TEXT, 0 },
    { "project", "PROJECT", COLUMN_TEXT, 0 },
    { "user", "USER", COLUMN_TEXT, COLUMN_IS_NAME },
    { "weight", "WEIGHT", COLUMN_NUMBER, 0 },
    { "usage", "USAGE", COLUMN_NUMBER, 0 },
    { "factor", "FACTOR", COLUMN_NUMBER, 0 },
    { "project_id", "PROJECT ID", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "user_id", "USER ID", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static int fair_share_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const char *configured = cli_config_get(&cli->config, SETTING_RESOURCE_GROUP);
    const char *group = argc ? argv[0] : configured ? configured : "default";
    const struct cli_things groups = { "/aliquot/v1/resource-groups/", NULL };
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)data;
    cli_thing_path(&groups, group, "/fair-share", &path);
    return list_show_whole(cli, path.data, "items", columns, err);
}

const struct cli_verb verb_fair_share = {
    .name = "fair-share",
    .args = "[RESOURCE-GROUP]",
    .summary = "Show who used how much of a resource group lately",
    .details = "For groups whose scheduler is fair-share. USAGE is the part of all that the group "
               "had to give,\nhalved with each half-life; the higher the FACTOR, the sooner is "
               "whose session it is.",
    .examples = "aliquot fair-share",
    .max_args = 1,
    .run = fair_share_run,
};
