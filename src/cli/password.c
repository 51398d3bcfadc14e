/* SPDX-License-Identifier: Apache-2.0 */
/* password: a new one for yours. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/request.h"
#include "cli/verbs.h"

struct password_opts {
    bool password_stdin;
};

static const struct cli_opt password_opts[] = {
    { 0, "password-stdin", CLI_FLAG, offsetof(struct password_opts, password_stdin), NULL,
      "read two lines from standard input: the old password, the new one" },
    CLI_OPT_END,
};

struct password_lines {
    char old[CLI_LINE_MAX], given[CLI_LINE_MAX], again[CLI_LINE_MAX];
};

static int password_ask(const struct password_opts *opts, struct password_lines *ret,
                        struct aq_error *err)
{
    int r;

    if (!isatty(STDIN_FILENO) && !opts->password_stdin)
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "there is no terminal to ask for passwords; use --password-stdin");
    if ((r = cli_read_line("old password", true, ret->old, err)) < 0
        || (r = cli_read_line("new password", true, ret->given, err)) < 0)
        return r;
    if (opts->password_stdin)
        memcpy(ret->again, ret->given, sizeof(ret->again));
    else
        r = cli_read_line("new password again", true, ret->again, err);
    return r;
}

/* With 'email' for one that has expired: no keypair signs it. */
static int password_send(struct cli *cli, const char *email, const struct password_lines *lines,
                         struct aq_error *err)
{
    json_t *body = email
                       ? json_pack("{s:s, s:s, s:s, s:s}", "domain",
                                   cli_config_get(&cli->config, SETTING_DOMAIN), "username", email,
                                   "current_password", lines->old, "new_password", lines->given)
                       : json_pack("{s:s, s:s, s:s}", "old_password", lines->old, "new_password",
                                   lines->given, "new_password2", lines->again);

    return cli_send(cli, METHOD_POST,
                    email ? "/auth/update-password-no-auth" : "/auth/update-password", body,
                    "passwords must be UTF-8", NULL, err);
}

static int password_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    struct password_lines lines;
    int r = password_ask(data, &lines, err);

    if (r == 0 && strcmp(lines.given, lines.again) != 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the new passwords are not the same");
    if (r == 0)
        r = password_send(cli, argc ? argv[0] : NULL, &lines, err);
    explicit_bzero(&lines, sizeof(lines));
    if (r == 0)
        cli_note(cli, "Changed the password");
    return r;
}

const struct cli_verb verb_password = {
    .name = "password",
    .args = "[E-MAIL]",
    .summary = "Change your password",
    .details = "Asks for the old password and twice for the new one. With an e-mail address it\n"
               "changes a password that has expired or must be changed, of who is not logged in.",
    .examples = "aliquot password\n"
                "aliquot password me@example.com",
    .opts = password_opts,
    .opts_size = sizeof(struct password_opts),
    .max_args = 1,
    .flags = CLI_LOGS_IN,
    .run = password_run,
};
