/* SPDX-License-Identifier: Apache-2.0 */
/* Users, domains, projects, resource groups, policies: rm, restore; members of projects. */
#include <errno.h>

#include "cli/admin/accounts.h"
#include "cli/client.h"
#include "cli/verbs.h"

/* ---- rm ---- */

struct accounts_rm_opts {
    bool force, purge, dry_run, yes;
};

static const struct cli_opt accounts_rm_opts[] = {
    { 'f', "force", CLI_FLAG, offsetof(struct accounts_rm_opts, force), NULL,
      "end the live sessions, and do not ask" },
    { 0, "purge", CLI_FLAG, offsetof(struct accounts_rm_opts, purge), NULL,
      "remove for good, with all that is attached; cannot be undone" },
    { 0, "dry-run", CLI_FLAG, offsetof(struct accounts_rm_opts, dry_run), NULL,
      "change nothing, show what would be removed" },
    { 'y', "yes", CLI_FLAG, offsetof(struct accounts_rm_opts, yes), NULL, "do not ask" },
    CLI_OPT_END,
};

static const struct column accounts_rm_columns[] = {
    { "name", "NAME", COLUMN_TEXT, COLUMN_IS_NAME },
    { "status", "WOULD BE", COLUMN_TEXT, 0 },
    { "live_sessions", "LIVE SESSIONS", COLUMN_NUMBER, 0 },
    { "keypairs", "KEYPAIRS", COLUMN_NUMBER, 0 },
    { "memberships", "MEMBERSHIPS", COLUMN_NUMBER, 0 },
    { "projects", "PROJECTS", COLUMN_NUMBER, 0 },
    { "resource_group_access", "RESOURCE-GROUP ACCESS", COLUMN_NUMBER, 0 },
    { "ended_sessions", "ENDED SESSIONS KEPT", COLUMN_NUMBER, 0 },
    COLUMN_END,
};

/* Ask the manager to remove one; *ret_answer says what was or would be removed. */
static int accounts_rm_call(struct cli *cli, const struct accounts_rm_opts *opts, const char *key,
                            bool dry_run, json_t **ret_answer, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *body = json_pack("{sbsbsb}", "force", opts->force, "purge", opts->purge, "dry_run",
                             dry_run);
    int r = accounts_path(cli, key, "", &path, err);

    if (r == 0)
        r = cli_call(cli, METHOD_DELETE, path.data, body, ret_answer, err);
    json_decref(body);
    return r;
}

/* "user ann@example.com with 2 keypairs, 1 membership; 12 ended sessions stay in the history" */
static void accounts_rm_describe(const struct cli *cli, const json_t *answer, struct strbuf *out)
{
    static const struct {
        const char *member, *one, *many;
    } parts[] = {
        { "keypairs", "keypair", "keypairs" },
        { "memberships", "membership", "memberships" },
        { "projects", "project", "projects" },
        { "resource_group_access", "right to use a resource group",
          "rights to use resource groups" },
    };
    json_int_t ended = json_integer_value(json_object_get(answer, "ended_sessions"));
    const char *between = " with ";

    strbuf_addf(out, "%s %s", accounts_noun_of(cli)->singular,
                json_string_value(json_object_get(answer, "name")));
    for (size_t i = 0; i < AQ_COUNT(parts); i++) {
        json_int_t n = json_integer_value(json_object_get(answer, parts[i].member));

        if (n == 0)
            continue;
        strbuf_addf(out, "%s%lld %s", between, (long long)n, n == 1 ? parts[i].one : parts[i].many);
        between = ", ";
    }
    if (ended)
        strbuf_addf(out, "; %lld ended session%s in the history", (long long)ended,
                    ended == 1 ? " stays" : "s stay");
}

/* What a purge takes along is shown, then asked for, as by cli_confirm(). */
static int accounts_rm_ask(struct cli *cli, const struct accounts_rm_opts *opts, int argc,
                           char **argv, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;

    for (int i = 0; i < argc; i++) {
        json_t *answer = NULL;
        int r = accounts_rm_call(cli, opts, argv[i], true, &answer, err);

        if (r < 0)
            return r;
        strbuf_adds(&text, i ? ", and " : "");
        accounts_rm_describe(cli, answer, &text);
        json_decref(answer);
    }
    return cli_confirm(false, err, "Remove %s for good?", text.data);
}

static void accounts_rm_note(const struct cli *cli, const struct accounts_rm_opts *opts,
                             const char *key, const json_t *answer)
{
    json_int_t ended = json_integer_value(json_object_get(answer, "live_sessions"));
    const struct noun *noun = accounts_noun_of(cli);
    const char *name = json_string_value(json_object_get(answer, "name"));

    if (opts->purge)
        cli_note(cli, "removed %s %s for good", noun->singular, name);
    else
        cli_note(cli, "removed %s %s; to undo: aliquot %srestore %s", noun->singular, name,
                 noun->prefix, key);
    if (ended && !opts->purge)
        cli_note(cli, "%lld of its sessions end", (long long)ended);
}

