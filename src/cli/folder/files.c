/* SPDX-License-Identifier: Apache-2.0 */
/* "folder": files in a folder: listed, moved and removed. */
#include <errno.h>
#include <string.h>

#include "cli/folder/folder.h"
#include "cli/list.h"
#include "cli/verbs.h"

static const struct column file_columns[] = {
    { "mode", "MODE", COLUMN_TEXT, 0 },
    { "size", "SIZE", COLUMN_BYTES, 0 },
    { "modified", "AGE", COLUMN_TIME, 0 },
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "type", "TYPE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "created", "CREATED", COLUMN_TIME, COLUMN_IS_EXTRA },
    COLUMN_END,
};

static int folder_files(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT, out = STRBUF_INIT;
    json_auto_t *answer = NULL;
    int r;

    (void)data;
    strbuf_adds(&rest, "/files");
    cli_path_query(&rest, "path", argc > 1 ? argv[1] : ".");
    if (!strbuf_ok(&rest))
        return aq_fail_oom(err);
    r = folder_call(cli, METHOD_GET, argv[0], rest.data, NULL, &answer, err);
    if (r == 0)
        r = output_list(&cli->output, file_columns, json_object_get(answer, "items"), &out, err);
    return r < 0 ? r : cli_print(&out, err);
}

const struct cli_verb verb_folder_files = {
    .name = "folder files",
    .args = "FOLDER [PATH]",
    .summary = "List files of a folder",
    .examples = "aliquot folder files data\naliquot folder files data runs/3",
    .if_empty = "there are no files",
    .min_args = 1,
    .max_args = 2,
    .run = folder_files,
};

struct folder_mkdir_opts {
    bool parents;
};

static const struct cli_opt mkdir_opts[] = {
    { 0, "parents", CLI_FLAG, offsetof(struct folder_mkdir_opts, parents), NULL,
      "make those above, too, and leave what is there" },
    CLI_OPT_END,
};

static int folder_mkdir(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    bool parents = ((const struct folder_mkdir_opts *)data)->parents;
    int r = 0;

    for (int i = 1; r == 0 && i < argc; i++)
        r = folder_send(
            cli, METHOD_POST, argv[0], "/mkdir",
            json_pack("{s:s, s:b, s:b}", "path", argv[i], "parents", parents, "exist_ok", parents),
            NULL, err);
    return r;
}

const struct cli_verb verb_folder_mkdir = {
    .name = "folder mkdir",
    .args = "FOLDER PATH...",
    .summary = "Make directories in a folder",
    .examples = "aliquot folder mkdir data runs/3 --parents",
    .opts = mkdir_opts,
    .opts_size = sizeof(struct folder_mkdir_opts),
    .min_args = 2,
    .max_args = -1,
    .run = folder_mkdir,
};

static int folder_mv(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    return folder_send(cli, METHOD_POST, argv[0], "/move-file",
                       json_pack("{s:s, s:s}", "src", argv[1], "dst", argv[2]), NULL, err);
}

const struct cli_verb verb_folder_mv = {
    .name = "folder mv",
    .args = "FOLDER FROM TO",
    .summary = "Move a file or directory within a folder",
    .details = "Where TO is a directory, it goes into that; what has the new name already is not\n"
               "replaced.",
    .examples = "aliquot folder mv data new.csv old/new.csv\naliquot folder mv data new.csv old",
    .min_args = 3,
    .max_args = 3,
    .run = folder_mv,
};

struct folder_rm_file_opts {
    bool recursive;
};

static const struct cli_opt rm_file_opts[] = {
    { 'r', "recursive", CLI_FLAG, offsetof(struct folder_rm_file_opts, recursive), NULL,
      "directories with all that is in them, too" },
    CLI_OPT_END,
};

static int folder_rm_file(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_t *files = folder_texts(argc - 1, argv + 1);

    return folder_send(cli, METHOD_DELETE, argv[0], "/delete-files",
                       files ? json_pack("{s:o, s:b}", "files", files, "recursive",
                                         ((const struct folder_rm_file_opts *)data)->recursive)
                             : NULL,
                       NULL, err);
}

const struct cli_verb verb_folder_rm_file = {
    .name = "folder rm-file",
    .args = "FOLDER PATH...",
    .summary = "Remove files of a folder",
    .examples = "aliquot folder rm-file data old.csv\naliquot folder rm-file data -r runs/3",
    .opts = rm_file_opts,
    .opts_size = sizeof(struct folder_rm_file_opts),
    .min_args = 2,
    .max_args = -1,
    .run = folder_rm_file,
};
