/* SPDX-License-Identifier: Apache-2.0 */
/* Images on the nodes: ls, pull, rm, gc; their short names. */
#include <errno.h>
#include <string.h>

#include "cli/admin/image_command.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column image_columns[] = {
    { "names", "IMAGE", COLUMN_NAMES, COLUMN_IS_NAME | COLUMN_MAY_SHRINK },
    { "size_bytes", "SIZE", COLUMN_BYTES, 0 },
    { "agents", "AGENTS", COLUMN_NAMES, COLUMN_MAY_SHRINK },
    { "in_use", "IN-USE", COLUMN_BOOL, 0 },
    { "fetched_at", "FETCHED", COLUMN_TIME, 0 },
    { "architecture", "ARCHITECTURE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "digest", "DIGEST", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "labels", "LABELS", COLUMN_TEXT, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static const struct column image_command_columns[] = {
    { "agent", "AGENT", COLUMN_TEXT, COLUMN_IS_NAME },
    { "state", "STATE", COLUMN_STATUS, 0 },
    { "image", "IMAGE", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "freed_bytes", "FREED", COLUMN_BYTES, 0 },
    { "digest", "DIGEST", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "error_kind", "KIND", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "error", "ERROR", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    COLUMN_END,
};

/* ---- ls ---- */

struct image_ls_opts {
    struct list_opts list;
    const char *agent;
};

static const struct cli_opt ls_opts[] = {
    { 0, "agent", CLI_STR, offsetof(struct image_ls_opts, agent), "AGENT",
      "only those of this agent", "agent" },
    { 'n', "limit", CLI_INT, offsetof(struct image_ls_opts, list.limit), "N",
      "at most so many rows; 0 = all; default 1000" },
    { 0, "filter", CLI_LIST, offsetof(struct image_ls_opts, list.filters), "EXPR",
      "only rows that match, e.g. 'size>1g'; repeatable" },
    { 'w', "watch", CLI_DURATION, offsetof(struct image_ls_opts, list.watch), "TIME",
      "show it again after so long, until Ctrl-C" },
    CLI_OPT_END,
};

static int image_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    const struct image_ls_opts *opts = data;

    (void)argc;
    (void)argv;
    strbuf_adds(&path, "/aliquot/v1/images");
    cli_path_options(&path, ls_opts, opts);
    return list_show(cli, path.data, &opts->list, image_columns, err);
}

const struct cli_verb verb_image_ls = {
    .name = "image ls",
    .args = "",
    .summary = "List the images on the nodes",
    .examples = "aliquot image ls\naliquot image ls --agent node1 -o wide",
    .if_empty = "no agent has an image yet; fetch one: aliquot image pull IMAGE. Sessions fetch\n"
                "theirs by themselves; the image 'process' needs none",
    .opts = ls_opts,
    .opts_size = sizeof(struct image_ls_opts),
    .run = image_ls,
};

/* ---- orders to agents ---- */

struct image_command_opts {
    const char *agent;
    bool everywhere, always, all, yes;
};

/* clang-format off */
#define AGENT_ROWS                                                                                 \
    { 0, "agent", CLI_STR, offsetof(struct image_command_opts, agent), "AGENT",                            \
      "on this agent only; default: on all that are connected" },                              \
    { 'a', "all", CLI_FLAG, offsetof(struct image_command_opts, everywhere), NULL,                         \
      "on all agents that are connected" }
/* clang-format on */

/* Of all images if 'image' is NULL. */
static int image_run_command(struct cli *cli, const char *action, const char *doing,
                             const struct image_command_opts *opts, const char *image,
                             struct aq_error *err)
{
    json_auto_t *body = json_object(), *rows = NULL;
    int r = cli_options_add(cli->verb->opts, opts, body, err);

    if (r < 0)
        return r;
    if (image)
        (void)json_object_set_new(body, "image", json_string(image));
    if (opts->agent)
        (void)json_object_set_new(body, "agents", json_pack("[s]", opts->agent));
    r = image_command(cli, action, doing, body, &rows, err);
    if (rows)
        (void)list_print(cli, image_command_columns, rows, NULL);
    return r;
}

static const struct cli_opt pull_opts[] = {
    AGENT_ROWS,
    { 0, "always", CLI_FLAG, offsetof(struct image_command_opts, always), NULL,
      "ask the registry although the image is there", "always" },
    CLI_OPT_END,
};

static int image_pull(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct image_command_opts *opts = data;
    int r = 0;

    if (opts->agent && opts->everywhere)
        return aq_fail_kind(err, EINVAL, "usage", "--agent and --all exclude each other");
    for (int i = 0; r == 0 && i < argc; i++) {
        AQ_CLEANUP(aq_freep) char *doing = aq_format("pulling %s", argv[i]);

        r = image_run_command(cli, "pull", doing, opts, argv[i], err);
    }
    return r;
}

