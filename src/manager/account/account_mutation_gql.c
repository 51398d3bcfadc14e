/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations of users, keypairs, domains, projects, keypair policies and resource groups:
 * create_NOUN, modify_NOUN, delete_NOUN and purge_NOUN, whose first argument names the row.
 */
#include <string.h>

#include "base/json_load.h"
#include "manager/account/mutation_props.h"
#include "manager/folder/folder.h"
#include "manager/account/account_feature.h"

struct mutation_noun {
    const char *name;   /* as in create_NAME */
    const char *object; /* the result's member */
    const char *key;    /* the parameter of a new row that the first argument is */
    const struct account_kind *kind;
};

static const struct mutation_noun mutation_nouns[] = {
    { "domain", "domain", "name", &account_domain },
    { "group", "group", "name", &account_project },
    { "keypair", "keypair", "user", &account_keypair },
    { "keypair_resource_policy", "resource_policy", "name", &account_policy },
    { "scaling_group", "scaling_group", "name", &account_resource_group },
    { "user", "user", "email", &account_user },
};

/* A mutation that is under way, in the request's arena. */
struct account_mutation {
    struct gql_call *call;
    const struct mutation_noun *noun;
    struct account_change *change;
    struct account_removal removal;
    json_t *rules; /* of folders; NULL = nothing is said of them */
    struct store_page *page;
};

/* NULL after the call has been answered. */
static struct account_mutation *account_mutation_new(struct gql_call *call)
{
    const char *name = strchr(call->field->name, '_') + 1;
    struct account_mutation *m;

    if (!mutation_may(call))
        return NULL;
    m = arena_alloc(call->arena, sizeof(*m));
    *m = (struct account_mutation){ .call = call };
    for (size_t i = 0; i < AQ_COUNT(mutation_nouns); i++)
        if (strcmp(name, mutation_nouns[i].name) == 0)
            m->noun = &mutation_nouns[i];
    return m;
}

/* ---- the row that was saved, if it is asked for ---- */

static int account_mutation_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct account_mutation *m = data;
    int r = gql_set_room(m->call->context, &m->change->query, err);

    return r < 0 ? r : m->noun->kind->list(tx, &m->change->query, &m->page, err);
}

/* The one who makes a keypair has to be told its secret. */
static void account_mutation_show_secret(const struct account_mutation *m)
{
    const struct keypair *key = core_find_keypair(mutation_api(m->call)->core,
                                                  m->change->query.access_key);

    if (key)
        memcpy(m->page->keypairs[0].keypair.secret_key, key->secret_key, sizeof(key->secret_key));
}

static void account_mutation_on_read(void *data, int r, const struct aq_error *err)
{
    const struct account_mutation *m = data;
    struct gql_call *call = m->call;

    if (r == 0 && m->page->count && m->noun->kind == &account_keypair
        && strncmp(call->field->name, "create", 6) == 0)
        account_mutation_show_secret(m);
    if (r < 0) {
        gql_call_fail(call, "%s", err->text);
    } else {
        gql_keep(call->context, call->arena, m->page);
        (void)mutation_succeed(call, m->page->count ? m->page->rows : NULL);
    }
    gql_call_done(call);
}

static void account_mutation_on_ruled(void *data, int r, const struct aq_error *err)
{
    struct account_mutation *m = data;

    if (r < 0 || !gql_call_selects(m->call, m->noun->object))
        mutation_on_done(m->call, r, err);
    else
        (void)gql_read(m->call, account_mutation_read, account_mutation_on_read, m);
}

/* What the row is called where rules of folders are kept; NULL: it has none. */
static const char *account_mutation_rules_name(const struct account_mutation *m,
                                               enum folder_rules_kind *ret_kind,
                                               char id[UUID_TEXT_MAX])
{
    const char *key = gql_arg_text(m->call, 0),
               *domain = gql_is_given(mutation_prop(m->call, "domain_name"))
                             ? mutation_prop(m->call, "domain_name").text
                             : "default";
    const struct project *project;

    *ret_kind = m->noun->kind == &account_domain ? FOLDER_RULES_DOMAIN : FOLDER_RULES_POLICY;
    if (m->noun->kind == &account_domain)
        return m->change->query.name; /* it may have been renamed */
    if (m->noun->kind != &account_project)
        return key;
    *ret_kind = FOLDER_RULES_PROJECT;
    if (strncmp(m->call->field->name, "create", 6) != 0)
        return key;
    project = core_find_project_named(mutation_api(m->call)->core, domain, key);
    return project ? uuid_format(&project->id, id) : NULL;
}

/* The rules of its folders follow the row, queued in the same turn: no renaming of the domain
 * comes between.
 */
