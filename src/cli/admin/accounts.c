/* SPDX-License-Identifier: Apache-2.0 */
/* Users, keypairs, domains, projects, resource groups, policies. */
#include "cli/admin/accounts.h"

#include <errno.h>
#include <string.h>

#include "base/memory.h"
#include "base/uuid.h"
#include "cli/account_tables.h"
#include "cli/client.h"
#include "cli/verbs.h"

/* ---- the nouns ---- */

static const struct noun nouns[] = {
    { "admin user ", "user", "/aliquot/v1/users", "email", account_user_table.columns, true,
      false },
    { "admin keypair ", "keypair", "/aliquot/v1/keypairs", "user", account_keypair_table.columns,
      false, false },
    { "admin domain ", "domain", "/aliquot/v1/domains", "name", account_domain_table.columns, false,
      false },
    { "admin project ", "project", "/aliquot/v1/groups", "name", account_project_table.columns,
      true, true },
    { "admin resource-group ", "resource group", "/aliquot/v1/resource-groups", "name",
      account_resource_group_table.columns, false, false },
    { "admin policy ", "policy", "/aliquot/v1/keypair-policies", "name",
      account_policy_table.columns, false, false },
};

const struct noun *accounts_noun_of(const struct cli *cli)
{
    for (size_t i = 0; i < AQ_COUNT(nouns); i++)
        if (strncmp(cli->verb->name, nouns[i].prefix, strlen(nouns[i].prefix)) == 0)
            return &nouns[i];
    return NULL; /* not reached: every command below has a noun */
}

static int accounts_find_project(struct cli *cli, const char *name, char **ret_id,
                                 struct aq_error *err)
{
    json_t *rows = NULL, *row;
    const char *found = NULL;
    size_t i, hits = 0;
    int r = cli_call_list(cli, "/aliquot/v1/groups?all=true", CLI_PAGE, 0, &rows, NULL, err);

    json_array_foreach(rows, i, row) {
        const char *own = json_string_value(json_object_get(row, "name"));

        if (own && strcmp(own, name) == 0) {
            found = json_string_value(json_object_get(row, "id"));
            hits++;
        }
    }
    if (r == 0 && hits > 1)
        r = aq_fail(err, EINVAL, "several domains have a project '%s'; give its id", name);
    else if (r == 0 && !found)
        r = aq_fail(err, ENOENT, "there is no project '%s'", name);
    else if (r == 0)
        *ret_id = aq_strdup(found);
    json_decref(rows);
    return r;
}

int accounts_path(struct cli *cli, const char *key, const char *rest, struct strbuf *path,
                  struct aq_error *err)
{
    const struct noun *noun = accounts_noun_of(cli);
    AQ_CLEANUP(aq_freep) char *id = NULL;
    struct uuid uuid;
    int r;

    if (!key[0])
        return aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the name of the %s is empty",
                            noun->singular);
    if (noun->has_id && uuid_parse(key, &uuid) < 0
        && (r = accounts_find_project(cli, key, &id, err)) < 0)
        return r;
    strbuf_addf(path, "%s/", noun->path);
    url_encode(path, id ? id : key);
    strbuf_adds(path, rest);
    return 0;
}

int accounts_call_each(struct cli *cli, enum method method, const char *rest, int argc, char **argv,
                       struct aq_error *err)
{
    int r = 0;

    for (int i = 0; r == 0 && i < argc; i++) {
        AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

        r = accounts_path(cli, argv[i], rest, &path, err);
        if (r == 0)
            r = cli_call(cli, method, path.data, NULL, NULL, err);
    }
    return r;
}

/* ---- what can be done with each ---- */

struct accounts_ls_opts {
    struct list_opts list;
    bool all;
};

static const struct cli_opt keypair_ls_opts[] = { LIST_OPT_ROWS(struct accounts_ls_opts),
                                                  CLI_OPT_END };