const struct cli_verb verb_image_pull = {
    .name = "image pull",
    .args = "IMAGE...",
    .summary = "Fetch images so that sessions start at once",
    .details =
        "IMAGE is REGISTRY/REPOSITORY[:TAG][@DIGEST], oci-archive:/PATH, docker-archive:/PATH\n"
        "or oci:/FOLDER[:NAME]; paths are the agent's. A pull that was interrupted goes on\n"
        "where it stopped. Whether an image is admitted is in the agent's settings.",
    .examples = "aliquot image pull python:3.11\n"
                "aliquot image pull --agent node1 registry.example.com/team/train:7",
    .opts = pull_opts,
    .opts_size = sizeof(struct image_command_opts),
    .min_args = 1,
    .max_args = -1,
    .run = image_pull,
};

static const struct cli_opt rm_opts[] = {
    AGENT_ROWS,
    { 'y', "yes", CLI_FLAG, offsetof(struct image_command_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int image_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct image_command_opts *opts = data;
    int r = argc == 1 ? 0 : cli_confirm(opts->yes, err, "Remove %d images?", argc);

    for (int i = 0; r == 0 && i < argc; i++)
        r = image_run_command(cli, "remove", "removing", opts, argv[i], err);
    return r;
}

const struct cli_verb verb_image_rm = {
    .name = "image rm",
    .args = "IMAGE...",
    .summary = "Remove images that nobody uses from the nodes",
    .details = "IMAGE is a name or a digest as 'aliquot image ls' shows it.",
    .examples = "aliquot image rm python:3.9\naliquot image rm --agent node1 python:3.9",
    .opts = rm_opts,
    .opts_size = sizeof(struct image_command_opts),
    .min_args = 1,
    .max_args = -1,
    .run = image_rm,
};

static const struct cli_opt gc_opts[] = {
    { 0, "agent", CLI_STR, offsetof(struct image_command_opts, agent), "AGENT",
      "on this agent only; default: on all that are connected" },
    { 0, "unused", CLI_FLAG, offsetof(struct image_command_opts, all), NULL,
      "everything that is unused, not only what is too old or too much", "all" },
    CLI_OPT_END,
};

static int image_gc(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)argc;
    (void)argv;
    return image_run_command(cli, "collect", "collecting", data, NULL, err);
}

const struct cli_verb verb_image_gc = {
    .name = "image gc",
    .args = "",
    .summary = "Remove images that are unused and too old or too much",
    .details = "What is too old or too much is in the agent's settings; agents also do this by\n"
               "themselves.",
    .examples = "aliquot image gc\naliquot image gc --unused --agent node1",
    .opts = gc_opts,
    .opts_size = sizeof(struct image_command_opts),
    .run = image_gc,
};

/* ---- short names ---- */

static const struct column alias_columns[] = {
    { "alias", "ALIAS", COLUMN_TEXT, COLUMN_IS_NAME },
    { "image", "IMAGE", COLUMN_TEXT, 0 },
    COLUMN_END,
};

static const struct cli_things image_aliases = { "/aliquot/v1/image-aliases/", NULL };

static int image_alias(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)data;
    if (argc == 0)
        return list_show_whole(cli, "/aliquot/v1/image-aliases", "items", alias_columns, err);
    if (argc == 1)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "an ALIAS needs the IMAGE that it means");
    cli_thing_path(&image_aliases, argv[0], "", &path);
    return cli_send(cli, METHOD_PUT, path.data, json_pack("{s:s}", "image", argv[1]),
                    "an image's name is UTF-8", NULL, err);
}

const struct cli_verb verb_image_alias = {
    .name = "image alias",
    .args = "[ALIAS IMAGE]",
    .summary = "Give an image a short name, or list those that there are",
    .details = "Users can then write ALIAS for IMAGE when they create a session. Setting it\n"
               "again replaces the image. Setting one is for administrators.",
    .examples = "aliquot image alias\n"
                "aliquot image alias py311 registry.example.com/team/python:3.11",
    .max_args = 2,
    .run = image_alias,
};

static int image_unalias(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return cli_things_call(cli, METHOD_DELETE, &image_aliases, "", NULL, argc, argv, err);
}

const struct cli_verb verb_image_unalias = {
    .name = "image unalias",
    .args = "ALIAS...",
    .summary = "Take short names of images away",
    .details = "The images stay. For administrators.",
    .examples = "aliquot image unalias py311",
    .min_args = 1,
    .max_args = -1,
    .run = image_unalias,
};
