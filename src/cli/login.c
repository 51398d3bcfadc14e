/* SPDX-License-Identifier: Apache-2.0 */
/* login, logout, whoami. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "cli/announcement.h"
#include "cli/client.h"
#include "cli/endpoints.h"
#include "cli/list.h"
#include "cli/request.h"
#include "cli/project.h"
#include "cli/verbs.h"
#include "http/url.h"

/* The keypair of 'aliquot up --dev'. It is public, so it is used on loopback only. */
#define DEV_ACCESS_KEY "AKIAIOSFODNN7EXAMPLE"
#define DEV_SECRET_KEY "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

struct login_opts {
    bool dev, password_stdin;
    const char *access_key;
};

static const struct cli_opt login_opts[] = {
    { 0, "access-key", CLI_STR, offsetof(struct login_opts, access_key), "KEY",
      "log in with a keypair; asks for the secret key" },
    { 0, "password-stdin", CLI_FLAG, offsetof(struct login_opts, password_stdin), NULL,
      "read the password or secret key from standard input" },
    { 0, "dev", CLI_FLAG, offsetof(struct login_opts, dev), NULL,
      "log in with the keypair of 'aliquot up --dev'; loopback only" },
    CLI_OPT_END,
};

static int login_ask_keys(const struct login_opts *opts, const char *prompt, bool is_secret,
                          char line[CLI_LINE_MAX], struct aq_error *err)
{
    if (!isatty(STDIN_FILENO) && !(is_secret && opts->password_stdin))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "there is no terminal to ask for the %s%s",
                            prompt,
                            is_secret ? "; use --password-stdin" : "; give it as an argument");
    return cli_read_line(prompt, is_secret, line, err);
}

/* Failed logins may be somebody else's attempts to guess the password. */
static void login_note_failures(struct cli *cli, const json_t *data)
{
    json_int_t count = json_integer_value(json_object_get(data, "failed_logins"));
    const char *last = json_string_value(json_object_get(data, "last_failed_login"));

    if (count > 0 && last)
        cli_note(cli, "%lld login%s with a wrong password since your last login, the latest at %s",
                 (long long)count, count == 1 ? "" : "s", last);
}

/* Get the keypair of this e-mail address and password from the manager. */
static int login_authorize(struct cli *cli, const struct login_opts *opts, const char *email,
                           json_t **ret, struct aq_error *err)
{
    char password[CLI_LINE_MAX];
    json_t *body, *answer = NULL;
    const json_t *data;
    int r = login_ask_keys(opts, "password", true, password, err);

    if (r < 0)
        return r;
    body = json_pack("{s:s, s:s, s:s, s:s}", "type", "keypair", "domain",
                     cli_config_get(&cli->config, SETTING_DOMAIN), "username", email, "password",
                     password);
    explicit_bzero(password, sizeof(password));
    r = cli_send(cli, METHOD_POST, "/auth/authorize", body, "e-mail and password must be UTF-8",
                 &answer, err);
    data = json_object_get(answer, "data");
    if (r == 0) {
        *ret = json_pack("{s:O?, s:O?}", "access_key", json_object_get(data, "access_key"),
                         "secret_key", json_object_get(data, "secret_key"));
        if (!*ret)
            r = aq_fail(err, EPROTO, "the manager's answer has no keypair");
        else
            login_note_failures(cli, data);
    }
    json_decref(answer);
    return r;
}

static int login_use_keypair(const struct login_opts *opts, const char *access_key, json_t **ret,
                             struct aq_error *err)
{
    char secret[CLI_LINE_MAX];
    int r = login_ask_keys(opts, "secret key", true, secret, err);

    if (r < 0)
        return r;
    *ret = json_pack("{s:s, s:s}", "access_key", access_key, "secret_key", secret);
    explicit_bzero(secret, sizeof(secret));
    return *ret ? 0 : aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the keys must be UTF-8");
}

static int login_use_stock_keypair(const char *endpoint, json_t **ret, struct aq_error *err)
{
    AQ_CLEANUP(endpoints_done) struct endpoints endpoints = { .count = 0 };
    int r = endpoints_read(endpoint, &endpoints, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < endpoints.count; i++)
        if (!address_is_local(&endpoints.items[i].address))
            return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                "--dev requires a manager on loopback, not %s",
                                endpoints.items[i].url);
    *ret = json_pack("{s:s, s:s}", "access_key", DEV_ACCESS_KEY, "secret_key", DEV_SECRET_KEY);
    return 0;
}

