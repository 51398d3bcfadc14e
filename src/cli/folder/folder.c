/* SPDX-License-Identifier: Apache-2.0 */
/* "folder": what there is, made, changed and removed. */
#include "cli/folder/folder.h"

#include <errno.h>
#include <string.h>

#include "cli/background_task.h"
#include "cli/list.h"
#include "cli/verbs.h"
#include "http/url.h"

/* ---- requests ---- */

static const struct cli_things folders = { "/folders/", NULL };

void folder_path(struct strbuf *path, const char *folder, const char *rest)
{
    cli_thing_path(&folders, folder, rest, path);
}

int folder_call(struct cli *cli, enum method method, const char *folder, const char *rest,
                json_t *body, json_t **ret, struct aq_error *err)
{
    int r = cli_thing_call(cli, method, &folders, folder, rest, body, ret, err);

    json_decref(body);
    return r;
}

int folder_send(struct cli *cli, enum method method, const char *folder, const char *rest,
                json_t *body, json_t **ret, struct aq_error *err)
{
    return body ? folder_call(cli, method, folder, rest, body, ret, err)
                : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "an argument is not UTF-8");
}

json_t *folder_texts(int argc, char **argv)
{
    json_t *list = json_array();

    for (int i = 0; i < argc; i++)
        if (json_array_append_new(list, json_string(argv[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

/* ---- ls, info, hosts ---- */

static const struct column folder_columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "STATUS", COLUMN_STATUS, 0 },
    { "permission", "PERMISSION", COLUMN_TEXT, 0 },
    { "is_owner", "MINE", COLUMN_BOOL, COLUMN_IS_WIDE },
    { "user_email", "USER", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "group_name", "PROJECT", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "num_files", "FILES", COLUMN_NUMBER, 0 },
    { "used_bytes", "SIZE", COLUMN_BYTES, 0 },
    { "measured_at", "MEASURED", COLUMN_TIME, COLUMN_IS_WIDE },
    { "host", "HOST", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "usage_mode", "USAGE", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "cloneable", "CLONEABLE", COLUMN_BOOL, COLUMN_IS_WIDE },
    { "creator", "CREATOR", COLUMN_TEXT, COLUMN_IS_EXTRA },
    { "max_size", "MAX-MIB", COLUMN_NUMBER, COLUMN_IS_EXTRA },
    { "created_at", "AGE", COLUMN_TIME, 0 },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

struct folder_ls_opts {
    struct list_opts list;
    bool everyone;
};

static const struct cli_opt ls_opts[] = {
    { 'A', "everyone", CLI_FLAG, offsetof(struct folder_ls_opts, everyone), NULL,
      "those of all users (administrators)" },
    LIST_OPT_ROWS(struct folder_ls_opts),
    CLI_OPT_END,
};

static int folder_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct folder_ls_opts *opts = data;

    (void)argc;
    (void)argv;
    return list_show(cli, opts->everyone ? "/aliquot/v1/folders?all=true" : "/aliquot/v1/folders",
                     &opts->list, folder_columns, err);
}

const struct cli_verb verb_folder_ls = {
    .name = "folder ls",
    .args = "",
    .summary = "List folders that you may use",
    .details =
        "Your own, those of your projects, and those that others share with you. What is\n"
        "in the trash has the status delete-pending. MEASURED, with -o wide,\n"
        "is how long ago FILES and SIZE were measured; all three are empty if a folder never was.",
    .examples = "aliquot folder ls\naliquot folder ls --filter status=delete-pending",
    .if_empty = "you have no folders; to make one: aliquot folder create NAME",
    .opts = ls_opts,
    .opts_size = sizeof(struct folder_ls_opts),
    .run = folder_ls,
};

static int folder_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)data;
    (void)argc;
    folder_path(&path, argv[0], "");
    return record_show(cli, path.data, folder_columns, NULL, NULL, err);
}

const struct cli_verb verb_folder_info = {
    .name = "folder info",
    .args = "FOLDER",
    .summary = "Show a folder, and count its files",
    .examples = "aliquot folder info data",
    .min_args = 1,
    .max_args = 1,
    .run = folder_info,
};

static const struct column host_columns[] = {
    { "host", "HOST", COLUMN_TEXT, COLUMN_IS_NAME },
    { "backend", "BACKEND", COLUMN_TEXT, 0 },
    { "default", "DEFAULT", COLUMN_BOOL, 0 },
    COLUMN_END,
};

static int folder_hosts(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *answer = NULL, *rows = json_array();
    const char *usual, *name;
    json_t *host;
    size_t i;
    int r = cli_call(cli, METHOD_GET, "/folders/_/hosts", NULL, &answer, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    usual = json_string_value(json_object_get(answer, "default"));
    json_array_foreach(json_object_get(answer, "allowed"), i, host) {
        const json_t *about;

        if (!(name = json_string_value(host)))
            continue;
        about = json_object_get(json_object_get(answer, "volume_info"), name);
        (void)json_array_append_new(rows, json_pack("{s:s, s:O?, s:b}", "host", name, "backend",
                                                    json_object_get(about, "backend"), "default",
                                                    usual && strcmp(usual, name) == 0));
    }
    return list_print(cli, host_columns, rows, err);
}

const struct cli_verb verb_folder_hosts = {
    .name = "folder hosts",
    .args = "",
    .summary = "List the hosts where you may make folders",
    .examples = "aliquot folder hosts",
    .if_empty = "no storage host is connected where you may make folders",
    .run = folder_hosts,
};

/* ---- create ---- */

struct folder_create_opts {
    const char *host, *project, *usage, *permission, *quota;
    bool is_cloneable;
};

static const struct cli_opt create_opts[] = {
    { 0, "host", CLI_STR, offsetof(struct folder_create_opts, host), "STORAGE:VOLUME",
      "where its files lie; the first of 'aliquot folder hosts' by default", "host" },
    { 0, "project", CLI_STR, offsetof(struct folder_create_opts, project), "PROJECT",
      "a folder of the project, by name or id (its administrators)", "group" },
    { 0, "usage-mode", CLI_STR, offsetof(struct folder_create_opts, usage), "MODE",
      "general (by default), model or data", "usage_mode" },
    { 'p', "permission", CLI_STR, offsetof(struct folder_create_opts, permission), "PERMISSION",
      "what the project's members may: ro, rw (by default) or wd", "permission" },
    { 0, "quota", CLI_STR, offsetof(struct folder_create_opts, quota), "SIZE",
      "how large it may get, e.g. 10g", "quota" },
    { 0, "cloneable", CLI_FLAG, offsetof(struct folder_create_opts, is_cloneable), NULL,
      "all who may read it may clone it", "cloneable" },
    CLI_OPT_END,
};

static int folder_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *answer = NULL, *body = json_pack("{s:s}", "name", argv[0]);
    int r = body ? cli_options_add(create_opts, data, body, err)
                 : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "an argument is not UTF-8");

    (void)argc;
    if (r == 0)
        r = cli_call_once(cli, "/folders", body, &answer, err);
    return r < 0 ? r : record_print(cli, folder_columns, answer, err);
}

