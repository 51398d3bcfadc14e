/* SPDX-License-Identifier: Apache-2.0 */
/* "folder": files in a folder: listed, moved and removed. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "cli/folder/folder.h"
#include "cli/list.h"
#include "cli/verbs.h"

#define PAGE 10000 /* the most that the manager gives; each page of a directory reads all of it */

static const struct column file_columns[] = {
    { "mode", "MODE", COLUMN_TEXT, 0 },
    { "size", "SIZE", COLUMN_BYTES, 0 },
    { "modified", "AGE", COLUMN_TIME, 0 },
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "type", "TYPE", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "created", "CREATED", COLUMN_TIME, COLUMN_IS_EXTRA },
    COLUMN_END,
};

/* Pages as they come, so that a directory of any size takes the memory of one; the rows of a list
 * that is sorted are kept until all are there.
 */
struct folder_files {
    struct cli *cli;
    json_t *kept;  /* NULL = printed as they come */
    char *after;   /* the last name of the page before; NULL = this is the first */
    bool has_rows; /* a page was printed */
};

/* Pages of one JSON list are parted by commas instead of brackets; all other formats are lines. */
static int folder_files_print(struct folder_files *files, const json_t *rows, bool is_last,
                              struct aq_error *err)
{
    static const char begin[] = "[", end[] = "\n]\n";
    AQ_CLEANUP(strbuf_donep) struct strbuf page = STRBUF_INIT, out = STRBUF_INIT;
    struct output output = files->cli->output;
    bool is_json = output.format == OUTPUT_JSON, is_first = !files->has_rows;
    bool is_empty = json_array_size(rows) == 0;
    size_t skip = is_json && !is_first ? strlen(begin) : 0;
    size_t cut = is_json && !is_last ? strlen(end) : 0;
    int r;

    output.no_header |= !is_first;
    if ((r = output_list(&output, file_columns, rows, &page, err)) < 0)
        return r;
    if (is_first || !is_empty) {
        strbuf_adds(&out, skip ? "," : "");
        strbuf_add(&out, page.data + skip, page.len - skip - cut);
    } else if (is_json) {
        strbuf_adds(&out, end); /* the remaining files were removed meanwhile */
    }
    files->has_rows = true;
    return cli_print(&out, err);
}

static int folder_files_take(struct folder_files *files, const json_t *answer, bool *ret_more,
                             struct aq_error *err)
{
    json_t *items = json_object_get(answer, "items");
    size_t count = json_array_size(items);
    const char *last = count ? json_string_value(
                           json_object_get(json_array_get(items, count - 1), "name"))
                             : NULL;

    *ret_more = last && json_is_true(json_object_get(answer, "more"));
    free(files->after);
    files->after = last ? aq_strdup(last) : NULL;
    if (!files->kept)
        return folder_files_print(files, items, !*ret_more, err);
    (void)json_array_extend(files->kept, items);
    return 0;
}

static int folder_files_read(struct folder_files *files, const char *folder, const char *path,
                             struct aq_error *err)
{
    bool has_more = true;
    int r = 0;

    while (r == 0 && has_more) {
        AQ_CLEANUP(strbuf_donep) struct strbuf rest = STRBUF_INIT;
        json_auto_t *answer = NULL;

        strbuf_addf(&rest, "/files?limit=%d", PAGE);
        cli_path_query(&rest, "path", path);
        cli_path_query(&rest, "after", files->after);
        r = folder_call(files->cli, METHOD_GET, folder, rest.data, NULL, &answer, err);
        if (r == 0)
            r = folder_files_take(files, answer, &has_more, err);
    }
    return r;
}

static int folder_files(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct folder_files files = { .cli = cli, .kept = cli->output.sort ? json_array() : NULL };
    const char *colon = strchr(argv[0], ':');
    int r;

    (void)data;
    if (colon && argc == 1) /* as 'folder cp' takes it; names of folders have no colons */
        cli_hint(cli, "the path is an argument of its own: aliquot folder files %.*s %s",
                 (int)(colon - argv[0]), argv[0], colon[1] ? colon + 1 : ".");
    r = folder_files_read(&files, argv[0], argc > 1 ? argv[1] : ".", err);
    if (r == 0 && files.kept)
        r = folder_files_print(&files, files.kept, true, err);
    json_decref(files.kept);
    free(files.after);
    return r;
}

const struct cli_verb verb_folder_files = {
    .name = "folder files",
    .args = "FOLDER [PATH]",
    .summary = "List files of a folder",
    .details = "Sorted by the bytes of their names; a directory of any size is listed in full.",
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
    .details =
        "If TO is a directory, the file is moved into it. An existing file of the new name is\n"
        "not replaced.",
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