static const struct cli_opt ls_opts[] = {
    { 'a', "all", CLI_FLAG, offsetof(struct accounts_ls_opts, all), NULL, "removed ones, too" },
    LIST_OPT_ROWS(struct accounts_ls_opts),
    CLI_OPT_END,
};

static int accounts_ls(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct noun *noun = accounts_noun_of(cli);
    const struct accounts_ls_opts *opts = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;

    (void)argc;
    (void)argv;
    strbuf_adds(&path, noun->path);
    cli_path_query(&path, "all", opts->all ? "true" : NULL);
    return list_show(cli, path.data, &opts->list, noun->columns, err);
}

/* The row whose name the argument is. */
static int accounts_info(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct noun *noun = accounts_noun_of(cli);
    json_t *rows = NULL, *row;
    size_t i;
    int r;

    (void)data;
    (void)argc;
    r = cli_call_list(cli, "/aliquot/v1/resource-groups?all=true", CLI_PAGE, 0, &rows, NULL, err);
    if (r < 0)
        return r;
    r = aq_fail(err, ENOENT, "there is no resource group '%s'", argv[0]);
    json_array_foreach(rows, i, row) {
        const char *name = json_string_value(json_object_get(row, noun->key));

        if (name && strcmp(name, argv[0]) == 0)
            r = record_print(cli, noun->columns, row, err);
    }
    json_decref(rows);
    return r;
}

/* A new user's or a changed password; 'wanted' is the flag --password-stdin. */
static int accounts_add_password(bool wanted, json_t *body, struct aq_error *err)
{
    char password[CLI_LINE_MAX];
    int r = wanted ? cli_read_line("password", true, password, err) : 0;

    if (r == 0 && wanted && json_object_set_new(body, "password", json_string(password)) < 0)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "the password must be UTF-8");
    explicit_bzero(password, sizeof(password));
    return r;
}

static bool accounts_flag_is_set(const struct cli_opt *opts, const void *target, const char *name)
{
    const struct cli_opt *opt = cli_opt_find(opts, name, strlen(name));

    return opt && *(const bool *)((const char *)target + opt->offset);
}

/* Say what a new user lacks: a password to log in with, a project to run sessions in. */
static void accounts_note_missing(const struct cli *cli, const json_t *row, bool has_password)
{
    const json_t *projects = json_object_get(row, "projects");
    const char *email = json_string_value(json_object_get(row, "email"));

    if (email && json_is_array(projects) && !has_password)
        cli_note(cli,
                 "%s has no password and cannot log in; set one: "
                 "aliquot admin user set %s --password-stdin",
                 email, email);
    if (email && json_is_array(projects) && json_array_size(projects) == 0)
        cli_note(cli,
                 "%s is in no project and cannot create sessions; add one: "
                 "aliquot admin project add-user PROJECT %s",
                 email, email);
}

/* Send the options of the command and show the row that comes back. */
static int accounts_save(struct cli *cli, void *data, enum method method, const char *path,
                         const char *key, struct aq_error *err)
{
    const struct noun *noun = accounts_noun_of(cli);
    json_t *body = NULL, *row = NULL;
    int r = accounts_request_body(cli->verb->opts, data, &body, err);

    if (r == 0)
        r = accounts_add_password(accounts_flag_is_set(cli->verb->opts, data, "password-stdin"),
                                  body, err);
    if (r == 0 && key)
        (void)json_object_set_new(body, noun->key, json_string(key));
    if (r == 0 && key && noun->has_domain && !json_object_get(body, "domain"))
        (void)json_object_set_new(body, "domain",
                                  json_string(cli_config_get(&cli->config, SETTING_DOMAIN)));
    if (r == 0)
        r = cli_call(cli, method, path, body, &row, err);
    if (r == 0)
        r = record_print(cli, noun->columns, row, err);
    if (r == 0 && key)
        accounts_note_missing(cli, row, json_object_get(body, "password") != NULL);
    json_decref(body);
    json_decref(row);
    return r;
}

