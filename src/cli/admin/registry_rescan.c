/* SPDX-License-Identifier: Apache-2.0 */
/* admin registry rescan: container registries are asked for their images. */
#include <string.h>

#include "cli/background_task.h"
#include "cli/request.h"
#include "cli/verbs.h"

static int registry_rescan_one(struct cli *cli, const char *name, struct aq_error *err)
{
    const struct cli_things registries = { "/aliquot/v1/registries/", NULL };
    char message[BACKGROUND_MESSAGE_MAX];
    json_auto_t *answer = NULL;
    int r = cli_thing_call(cli, METHOD_POST, &registries, name, "/rescan", NULL, &answer, err);

    if (r < 0)
        return r;
    r = background_task_follow(cli, answer, "task_id", message, err);
    if (r == 0)
        cli_note(cli, "%s: %s", name, message);
    return r;
}

static int registry_rescan(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++)
        r = registry_rescan_one(cli, argv[i], err);
    return r;
}

const struct cli_verb verb_admin_registry_rescan = {
    .name = "admin registry rescan",
    .args = "REGISTRY...",
    .summary = "Ask container registries for their images, so that 'image ls' lists them",
    .details =
        "Images of a registry can be used by their names without it. The manager reads, with\n"
        "the login that is kept; what it finds of a registry replaces what it found before,\n"
        "or nothing changes if something cannot be read.",
    .examples = "aliquot admin registry rescan registry.example:5000",
    .min_args = 1,
    .max_args = -1,
    .run = registry_rescan,
};