/* Sign further requests with these keys. */
static void login_take_keys(struct cli *cli, const json_t *keys)
{
    static const enum cli_setting settings[] = { SETTING_ACCESS_KEY, SETTING_SECRET_KEY };

    for (size_t i = 0; i < AQ_COUNT(settings); i++) {
        const char *value = json_string_value(json_object_get(keys, cli_settings[settings[i]].key));

        free(cli->config.values[settings[i]]);
        cli->config.values[settings[i]] = aq_strdup(value ? value : "");
    }
}

static int login_read_self(struct cli *cli, json_t **ret, struct aq_error *err);

/* A name with '@' is an e-mail address and has a password; any other is an access key. */
static int login_by_name(struct cli *cli, const struct login_opts *opts, const char *name,
                         json_t **ret, struct aq_error *err)
{
    char typed[CLI_LINE_MAX];
    int r = 0;

    if (!name)
        r = login_ask_keys(opts, "e-mail or access key", false, typed, err);
    if (r < 0)
        return r;
    name = name ? name : typed;
    return strchr(name, '@') ? login_authorize(cli, opts, name, ret, err)
                             : login_use_keypair(opts, name, ret, err);
}

/* Each cluster and account has a profile of its own. *ret, to be freed, names the one that has one
 * of the endpoint's addresses and this access key (NULL = any), else a new one, named after the
 * host. It is NULL if the profile in use has the address, or was chosen by the user.
 */
static int login_find_profile(const struct cli *cli, const char *used, const char *access_key,
                              char **ret, struct aq_error *err)
{
    const char *url = cli_config_get(&cli->config, SETTING_ENDPOINT), *key, *found = NULL, *own;
    json_t *profiles = NULL, *settings;
    AQ_CLEANUP(endpoints_done) struct endpoints endpoints = { .count = 0 };
    int r = endpoints_read(url, &endpoints, err);

    if (r == 0 && !cli->config.is_chosen)
        r = cli_profiles_read(&cli->config, &profiles, err);
    if (r < 0 || cli->config.is_chosen)
        return r;
    own = output_text(json_object_get(profiles, used), "endpoint");
    json_object_foreach(profiles, key, settings)
        if (endpoints_overlap(output_text(settings, "endpoint"), url)
            && (!access_key || strcmp(output_text(settings, "access_key"), access_key) == 0))
            found = key;
    if (own[0] && !endpoints_overlap(own, url))
        *ret = found ? aq_strdup(found)
                     : aq_format("%s:%u", endpoints.items[0].address.host,
                                 (unsigned)endpoints.items[0].address.port);
    json_decref(profiles);
    return 0;
}

/* Log in with the settings, such as skip_verify, of a profile of this address, not with those of
 * the profile in use, which may be another cluster's.
 */
static int login_take_settings(struct cli *cli, const char *used, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *name = NULL;
    int r = login_find_profile(cli, used, NULL, &name, err);

    return r == 0 && name ? cli_profile_switch(&cli->config, name, err) : r;
}

/* Save the keys in the profile of this account, not in another account's at the same address. */
static int login_take_account(struct cli *cli, const char *used, const json_t *keys,
                              struct aq_error *err)
{
    char *name = NULL;
    int r = login_find_profile(cli, used, output_text(keys, "access_key"), &name, err);

    if (name) {
        free(cli->config.profile);
        cli->config.profile = name;
    }
    return r;
}

/* If the first argument is a URL, it overrides the configured endpoint. */
static int login_take_url(struct cli *cli, int *argc, char ***argv, struct aq_error *err)
{
    char *url = *argc ? (*argv)[0] : NULL;

    if (!url || strchr(url, '@') || !strpbrk(url, ":/."))
        return *argc > 1 ? aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                                        "unexpected argument '%.60s': aliquot login "
                                        "[URL] [E-MAIL | ACCESS-KEY]",
                                        (*argv)[1])
                         : 0;
    if (!strstr(url, "://"))
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                            "'%.100s' is not a URL; did you mean 'aliquot login https://%.100s'?",
                            url, url);
    free(cli->config.values[SETTING_ENDPOINT]);
    cli->config.values[SETTING_ENDPOINT] = aq_strdup(url);
    cli->config.origins[SETTING_ENDPOINT] = "argument";
    (*argv)++;
    (*argc)--;
    return 0;
}