static int accounts_create(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)argc;
    return accounts_save(cli, data, METHOD_POST, accounts_noun_of(cli)->path, argv[0], err);
}

static int accounts_set(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    int r = accounts_path(cli, argv[0], "", &path, err);

    (void)argc;
    return r < 0 ? r : accounts_save(cli, data, METHOD_PATCH, path.data, NULL, err);
}

#define ACCOUNT_VERB(noun, word, arg, text, options, size, arguments, function, example) \
    const struct cli_verb verb_admin_##noun##_##function = {                             \
        .name = "admin " word,                                                           \
        .args = arg,                                                                     \
        .summary = text,                                                                 \
        .examples = example,                                                             \
        .opts = options,                                                                 \
        .opts_size = size,                                                               \
        .min_args = arguments,                                                           \
        .max_args = arguments,                                                           \
        .run = accounts_##function,                                                      \
    }

#define LS_VERB(noun, word, text, options)                                           \
    const struct cli_verb verb_admin_##noun##_ls = {                                 \
        .name = "admin " word " ls",                                                 \
        .args = "",                                                                  \
        .summary = text,                                                             \
        .examples = "aliquot admin " word " ls -o wide",                             \
        .if_empty = "there is none; make one: aliquot admin " word " create --help", \
        .opts = options,                                                             \
        .opts_size = sizeof(struct accounts_ls_opts),                                \
        .run = accounts_ls,                                                          \
    }

/* ---- users ---- */

LS_VERB(user, "user", "List users", ls_opts);
ACCOUNT_VERB(user, "user create", "E-MAIL", "Make a user, with a keypair",
             account_user_table.create, sizeof(struct account_options), 1, create,
             "aliquot admin user create ann@example.com --password-stdin");
ACCOUNT_VERB(user, "user set", "E-MAIL", "Change a user", account_user_table.set,
             sizeof(struct account_options), 1, set,
             "aliquot admin user set ann@example.com --total-slots cpu=16,mem=64g");

/* ---- keypairs ---- */

static int accounts_rm(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)data;
    return accounts_call_each(cli, METHOD_DELETE, "", argc, argv, err);
}

LS_VERB(keypair, "keypair", "List keypairs", keypair_ls_opts);
ACCOUNT_VERB(keypair, "keypair create", "E-MAIL",
             "Make a keypair for a user; shows its secret once", account_keypair_table.create,
             sizeof(struct account_options), 1, create,
             "aliquot admin keypair create ann@example.com -o json");
ACCOUNT_VERB(keypair, "keypair set", "ACCESS-KEY", "Change a keypair", account_keypair_table.set,
             sizeof(struct account_options), 1, set,
             "aliquot admin keypair set AKIANABBDUSEREXAMPLE --is-active no");
ACCOUNT_VERB(keypair, "keypair rm", "ACCESS-KEY", "Remove a keypair", NULL, 0, 1, rm,
             "aliquot admin keypair rm AKIANABBDUSEREXAMPLE");

/* ---- domains and projects ---- */

LS_VERB(domain, "domain", "List domains", ls_opts);
ACCOUNT_VERB(domain, "domain create", "NAME", "Make a domain", account_domain_table.create,
             sizeof(struct account_options), 1, create, "aliquot admin domain create physics");
ACCOUNT_VERB(domain, "domain set", "DOMAIN", "Change a domain", account_domain_table.set,
             sizeof(struct account_options), 1, set,
             "aliquot admin domain set physics --total-slots cpu=64,mem=256g");
LS_VERB(project, "project", "List projects", ls_opts);
ACCOUNT_VERB(project, "project create", "NAME", "Make a project", account_project_table.create,
             sizeof(struct account_options), 1, create,
             "aliquot admin project create lasers --domain physics");
ACCOUNT_VERB(project, "project set", "PROJECT", "Change a project", account_project_table.set,
             sizeof(struct account_options), 1, set,
             "aliquot admin project set lasers --total-slots cpu=16");

