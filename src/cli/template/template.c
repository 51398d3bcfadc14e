/* SPDX-License-Identifier: Apache-2.0 */
/* "template": texts that say what sessions are like, kept under a name. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

#define TEMPLATES "/aliquot/v1/templates"
#define TEXT_MAX (64u << 10) /* bytes: the manager takes no more */

static const struct column template_columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "kind", "KIND", COLUMN_TEXT, 0 },
    { "is_owner", "MINE", COLUMN_BOOL, 0 },
    { "user_email", "USER", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "group_name", "PROJECT", COLUMN_TEXT, COLUMN_MAY_SHRINK },
    { "domain_name", "DOMAIN", COLUMN_TEXT, COLUMN_IS_WIDE },
    { "modified_at", "AGE", COLUMN_TIME, 0 },
    { "created_at", "CREATED", COLUMN_TIME, COLUMN_IS_EXTRA },
    { "id", "ID", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

static const struct cli_things templates = { TEMPLATES "/", NULL };

/* ---- ls ---- */

struct template_ls_opts {
    struct list_opts list;
    bool everyone;
};

static const struct cli_opt ls_opts[] = {
    { 'A', "everyone", CLI_FLAG, offsetof(struct template_ls_opts, everyone), NULL,
      "those of all users (administrators)" },
    LIST_OPT_ROWS(struct template_ls_opts),
    CLI_OPT_END,
};

static int template_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct template_ls_opts *opts = data;

    (void)argc;
    (void)argv;
    return list_show(cli, opts->everyone ? TEMPLATES "?all=true" : TEMPLATES, &opts->list,
                     template_columns, err);
}

const struct cli_verb verb_template_ls = {
    .name = "template ls",
    .args = "",
    .summary = "List templates that you may use",
    .details = "Your own, and those that others share with your projects.",
    .examples = "aliquot template ls",
    .if_empty = "you have no templates; to keep one: aliquot template create FILE",
    .opts = ls_opts,
    .opts_size = sizeof(struct template_ls_opts),
    .run = template_ls,
};

/* ---- create, show ---- */

struct template_create_opts {
    const char *project;
};

static const struct cli_opt create_opts[] = {
    { 0, "project", CLI_STR, offsetof(struct template_create_opts, project), "PROJECT",
      "its members may use it, too", "group_name" },
    CLI_OPT_END,
};

static int template_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT, line = STRBUF_INIT;
    json_auto_t *body = NULL;
    json_auto_t *answer = NULL;
    int r = cli_read_file(argv[0], TEXT_MAX, &text, err);

    (void)argc;
    if (r < 0)
        return r;
    body = json_pack("{s:s, s:s*}", "payload", text.data, "owner_access_key", cli->globals.owner);
    r = body ? cli_options_add(create_opts, data, body, err)
             : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%s' is not UTF-8", argv[0]);
    if (r == 0)
        r = cli_call_once(cli, TEMPLATES, body, &answer, err);
    if (r < 0)
        return r;
    strbuf_addf(&line, "%s\n", json_string_value(json_object_get(answer, "id")));
    return cli_print(&line, err);
}

const struct cli_verb verb_template_create = {
    .name = "template create",
    .args = "FILE",
    .summary = "Keep a template of sessions or clusters, and print its id",
    .details = "FILE, or standard input with '-', is YAML or JSON. It says its name itself, under\n"
               "metadata. A cluster's template names those of its roles.",
    .examples = "aliquot template create training.yaml\n"
                "aliquot template create --project vision training.yaml\n"
                "aliquot run --template training -r cuda.shares=0.5",
    .opts = create_opts,
    .opts_size = sizeof(struct template_create_opts),
    .min_args = 1,
    .max_args = 1,
    .run = template_create,
};

/* The text as it was given, whatever the form of the output. */
static int template_read(struct cli *cli, const char *name, struct strbuf *out,
                         struct aq_error *err)
{
    json_auto_t *answer = NULL;
    int r = cli_thing_call(cli, METHOD_GET, &templates, name, "", NULL, &answer, err);
    const char *text = json_string_value(json_object_get(answer, "text"));

