/* SPDX-License-Identifier: Apache-2.0 */
/* "signup": an account for who has none. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/request.h"
#include "cli/verbs.h"

struct signup_opts {
    const char *username, *full_name, *description, *token;
    bool password_stdin;
};

static const struct cli_opt signup_opts[] = {
    { 0, "username", CLI_STR, offsetof(struct signup_opts, username), "NAME",
      "default: the e-mail address", "username" },
    { 0, "full-name", CLI_STR, offsetof(struct signup_opts, full_name), "NAME", "shown in lists",
      "full_name" },
    { 0, "description", CLI_STR, offsetof(struct signup_opts, description), "TEXT",
      "for who decides whether you may", "description" },
    { 0, "token", CLI_STR, offsetof(struct signup_opts, token), "TOKEN", "of an invitation",
      "token" },
    { 0, "password-stdin", CLI_FLAG, offsetof(struct signup_opts, password_stdin), NULL,
      "read the password from standard input" },
    CLI_OPT_END,
};

/* Twice where it is typed. */
static int signup_ask_password(const struct signup_opts *opts, char ret[CLI_LINE_MAX],
                               struct aq_error *err)
{
    char again[CLI_LINE_MAX];
    int r;

    if (!isatty(STDIN_FILENO) && !opts->password_stdin)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "there is no terminal to ask for a password; use --password-stdin");
    r = cli_read_line("password", true, ret, err);
    if (r < 0 || opts->password_stdin)
        return r;
    if ((r = cli_read_line("password again", true, again, err)) == 0 && strcmp(ret, again) != 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the passwords are not the same");
    explicit_bzero(again, sizeof(again));
    return r;
}

static int signup_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct signup_opts *opts = data;
    char password[CLI_LINE_MAX];
    json_t *body, *answer = NULL;
    int r = signup_ask_password(opts, password, err);

    (void)argc;
    if (r < 0)
        return r;
    body = json_pack("{s:s, s:s, s:s}", "domain", cli_config_get(&cli->config, SETTING_DOMAIN),
                     "email", argv[0], "password", password);
    explicit_bzero(password, sizeof(password));
    r = body ? cli_options_add(signup_opts, opts, body, err)
             : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "what is given must be UTF-8");
    if (r == 0)
        r = cli_call(cli, METHOD_POST, "/auth/signup", body, &answer, err);
    if (r == 0)
        cli_note(cli, "Made an account for %s; log in: aliquot login %s %s", argv[0],
                 cli_config_get(&cli->config, SETTING_ENDPOINT), argv[0]);
    json_decref(body);
    json_decref(answer);
    return r;
}

const struct cli_verb verb_signup = {
    .name = "signup",
    .args = "E-MAIL",
    .summary = "Make an account for yourself, where the manager lets you",
    .details = "Asks twice for a password. --endpoint names the manager, or the profile does. An\n"
               "administrator may have to verify the account before you can log in.",
    .examples = "aliquot signup me@example.com --endpoint https://cluster.example.com",
    .opts = signup_opts,
    .opts_size = sizeof(struct signup_opts),
    .min_args = 1,
    .max_args = 1,
    .flags = CLI_LOGS_IN,
    .run = signup_run,
};