const struct cli_verb verb_folder_create = {
    .name = "folder create",
    .args = "NAME",
    .summary = "Make a folder",
    .details = "A name has up to 64 letters, digits, dots, hyphens and underscores.",
    .examples = "aliquot folder create data\n"
                "aliquot folder create corpus --project vision -p ro --quota 500g",
    .opts = create_opts,
    .opts_size = sizeof(struct folder_create_opts),
    .min_args = 1,
    .max_args = 1,
    .run = folder_create,
};

/* ---- rename, set, clone ---- */

static int folder_rename(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    return folder_send(cli, METHOD_POST, argv[0], "/rename",
                       json_pack("{s:s}", "new_name", argv[1]), NULL, err);
}

const struct cli_verb verb_folder_rename = {
    .name = "folder rename",
    .args = "FOLDER NAME",
    .summary = "Give a folder another name",
    .examples = "aliquot folder rename data corpus",
    .min_args = 2,
    .max_args = 2,
    .run = folder_rename,
};

struct folder_set_opts {
    const char *permission, *cloneable;
};

static const struct cli_opt set_opts[] = {
    { 'p', "permission", CLI_STR, offsetof(struct folder_set_opts, permission), "PERMISSION",
      "what the project's members may: ro, rw or wd", "permission" },
    { 0, "cloneable", CLI_STR, offsetof(struct folder_set_opts, cloneable), "yes|no",
      "all who may read it may clone it", "cloneable" },
    CLI_OPT_END,
};