static int login_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *used = aq_format("%s", cli->config.profile);
    const struct login_opts *opts = data;
    json_t *keys = NULL, *self = NULL;
    const char *endpoint;
    int r = login_take_url(cli, &argc, &argv, err);

    if (r == 0)
        r = login_take_settings(cli, used, err);
    if (r < 0)
        return r;
    endpoint = cli_config_get(&cli->config, SETTING_ENDPOINT);
    if (opts->dev)
        r = login_use_stock_keypair(endpoint, &keys, err);
    else
        r = login_by_name(cli, opts,
                          opts->access_key ? opts->access_key
                          : argc           ? argv[0]
                                           : NULL,
                          &keys, err);
    if (r == 0)
        login_take_keys(cli, keys);
    if (r == 0)
        r = login_read_self(cli, &self, err);
    if (r == 0)
        r = login_take_account(cli, used, keys, err);
    if (r == 0 && json_object_set_new(keys, "endpoint", json_string(endpoint)) < 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the endpoint is not UTF-8");
    if (r == 0)
        r = cli_profile_change(&cli->config, keys, err);
    if (r == 0) {
        cli_note(cli, "Logged in to %s as %s; profile '%s' in %s", endpoint,
                 json_string_value(json_object_get(self, "user_id")), cli->config.profile,
                 cli->config.path);
        announcement_note(cli);
    }
    json_decref(keys);
    json_decref(self);
    return r;
}

const struct cli_verb verb_login = {
    .name = "login",
    .args = "[URL] [E-MAIL | ACCESS-KEY]",
    .summary = "Log in and remember the keypair in a profile",
    .details = "Asks for what is not given: e-mail and password, or access key and secret key,\n"
               "and tries them. URL is the manager's address, or those of several managers of the\n"
               "cluster with commas between them; the profile keeps it. The keypair goes to a\n"
               "file that only you can read; passwords are not kept. Another cluster gets a\n"
               "profile of its own, named after its host or by --profile; 'aliquot profile use'\n"
               "switches between them. A login shows how many logins with a wrong password there\n"
               "were since your last login, and the administrators' announcement.",
    .examples = "aliquot login --dev\n"
                "aliquot login https://cluster.example.com\n"
                "aliquot login https://cluster.example.com me@example.com\n"
                "aliquot login https://m1.example.com,https://m2.example.com\n"
                "aliquot login --access-key AKIA... --password-stdin < secret.txt",
    .opts = login_opts,
    .opts_size = sizeof(struct login_opts),
    .max_args = 2,
    .flags = CLI_LOGS_IN,
    .run = login_run,
};

static int login_logout_run(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    int r;

    (void)data;
    (void)argc;
    (void)argv;
    r = cli_profile_remove(&cli->config, cli->config.profile, err);
    return r == -ENOENT ? 0 : r; /* without a profile there is nothing to remove */
}

const struct cli_verb verb_logout = {
    .name = "logout",
    .args = "",
    .summary = "Forget the keypair of a profile",
    .examples = "aliquot logout",
    .run = login_logout_run,
};

/* ---- whoami ---- */

static const struct column self_columns[] = {
    { "user_id", "USER", COLUMN_TEXT, COLUMN_IS_NAME },
    { "role", "ROLE", COLUMN_TEXT, 0 },
    { "access_key", "ACCESS-KEY", COLUMN_TEXT, 0 },
    { "is_admin", "ADMIN", COLUMN_BOOL, 0 },
    { "resource_policy", "POLICY", COLUMN_TEXT, 0 },
    { "domain", "DOMAIN", COLUMN_TEXT, 0 },
    { "group", "PROJECT", COLUMN_TEXT, 0 },
    { "projects", "PROJECTS", COLUMN_NAMES, 0 },
    { "endpoint", "ENDPOINT", COLUMN_TEXT, 0 },
    { "profile", "PROFILE", COLUMN_TEXT, 0 },
    COLUMN_END,
};