static void account_mutation_on_saved(void *data, int r, const struct aq_error *err)
{
    struct account_mutation *m = data;
    json_t *rules = AQ_TAKE(m->rules);
    enum folder_rules_kind kind;
    char id[UUID_TEXT_MAX];
    const char *name = r == 0 && rules ? account_mutation_rules_name(m, &kind, id) : NULL;
    struct aq_error why = { 0 };

    if (!name) {
        json_decref(rules);
        account_mutation_on_ruled(m, r, err);
    } else if (folder_rules_change(mutation_api(m->call), kind, name, rules, mutation_who(m->call),
                                   account_mutation_on_ruled, m, &why)
               < 0) {
        account_mutation_on_ruled(m, -why.code, &why);
    }
}

/* ---- making and changing ---- */

static int account_mutation_create_row(struct account_mutation *m, struct aq_error *err)
{
    const char *key = gql_arg_text(m->call, 0);
    json_auto_t *given = NULL;
    int r = mutation_props(m->call, m->noun->kind, NULL, &given, err);

    if (r < 0)
        return r;
    json_object_set_new(given, m->noun->key, json_string(key));
    /* As in Backend.AI, where what says nothing of pending sessions does not limit them. */
    if (m->noun->kind == &account_policy && !json_object_get(given, "max_pending_sessions"))
        json_object_set_new(given, "max_pending_sessions", json_integer(0));
    r = account_change_row(m->change, NULL, given, err);
    if (r == 0 && m->noun->kind == &account_user)
        r = account_change_add_keypair(m->change, NULL, err);
    return r;
}

static const char *account_mutation_domain(const struct account_kind *kind, const void *row)
{
    if (kind == &account_user)
        return ((const struct user *)row)->domain;
    return kind == &account_project ? ((const struct project *)row)->domain : NULL;
}

/* user_update_mode and user_uuids of modify_group. */
static int account_mutation_change_members(const struct account_mutation *m, const char *key,
                                           struct aq_error *err)
{
    struct gql_value mode = mutation_prop(m->call, "user_update_mode");
    struct gql_value ids = mutation_prop(m->call, "user_uuids");
    struct str_list users = { .count = ids.kind == GQL_LIST ? ids.count : 0 };
    bool is_member;

    if (!gql_is_given(mode))
        return users.count ? api_fail_param(err, "user_update_mode", "must be add or remove") : 0;
    is_member = strcmp(mode.text, "add") == 0;
    if (!is_member && strcmp(mode.text, "remove") != 0)
        return api_fail_param(err, "user_update_mode", "must be add or remove");
    users.items = arena_array(m->call->arena, users.count + 1, sizeof(*users.items));
    for (size_t i = 0; i < users.count; i++)
        users.items[i] = ids.items[i].kind == GQL_STRING ? ids.items[i].text : "";
    return account_change_members(m->change, key, &users, is_member, err);
}

/* Pages send all options of a resource group that they know: the others stay. */
static void account_mutation_keep_options(const struct resource_group *group, json_t *opts)
{
    static const char *const own[] = { "backfill",
                                       "backfill_reservations",
                                       "backfill_max_wait",
                                       "fair_share",
                                       "preemption",
                                       "handler_options",
                                       "allow_fractional_resource_fragmentation" };
    json_auto_t *old = json_load_string(group->scheduler_opts ? group->scheduler_opts : "{}", 0);

    for (size_t i = 0; opts && i < AQ_COUNT(own); i++)
        if (!json_object_get(opts, own[i]) && json_object_get(old, own[i]))
            json_object_set(opts, own[i], json_object_get(old, own[i]));
}

static int account_mutation_modify_row(struct account_mutation *m, struct aq_error *err)
{
    const struct account_kind *kind = m->noun->kind;
    const char *key = gql_arg_text(m->call, 0);
    const void *row = kind->find(mutation_api(m->call)->core, key);
    json_auto_t *given = NULL;
    int r = mutation_props(m->call, kind, row ? account_mutation_domain(kind, row) : NULL, &given,
                           err);

    if (r == 0 && row && kind == &account_resource_group)
        account_mutation_keep_options(row, json_object_get(given, "scheduler_opts"));
    if (r == 0)
        r = account_change_row(m->change, key, given, err);
    if (r == 0 && kind == &account_project)
        r = account_mutation_change_members(m, key, err);
    return r;
}

static int account_mutation_save(struct gql_call *call,
                                 int (*fill)(struct account_mutation *m, struct aq_error *err))
{
    struct account_mutation *m = account_mutation_new(call);
    struct aq_error err = { 0 };

    if (!m)
        return GQL_DONE;
    m->change = account_change_new(mutation_api(call), call->arena, m->noun->kind);
    if (fill(m, &err) < 0
        || (call->field->arg_count > 1 && folder_rule_read(call, &m->rules, &err) < 0)) {
        account_change_drop(m->change);
        mutation_name_field(call, m->noun->kind, m->noun->key, &err);
        return mutation_refuse(call, &err);
    }
    if (mutation_save_account(call, m->change, account_mutation_on_saved, m, &err) < 0) {
        json_decref(m->rules);
        return mutation_refuse(call, &err);
    }
    return GQL_LATER;
}

