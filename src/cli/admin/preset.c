/* SPDX-License-Identifier: Apache-2.0 */
/* "admin preset": amounts with a name, for people to choose from. */
#include <errno.h>

#include "cli/client.h"
#include "cli/session/session_spec.h"
#include "cli/verbs.h"
#include "http/url.h"

static const struct column columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "resource_slots", "RESOURCES", COLUMN_SLOTS, 0 },
    { "shared_memory", "SHARED-MEMORY", COLUMN_BYTES, 0 },
    COLUMN_END,
};

static int preset_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    json_t *answer = NULL;
    int r = cli_call(cli, METHOD_GET, "/aliquot/v1/resource-presets", NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r == 0)
        r = output_list(&cli->output, columns, json_object_get(answer, "items"), &out, err);
    json_decref(answer);
    return r < 0 ? r : cli_print(&out, err);
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

static int preset_call(struct cli *cli, enum method method, const char *name, json_t *body,
                       struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    strbuf_adds(&path, "/aliquot/v1/resource-presets/");
    url_encode(&path, name);
    return cli_call(cli, method, path.data, body, NULL, err);
}

struct preset_opts {
    struct cli_list resources;
    const char *shared_memory;
};

static const struct cli_opt preset_opts[] = {
    { 'r', "resource", CLI_LIST, offsetof(struct preset_opts, resources), "SLOT=AMOUNT",
      "an amount: cpu=2, mem=4g, cuda.shares=0.25; repeatable" },
    { 0, "shared-memory", CLI_STR, offsetof(struct preset_opts, shared_memory), "SIZE",
      "of /dev/shm, e.g. 1g" },
    CLI_OPT_END,
};

static int preset_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct preset_opts *given = data;
    json_t *slots = json_object(), *body = json_object();
    int r = 0;

    (void)argc;
    if (r == 0 && !given->resources.count)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "give amounts, such as -r cpu=2 -r mem=4g");
    for (size_t i = 0; r == 0 && i < given->resources.count; i++)
        r = spec_add_resources(given->resources.items[i], slots, err);
    (void)json_object_set(body, "resource_slots", slots);
    if (r == 0 && given->shared_memory
        && json_object_set_new(body, "shared_memory", json_string(given->shared_memory)) < 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--shared-memory is not UTF-8");
    if (r == 0)
        r = preset_call(cli, METHOD_PUT, argv[0], body, err);
    json_decref(slots);
    json_decref(body);
    return r;
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
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++)
        r = preset_call(cli, METHOD_DELETE, argv[i], NULL, err);
    return r;
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
