/* SPDX-License-Identifier: Apache-2.0 */
/* admin registry: what container registries are logged in with. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/list.h"
#include "cli/request.h"
#include "cli/verbs.h"

static const struct column registry_columns[] = {
    { "name", "REGISTRY", COLUMN_TEXT, COLUMN_IS_NAME },
    { "username", "USER", COLUMN_TEXT, 0 },
    { "has_password", "PASSWORD", COLUMN_BOOL, 0 },
    { "url", "URL", COLUMN_TEXT, COLUMN_IS_WIDE },
    COLUMN_END,
};

static const struct cli_things registries = { "/aliquot/v1/registries/", NULL };

static int registry_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    (void)argc;
    (void)argv;
    return list_show_whole(cli, "/aliquot/v1/registries", "items", registry_columns, err);
}

const struct cli_verb verb_admin_registry_ls = {
    .name = "admin registry ls",
    .args = "",
    .summary = "List the container registries that agents log in to",
    .examples = "aliquot admin registry ls",
    .run = registry_ls,
};

/* ---- log in ---- */

struct registry_opts {
    const char *username;
    bool password_stdin;
};

static const struct cli_opt registry_opts[] = {
    { 'u', "username", CLI_STR, offsetof(struct registry_opts, username), "NAME",
      "the user there; asked for otherwise" },
    { 0, "password-stdin", CLI_FLAG, offsetof(struct registry_opts, password_stdin), NULL,
      "read the password, or an access token, from standard input" },
    CLI_OPT_END,
};

struct registry_lines {
    char username[CLI_LINE_MAX], password[CLI_LINE_MAX];
};

static int registry_ask(const struct registry_opts *opts, struct registry_lines *ret,
                        struct aq_error *err)
{
    int r = 0;

    if (!isatty(STDIN_FILENO) && !opts->password_stdin)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "there is no terminal to ask for a password; use --password-stdin");
    if (opts->password_stdin && !opts->username)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--password-stdin needs --username");
    if (opts->username && strlen(opts->username) >= sizeof(ret->username))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "--username is too long");
    if (opts->username)
        memcpy(ret->username, opts->username, strlen(opts->username) + 1);
    else
        r = cli_read_line("user name", false, ret->username, err);
    return r < 0 ? r : cli_read_line("password", true, ret->password, err);
}

static int registry_send(struct cli *cli, const char *name, const struct registry_lines *lines,
                         struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    cli_thing_path(&registries, name, "", &path);
    return cli_send(
        cli, METHOD_PUT, path.data,
        json_pack("{s:s, s:s}", "username", lines->username, "password", lines->password),
        "names and passwords are UTF-8", NULL, err);
}

static int registry_login(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct registry_lines lines = { "", "" };
    int r = registry_ask(data, &lines, err);

    (void)argc;
    if (r == 0)
        r = registry_send(cli, argv[0], &lines, err);
    explicit_bzero(&lines, sizeof(lines));
    if (r == 0)
        cli_note(cli, "Agents log in to %s as of now", argv[0]);
    return r;
}

const struct cli_verb verb_admin_registry_login = {
    .name = "admin registry login",
    .args = "REGISTRY",
    .summary = "Keep a login of a container registry, with which agents fetch images",
    .details = "REGISTRY is HOST[:PORT] as in the names of its images; docker.io is Docker's own.\n"
               "Everybody's sessions may then use what the login may read. The password is kept\n"
               "sealed and never shown; a login that there is already is replaced. A node whose\n"
               "agent.toml has [image] auth-file uses that file instead.",
    .examples = "aliquot admin registry login registry.example:5000\n"
                "aliquot admin registry login -u robot --password-stdin ghcr.io < token",
    .opts = registry_opts,
    .opts_size = sizeof(struct registry_opts),
    .min_args = 1,
    .max_args = 1,
    .run = registry_login,
};

/* ---- log out ---- */

static int registry_logout(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return cli_things_call(cli, METHOD_DELETE, &registries, "", NULL, argc, argv, err);
}

const struct cli_verb verb_admin_registry_logout = {
    .name = "admin registry logout",
    .args = "REGISTRY...",
    .summary = "Forget the logins of container registries",
    .details = "Images that agents have already stay usable.",
    .examples = "aliquot admin registry logout registry.example:5000",
    .min_args = 1,
    .max_args = -1,
    .run = registry_logout,
};
