/* SPDX-License-Identifier: Apache-2.0 */
/* What images need and take: info, set. */
#include <errno.h>

#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column image_columns[] = {
    { "names", "IMAGE", COLUMN_NAMES, COLUMN_IS_NAME },
    { "resource_limits", "LIMITS", COLUMN_TEXT, COLUMN_IS_NESTED },
    { "size_bytes", "SIZE", COLUMN_BYTES, 0 },
    { "agents", "AGENTS", COLUMN_NAMES, 0 },
    { "in_use", "IN-USE", COLUMN_BOOL, 0 },
    { "fetched_at", "FETCHED", COLUMN_TIME, 0 },
    { "architecture", "ARCHITECTURE", COLUMN_TEXT, 0 },
    { "digest", "DIGEST", COLUMN_TEXT, 0 },
    { "labels", "LABELS", COLUMN_TEXT, COLUMN_IS_NESTED },
    COLUMN_END,
};

static int image_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *answer = NULL, *rows;
    int r;

    (void)data;
    (void)argc;
    strbuf_adds(&path, "/aliquot/v1/images");
    cli_path_query(&path, "image", argv[0]);
    r = cli_call(cli, METHOD_GET, path.data, NULL, &answer, err);
    rows = json_object_get(answer, "items");
    if (r == 0 && json_array_size(rows) == 0)
        r = aq_fail(err, ENOENT, "no agent has the image '%s': aliquot image pull fetches it",
                    argv[0]);
    for (size_t i = 0; r == 0 && i < json_array_size(rows); i++)
        r = record_print(cli, image_columns, json_array_get(rows, i), err);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_image_info = {
    .name = "image info",
    .args = "IMAGE",
    .summary = "Show an image that agents have: its limits, labels and where it is",
    .details = "IMAGE is a name or an alias. Shown once for each of its meanings.",
    .examples = "aliquot image info python:3.11",
    .min_args = 1,
    .max_args = 1,
    .run = image_info,
};

struct image_set_opts {
    struct cli_list min, max;
};

static const struct cli_opt set_opts[] = {
    { 0, "min", CLI_LIST, offsetof(struct image_set_opts, min), "SLOT=AMOUNT",
      "what a container gets at least; repeatable", "min" },
    { 0, "max", CLI_LIST, offsetof(struct image_set_opts, max), "SLOT=AMOUNT",
      "what a container gets at most; repeatable", "max" },
    CLI_OPT_END,
};

static int image_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_pack("{s:s, s:{}, s:{}}", "image", argv[0], "min", "max");
    int r = body ? cli_options_add(set_opts, data, body, err)
                 : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "an image's name is UTF-8");

    (void)argc;
    return r < 0 ? r : cli_call(cli, METHOD_PUT, "/aliquot/v1/image-limits", body, NULL, err);
}

const struct cli_verb verb_image_set = {
    .name = "image set",
    .args = "IMAGE",
    .summary = "Set the least and the most that containers of an image get",
    .details = "This counts over the image's own labels (ai.backend.resource.min.SLOT, .max.SLOT)\n"
               "and replaces what was set before; without amounts only the labels count again.\n"
               "For administrators.",
    .examples = "aliquot image set --min cpu=2 --min mem=4g --max cuda.shares=1 train:7\n"
                "aliquot image set train:7",
    .opts = set_opts,
    .opts_size = sizeof(struct image_set_opts),
    .min_args = 1,
    .max_args = 1,
    .run = image_set,
};