static int accounts_rm_run(struct cli *cli, void *data, int argc, char **argv, struct aq_error *err)
{
    const struct accounts_rm_opts *opts = data;
    int r = 0;

    if (opts->purge && !opts->dry_run && !opts->yes && !opts->force)
        r = accounts_rm_ask(cli, opts, argc, argv, err);
    for (int i = 0; r == 0 && i < argc; i++) {
        json_t *answer = NULL;

        r = accounts_rm_call(cli, opts, argv[i], opts->dry_run, &answer, err);
        if (r == 0 && opts->dry_run)
            r = record_print(cli, accounts_rm_columns, answer, err);
        else if (r == 0)
            accounts_rm_note(cli, opts, argv[i], answer);
        json_decref(answer);
    }
    return r;
}

/* ---- restore ---- */

static int accounts_restore(struct cli *cli, void *data, int argc, char **argv,
                            struct aq_error *err)
{
    (void)data;
    return accounts_call_each(cli, METHOD_POST, "/restore", argc, argv, err);
}

#define ACCOUNT_RM_DETAILS                                                                \
    "From then on lists show it with --all alone, and restore undoes it. It is refused\n" \
    "while live sessions use it, unless --force ends them.\n"                             \
    "With --purge it is removed for good, with all that is attached, which is asked\n"    \
    "for first; sessions of the past keep its name."

/* A noun's rm and restore. */
#define ACCOUNT_RM_VERBS(noun, word, arg, a, example, effect)                    \
    const struct cli_verb verb_admin_##noun##_rm = {                             \
        .name = "admin " word " rm",                                             \
        .args = arg "...",                                                       \
        .summary = "Remove " a ": " effect,                                      \
        .details = ACCOUNT_RM_DETAILS,                                           \
        .examples = "aliquot admin " word " rm " example "\naliquot admin " word \
                    " rm --purge --dry-run " example "\naliquot admin " word     \
                    " rm --purge --yes " example,                                \
        .opts = accounts_rm_opts,                                                \
        .opts_size = sizeof(struct accounts_rm_opts),                            \
        .min_args = 1,                                                           \
        .max_args = -1,                                                          \
        .run = accounts_rm_run,                                                  \
    };                                                                           \
    const struct cli_verb verb_admin_##noun##_restore = {                        \
        .name = "admin " word " restore",                                        \
        .args = arg "...",                                                       \
        .summary = "Undo the removal of " a,                                     \
        .examples = "aliquot admin " word " restore " example,                   \
        .min_args = 1,                                                           \
        .max_args = -1,                                                          \
        .run = accounts_restore,                                                 \
    }

ACCOUNT_RM_VERBS(user, "user", "E-MAIL", "a user", "ann@example.com", "who can no longer log in");
ACCOUNT_RM_VERBS(domain, "domain", "DOMAIN", "a domain", "physics",
                 "nobody can create sessions in it");
ACCOUNT_RM_VERBS(project, "project", "PROJECT", "a project", "lasers",
                 "nobody can create sessions in it");
ACCOUNT_RM_VERBS(resource_group, "resource-group", "RESOURCE-GROUP", "a resource group", "night",
                 "nobody can create sessions in it");
ACCOUNT_RM_VERBS(policy, "policy", "POLICY", "a keypair policy", "student",
                 "no keypair can get it");

/* ---- members of a project ---- */

static int accounts_change_users(struct cli *cli, const char *action, int argc, char **argv,
                                 struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf path = STRBUF_INIT;
    json_t *users = json_array(), *body = json_pack("{so}", "users", users);
    int r = accounts_path(cli, argv[0], action, &path, err);

    for (int i = 1; r == 0 && i < argc; i++)
        if (json_array_append_new(users, json_string(argv[i])) < 0)
            r = aq_fail_kind(err, EINVAL, CLI_KIND_USAGE, "'%.60s' is not UTF-8", argv[i]);
    if (r == 0)
        r = cli_call(cli, METHOD_POST, path.data, body, NULL, err);
    json_decref(body);
    return r;
}

static int accounts_add_user(struct cli *cli, void *data, int argc, char **argv,
                             struct aq_error *err)
{
    (void)data;
    return accounts_change_users(cli, "/add-users", argc, argv, err);
}

static int accounts_remove_user(struct cli *cli, void *data, int argc, char **argv,
                                struct aq_error *err)
{
    (void)data;
    return accounts_change_users(cli, "/remove-users", argc, argv, err);
}

const struct cli_verb verb_admin_project_add_user = {
    .name = "admin project add-user",
    .args = "PROJECT E-MAIL...",
    .summary = "Make users members of a project",
    .examples = "aliquot admin project add-user lasers ann@example.com bob@example.com",
    .min_args = 2,
    .max_args = -1,
    .run = accounts_add_user,
};

const struct cli_verb verb_admin_project_remove_user = {
    .name = "admin project remove-user",
    .args = "PROJECT E-MAIL...",
    .summary = "Take users out of a project",
    .examples = "aliquot admin project remove-user lasers ann@example.com",
    .min_args = 2,
    .max_args = -1,
    .run = accounts_remove_user,
};