    if (r < 0)
        return r;
    if (!text)
        return aq_fail(err, EPROTO, "the manager's answer has no text");
    strbuf_adds(out, text);
    return 0;
}

static int template_show(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    int r = template_read(cli, argv[0], &text, err);

    (void)data;
    (void)argc;
    return r < 0 ? r : cli_print(&text, err);
}

const struct cli_verb verb_template_show = {
    .name = "template show",
    .args = "TEMPLATE",
    .summary = "Show the text of a template, as it was given",
    .examples = "aliquot template show training >training.yaml",
    .min_args = 1,
    .max_args = 1,
    .run = template_show,
};

/* ---- edit ---- */

/* Wait for the editor of the user, who has the terminal. */
static int template_run_editor(const char *path, struct aq_error *err)
{
    const char *editor = getenv("VISUAL");
    int status = 0;
    pid_t pid;

    if (!editor || !*editor)
        editor = getenv("EDITOR");
    if (!editor || !*editor)
        editor = "vi";
    if ((pid = fork()) < 0)
        return aq_fail_errno(err, "start %s", editor);
    if (pid == 0) {
        AQ_CLEANUP(aq_freep) char *command = aq_format("exec %s \"$1\"", editor);

        if (command)
            (void)execl("/bin/sh", "sh", "-c", command, "sh", path, (char *)NULL);
        _exit(127);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0
               ? 0
               : aq_fail(err, ECHILD, "%s ended with an error; the template is as it was", editor);
}

/* The text as the user leaves it; the same = nothing is to be done. */
static int template_edit_text(struct strbuf *text, bool *ret_changed, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf edited = STRBUF_INIT;
    char path[] = "/tmp/aliquot-template-XXXXXX.yaml";
    AQ_CLEANUP(aq_closep) int fd = mkstemps(path, 5);
    int r = 0;

    if (fd < 0)
        return aq_fail_errno(err, "make '%s'", path);
    if (write(fd, text->data, text->len) != (ssize_t)text->len)
        r = aq_fail_errno(err, "write '%s'", path);
    if (r == 0)
        r = template_run_editor(path, err);
    if (r == 0)
        r = fs_read(AT_FDCWD, path, TEXT_MAX, &edited, err);
    (void)unlink(path);
    if (r < 0)
        return r;
    *ret_changed = edited.len != text->len || memcmp(edited.data, text->data, text->len) != 0;
    strbuf_clear(text);
    strbuf_add(text, edited.data, edited.len);
    return 0;
}

static int template_edit(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    bool is_changed = true;
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r = argc > 1 ? cli_read_file(argv[1], TEXT_MAX, &text, err)
                     : template_read(cli, argv[0], &text, err);

    (void)data;
    if (r == 0 && argc == 1)
        r = template_edit_text(&text, &is_changed, err);
    if (r < 0 || !is_changed)
        return r;
    cli_thing_path(&templates, argv[0], "", &path);
    return cli_send(cli, METHOD_PUT, path.data, json_pack("{s:s}", "payload", text.data),
                    "the template is not UTF-8", NULL, err);
}

const struct cli_verb verb_template_edit = {
    .name = "template edit",
    .args = "TEMPLATE [FILE]",
    .summary = "Replace the text of a template",
    .details =
        "By FILE, or standard input with '-'. Without FILE the editor that VISUAL or EDITOR\n"
        "names has the text.",
    .examples = "aliquot template edit training\n"
                "aliquot template edit training training.yaml",
    .min_args = 1,
    .max_args = 2,
    .run = template_edit,
};

/* ---- rm ---- */

static int template_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return cli_things_call(cli, METHOD_DELETE, &templates, "", NULL, argc, argv, err);
}

const struct cli_verb verb_template_rm = {
    .name = "template rm",
    .args = "TEMPLATE...",
    .summary = "Remove templates",
    .details = "Sessions that were made from them stay as they are.",
    .examples = "aliquot template rm training",
    .min_args = 1,
    .max_args = -1,
    .run = template_rm,
};