static int account_mutation_create(struct gql_call *call)
{
    return account_mutation_save(call, account_mutation_create_row);
}

static int account_mutation_modify(struct gql_call *call)
{
    return account_mutation_save(call, account_mutation_modify_row);
}

/* ---- removing ---- */

/* Keypairs have no state "removed": they go for good. */
static int account_mutation_remove_keypair(struct account_mutation *m, struct aq_error *err)
{
    return account_change_remove_keypair(m->change, gql_arg_text(m->call, 0), err);
}

static int account_mutation_remove(struct gql_call *call, bool purge)
{
    struct account_mutation *m = account_mutation_new(call);

    if (!m)
        return GQL_DONE;
    m->removal = (struct account_removal){ .api = mutation_api(call),
                                           .arena = call->arena,
                                           .who = ((struct gql_context *)call->context)->who,
                                           .by = mutation_who(call),
                                           .kind = m->noun->kind,
                                           .key = gql_arg_text(call, 0),
                                           .purge = purge,
                                           .done = mutation_on_done,
                                           .data = call };
    account_remove(&m->removal);
    return GQL_LATER;
}

static int account_mutation_delete(struct gql_call *call)
{
    return account_mutation_remove(call, false);
}

/* There is no purge_scaling_group: one that is out of use goes for good. */
static int account_mutation_delete_resource_group(struct gql_call *call)
{
    const struct resource_group *group = account_resource_group.find(mutation_api(call)->core,
                                                                     gql_arg_text(call, 0));

    return account_mutation_remove(call, group && !group->is_active);
}

static int account_mutation_delete_keypair(struct gql_call *call)
{
    return account_mutation_save(call, account_mutation_remove_keypair);
}

static int account_mutation_purge(struct gql_call *call)
{
    return account_mutation_remove(call, true);
}

#define MUTATION(name, fn)                                                                     \
    {                                                                                          \
        SCHEMA_FIELD_Mutations_##name, GQL_CALL_COST(account_mutation_##fn, GQL_COST_WRITE, 1) \
    }
#define OBJECT(type, member)                                                          \
    {                                                                                 \
        SCHEMA_FIELD_##type##_##member, GQL_OBJECT_AT(struct mutation_result, object) \
    }

static const struct gql_entry account_mutation_entries[] = {
    MUTATION(create_domain, create),
    MUTATION(modify_domain, modify),
    MUTATION(delete_domain, delete),
    MUTATION(purge_domain, purge),
    MUTATION(create_group, create),
    MUTATION(modify_group, modify),
    MUTATION(delete_group, delete),
    MUTATION(purge_group, purge),
    MUTATION(create_user, create),
    MUTATION(modify_user, modify),
    MUTATION(delete_user, delete),
    MUTATION(purge_user, purge),
    MUTATION(create_keypair, create),
    MUTATION(modify_keypair, modify),
    MUTATION(delete_keypair, delete_keypair),
    MUTATION(create_keypair_resource_policy, create),
    MUTATION(modify_keypair_resource_policy, modify),
    MUTATION(delete_keypair_resource_policy, delete),
    MUTATION(create_scaling_group, create),
    MUTATION(modify_scaling_group, modify),
    MUTATION(delete_scaling_group, delete_resource_group),
    MUTATION_RESULT(CreateDomain),
    OBJECT(CreateDomain, domain),
    MUTATION_RESULT(ModifyDomain),
    OBJECT(ModifyDomain, domain),
    MUTATION_RESULT(DeleteDomain),
    MUTATION_RESULT(PurgeDomain),
    MUTATION_RESULT(CreateGroup),
    OBJECT(CreateGroup, group),
    MUTATION_RESULT(ModifyGroup),
    OBJECT(ModifyGroup, group),
    MUTATION_RESULT(DeleteGroup),
    MUTATION_RESULT(PurgeGroup),
    MUTATION_RESULT(CreateUser),
    OBJECT(CreateUser, user),
    MUTATION_RESULT(ModifyUser),
    OBJECT(ModifyUser, user),
    MUTATION_RESULT(DeleteUser),
    MUTATION_RESULT(PurgeUser),
    MUTATION_RESULT(CreateKeyPair),
    OBJECT(CreateKeyPair, keypair),
    MUTATION_RESULT(ModifyKeyPair),
    MUTATION_RESULT(DeleteKeyPair),
    MUTATION_RESULT(CreateKeyPairResourcePolicy),
    OBJECT(CreateKeyPairResourcePolicy, resource_policy),
    MUTATION_RESULT(ModifyKeyPairResourcePolicy),
    MUTATION_RESULT(DeleteKeyPairResourcePolicy),
    MUTATION_RESULT(CreateScalingGroup),
    OBJECT(CreateScalingGroup, scaling_group),
    MUTATION_RESULT(ModifyScalingGroup),
    MUTATION_RESULT(DeleteScalingGroup),
};
GQL_ENTRIES_END(account_mutation);