/* ---- resource groups ---- */

struct allow_opts {
    const char *domain, *group, *access_key;
};

static const struct cli_opt allow_opts[] = {
    { 0, "domain", CLI_STR, offsetof(struct allow_opts, domain), "DOMAIN", "everybody in it" },
    { 0, "group", CLI_STR, offsetof(struct allow_opts, group), "PROJECT", "its sessions" },
    { 0, "access-key", CLI_STR, offsetof(struct allow_opts, access_key), "ACCESS-KEY",
      "sessions of this keypair" },
    CLI_OPT_END,
};

/* The manager takes a project's id only: names are unique only within a domain. */
static int accounts_set_project(struct cli *cli, const char *project, json_t *body,
                                struct aq_error *err)
{
    AQ_CLEANUP(aq_freep) char *id = NULL;
    struct uuid uuid;
    int r;

    if (!project || uuid_parse(project, &uuid) == 0)
        return 0;
    if ((r = accounts_find_project(cli, project, &id, err)) == 0)
        (void)json_object_set_new(body, "group", json_string(id));
    return r;
}

static int accounts_change_access(struct cli *cli, const void *opts, const char *name,
                                  const char *what, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *body = NULL;
    int r = accounts_request_body(allow_opts, opts, &body, err);

    if (r == 0 && json_object_size(body) != 1)
        r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE,
                         "give one of --domain, --group and --access-key");
    if (r == 0)
        r = accounts_set_project(cli, ((const struct allow_opts *)opts)->group, body, err);
    if (r == 0)
        r = accounts_path(cli, name, what, &path, err);
    if (r == 0)
        r = cli_call(cli, METHOD_POST, path.data, body, NULL, err);
    json_decref(body);
    return r;
}

static int accounts_allow(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    (void)argc;
    return accounts_change_access(cli, data, argv[0], "/allow", err);
}

static int accounts_disallow(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    (void)argc;
    return accounts_change_access(cli, data, argv[0], "/disallow", err);
}

LS_VERB(resource_group, "resource-group", "List resource groups", ls_opts);
ACCOUNT_VERB(resource_group, "resource-group info", "RESOURCE-GROUP",
             "Show how a resource group schedules", NULL, 0, 1, info,
             "aliquot admin resource-group info default");
ACCOUNT_VERB(resource_group, "resource-group create", "NAME", "Make a resource group",
             account_resource_group_table.create, sizeof(struct account_options), 1, create,
             "aliquot admin resource-group create night --agent-loss-policy requeue");
ACCOUNT_VERB(resource_group, "resource-group set", "RESOURCE-GROUP", "Change a resource group",
             account_resource_group_table.set, sizeof(struct account_options), 1, set,
             "aliquot admin resource-group set default --selection dispersed");
ACCOUNT_VERB(resource_group, "resource-group allow", "RESOURCE-GROUP",
             "Let a domain, project or keypair use a resource group", allow_opts,
             sizeof(struct allow_opts), 1, allow,
             "aliquot admin resource-group allow night --domain default");
ACCOUNT_VERB(resource_group, "resource-group disallow", "RESOURCE-GROUP",
             "Let a domain, project or keypair use a resource group no longer", allow_opts,
             sizeof(struct allow_opts), 1, disallow,
             "aliquot admin resource-group disallow night --domain default");

/* ---- policies ---- */

LS_VERB(policy, "policy", "List keypair policies", ls_opts);
ACCOUNT_VERB(policy, "policy create", "NAME", "Make a keypair policy", account_policy_table.create,
             sizeof(struct account_options), 1, create,
             "aliquot admin policy create student --total-slots cpu=4,mem=16g");
ACCOUNT_VERB(policy, "policy set", "POLICY", "Change a keypair policy", account_policy_table.set,
             sizeof(struct account_options), 1, set,
             "aliquot admin policy set student --max-concurrent-sessions 3");