static int folder_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *body = json_object();
    int r = cli_options_add(set_opts, data, body, err);

    (void)argc;
    if (r == 0 && json_object_size(body) == 0)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "give --permission or --cloneable");
    return r < 0 ? r
                 : cli_thing_call(cli, METHOD_POST, &folders, argv[0], "/update-options", body,
                                  NULL, err);
}

const struct cli_verb verb_folder_set = {
    .name = "folder set",
    .args = "FOLDER",
    .summary = "Change what may be done with a folder",
    .examples = "aliquot folder set data --cloneable yes",
    .opts = set_opts,
    .opts_size = sizeof(struct folder_set_opts),
    .min_args = 1,
    .max_args = 1,
    .run = folder_set,
};

struct folder_clone_opts {
    bool is_detached;
};

static const struct cli_opt clone_opts[] = {
    { 'd', "detach", CLI_FLAG, offsetof(struct folder_clone_opts, is_detached), NULL,
      "do not wait until all files are there" },
    CLI_OPT_END,
};

static int folder_clone(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    json_auto_t *answer = NULL, *whole = NULL;
    char message[BACKGROUND_MESSAGE_MAX];
    int r = folder_send(cli, METHOD_POST, argv[0], "/clone",
                        json_pack("{s:s}", "target_name", argv[1]), &answer, err);

    (void)argc;
    if (r < 0 || ((const struct folder_clone_opts *)data)->is_detached)
        return r < 0 ? r : record_print(cli, folder_columns, answer, err);
    r = background_task_follow(cli, answer, "bgtask_id", message, err);
    if (r == 0)
        r = folder_call(cli, METHOD_GET, json_string_value(json_object_get(answer, "id")), "", NULL,
                        &whole, err);
    return r < 0 ? r : record_print(cli, folder_columns, whole, err);
}

const struct cli_verb verb_folder_clone = {
    .name = "folder clone",
    .args = "FOLDER NAME",
    .summary = "Make a folder of your own with the same files",
    .details =
        "The folder must be cloneable. The new one has the status 'cloning' until all files\n"
        "are there; if it cannot be made whole it goes away. Ctrl-C ends the waiting, not the\n"
        "cloning.",
    .examples = "aliquot folder clone corpus my-corpus",
    .opts = clone_opts,
    .opts_size = sizeof(struct folder_clone_opts),
    .min_args = 2,
    .max_args = 2,
    .run = folder_clone,
};

/* ---- rm, restore ---- */

struct folder_rm_opts {
    bool purge, yes;
};

static const struct cli_opt rm_opts[] = {
    { 0, "purge", CLI_FLAG, offsetof(struct folder_rm_opts, purge), NULL,
      "remove them for good, from the trash as well" },
    { 'y', "yes", CLI_FLAG, offsetof(struct folder_rm_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static int folder_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct folder_rm_opts *opts = data;
    int r = opts->purge ? cli_confirm(opts->yes, err, "remove %s%s for good, with all files?",
                                      argv[0], argc > 1 ? " and others" : "")
                        : 0;

    return r != 0 ? r
                  : cli_things_call(cli, METHOD_DELETE, &folders, opts->purge ? "/force" : "", NULL,
                                    argc, argv, err);
}

const struct cli_verb verb_folder_rm = {
    .name = "folder rm",
    .args = "FOLDER...",
    .summary = "Put folders into the trash, or remove them for good",
    .details = "What is in the trash keeps its files until it is purged, and can be restored. Of\n"
               "two folders with one name the one that is not in the trash is meant.",
    .examples = "aliquot folder rm data\naliquot folder rm --purge data",
    .opts = rm_opts,
    .opts_size = sizeof(struct folder_rm_opts),
    .min_args = 1,
    .max_args = -1,
    .run = folder_rm,
};

static int folder_restore(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    int r = 0;

    (void)data;
    for (int i = 0; r == 0 && i < argc; i++)
        r = cli_send(cli, METHOD_POST, "/folders/restore-from-trash-bin",
                     json_pack("{s:s}", "id", argv[i]), "an argument is not UTF-8", NULL, err);
    return r;
}

const struct cli_verb verb_folder_restore = {
    .name = "folder restore",
    .args = "FOLDER...",
    .summary = "Take folders out of the trash",
    .examples = "aliquot folder restore data",
    .min_args = 1,
    .max_args = -1,
    .run = folder_restore,
};