/* Read the caller's keypair and role, with the user in the member "user". */
static int login_read_self(struct cli *cli, json_t **ret, struct aq_error *err)
{
    json_t *body, *answer = NULL, *role = NULL, *keypair;
    int r;

    if (!cli_config_get(&cli->config, SETTING_ACCESS_KEY))
        return aq_fail_kind(err, EACCES, "auth-failed", "you are not logged in");
    body = json_pack("{s:s}", "query",
                     "query { keypair { user_id access_key is_admin resource_policy } "
                     "user { " PROJECT_USER_FIELDS " } }");
    r = cli_call(cli, METHOD_POST, "/admin/gql", body, &answer, err);
    if (r == 0)
        r = cli_call(cli, METHOD_GET, "/auth/role", NULL, &role, err);
    keypair = json_object_get(json_object_get(answer, "data"), "keypair");
    if (r == 0 && !json_is_object(keypair))
        r = aq_fail(err, EPROTO, "the answer of the manager has no keypair");
    if (r == 0) {
        const char *global = json_string_value(json_object_get(role, "global_role"));
        const char *domain = json_string_value(json_object_get(role, "domain_role"));

        if (global && domain && strcmp(global, "user") == 0)
            global = domain;
        (void)json_object_set_new(keypair, "role", json_string(global));
        (void)json_object_set(keypair, "user",
                              json_object_get(json_object_get(answer, "data"), "user"));
        *ret = json_incref(keypair);
    }
    json_decref(body);
    json_decref(answer);
    json_decref(role);
    return r;
}

/* Add the user's domain and projects, and the project of sessions that do not name one. */
static void login_add_projects(struct cli *cli, json_t *self)
{
    const json_t *user = json_object_get(self, "user"), *group;
    const char *domain = cli_config_get_chosen(&cli->config, SETTING_DOMAIN);
    const char *project = project_choose(cli, user);
    json_t *names = json_array();
    size_t i;

    if (!domain)
        domain = json_string_value(json_object_get(user, "domain_name"));
    json_array_foreach(json_object_get(user, "groups"), i, group)
        (void)json_array_append(names, json_object_get(group, "name"));
    (void)json_object_set_new(
        self, "domain",
        json_string(domain ? domain : cli_config_get(&cli->config, SETTING_DOMAIN)));
    (void)json_object_set_new(self, "group", project ? json_string(project) : json_null());
    (void)json_object_set_new(self, "projects", names);
    (void)json_object_del(self, "user");
}

/* Creating a session fails if its project is not usable: name the remedy here already. */
static void login_note_project(const struct cli *cli, const json_t *self, bool is_usable)
{
    const char *project = json_string_value(json_object_get(self, "group"));

    if (!is_usable && project)
        cli_note(cli,
                 "you are not in project '%s', so no session can start in it; choose one of yours: "
                 "aliquot config set group PROJECT",
                 project);
    else if (json_array_size(json_object_get(self, "projects")) == 0 && !is_usable)
        cli_note(cli,
                 "you are in no project, so no session can start; ask an administrator to "
                 "run: aliquot admin project add-user PROJECT %s",
                 json_string_value(json_object_get(self, "user_id")));
    else if (!project)
        cli_note(cli,
                 "you are in several projects; name one for each session (--group PROJECT), or "
                 "once: aliquot config set group PROJECT");
}

static int login_whoami_run(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    const char *project;
    bool is_usable;
    json_t *self = NULL;
    int r = login_read_self(cli, &self, err);

    (void)data;
    (void)argc;
    (void)argv;
    if (r < 0)
        return r;
    project = project_choose(cli, json_object_get(self, "user"));
    is_usable = project && project_is_usable(json_object_get(self, "user"), project);
    login_add_projects(cli, self);
    (void)json_object_set_new(self, "endpoint",
                              json_string(cli_config_get(&cli->config, SETTING_ENDPOINT)));
    (void)json_object_set_new(self, "profile", json_string(cli->config.profile));
    r = record_print(cli, self_columns, self, err);
    if (r == 0 && output_is_human(&cli->output))
        login_note_project(cli, self, is_usable);
    json_decref(self);
    return r;
}

const struct cli_verb verb_whoami = {
    .name = "whoami",
    .args = "",
    .summary = "Show who you are and where",
    .examples = "aliquot whoami\naliquot whoami -o json",
    .run = login_whoami_run,
};
