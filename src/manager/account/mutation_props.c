/* SPDX-License-Identifier: Apache-2.0 */
/* Input objects of Backend.AI's mutations as the parameters that REST's tables of fields
 * decode. What has no meaning here and restricts nobody is left out; what would be without
 * the effect that was asked for is refused.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "manager/account/mutation_props.h"
#include "manager/call/graphql/newer.h"

#define PROP_NAME_MAX 64

enum prop_how {
    PROP_SAME,      /* what no rule names, too */
    PROP_AS,        /* another name */
    PROP_TEXT,      /* "" = not given */
    PROP_LIST,      /* another name; [] = not given, as old clients send what nobody typed */
    PROP_LIMIT,     /* another name; null = no limit, 0 */
    PROP_JSON,      /* JSON in a text; an object */
    PROP_UNLIMITED, /* "LIMITED" or "UNLIMITED" */
    PROP_KEPT,      /* of a new row as PROP_AS, of another it stays the same */
    PROP_IGNORED,
    PROP_ONLY, /* nothing, or this */
};

struct prop_rule {
    const char *name;
    enum prop_how how;
    const char *as; /* NULL: the same name; PROP_ONLY: the value */
    const char *why;
    const struct account_kind *kind; /* NULL = of all */
};

/* The first that fits. */
static const struct prop_rule prop_rules[] = {
    { .name = "allowed_docker_registries", .how = PROP_LIST, .as = "registries" },
    { .name = "allowed_vfolder_hosts", .how = PROP_IGNORED },
    { .name = "container_gids", .how = PROP_ONLY, .why = "all containers run as the user 'work'" },
    { .name = "container_main_gid",
      .how = PROP_ONLY,
      .why = "all containers run as the user 'work'" },
    { .name = "container_registry",
      .how = PROP_ONLY,
      .as = "{}",
      .why = "projects have no registry" },
    { .name = "container_uid", .how = PROP_ONLY, .why = "all containers run as the user 'work'" },
    { .name = "default_for_unspecified", .how = PROP_UNLIMITED, .as = "unlimited_unspecified" },
    { .name = "domain_name", .how = PROP_KEPT, .as = "domain" },
    { .name = "driver", .how = PROP_ONLY, .as = "static", .why = "the only driver is 'static'" },
    { .name = "group_ids", .how = PROP_AS, .as = "groups" },
    { .name = "integration_id", .how = PROP_ONLY, .why = "is not kept" },
    { .name = "is_public", .how = PROP_ONLY, .as = "true", .why = "no group is hidden" },
    { .name = "main_access_key", .how = PROP_ONLY, .why = "all keypairs of a user are equal" },
    { .name = "max_quota_scope_size", .how = PROP_IGNORED },
    { .name = "max_vfolder_count", .how = PROP_IGNORED },
    { .name = "max_vfolder_size", .how = PROP_IGNORED },
    { .name = "resource_policy",
      .how = PROP_ONLY,
      .as = "default",
      .why = "all users have the policy 'default'",
      .kind = &account_user },
    { .name = "resource_policy",
      .how = PROP_ONLY,
      .as = "default",
      .why = "all projects have the policy 'default'",
      .kind = &account_project },
    { .name = "sudo_session_enabled",
      .how = PROP_ONLY,
      .as = "false",
      .why = "programs cannot be given sudo" },
    { .name = "totp_activated",
      .how = PROP_ONLY,
      .as = "false",
      .why = "there are no one-time passwords" },
    { .name = "type", .how = PROP_ONLY, .as = "GENERAL", .why = "all projects are general" },
    { .name = "use_host_network",
      .how = PROP_ONLY,
      .as = "false",
      .why = "[network] of the agents says how containers are connected" },
    { .name = "user_update_mode", .how = PROP_IGNORED }, /* modify_group reads it by itself */
    { .name = "user_uuids", .how = PROP_IGNORED, .as = "users" },
    { .name = "username", .how = PROP_TEXT },
    { .name = "wsproxy_addr",
      .how = PROP_ONLY,
      .why = "app proxies say themselves where they are" },
    { .name = "wsproxy_api_token",
      .how = PROP_ONLY,
      .why = "app proxies have certificates, and no tokens" },
};

/* The member of an entity that has the name; NULL = none. */
static const struct field *prop_find_member(const struct account_kind *kind, const char *name)
{
    const struct field *field = kind->entity ? kind->entity->fields : NULL;
    char buf[FIELD_NAME_MAX];

    while (field && field->names && strcmp(field_backendai_name(field, buf), name) != 0)
        field++;
    return field && field->names ? field : NULL;
}

/* The first rule that fits, or that of a member of the entity, whose REST name is copied to 'as'. */
static struct prop_rule prop_find_rule(const struct account_kind *kind, const char *name,
                                       char as[FIELD_NAME_MAX])
{
    const struct field *field = prop_find_member(kind, name);

    for (size_t i = 0; i < AQ_COUNT(prop_rules); i++)
        if (strcmp(prop_rules[i].name, name) == 0
            && (!prop_rules[i].kind || prop_rules[i].kind == kind))
            return prop_rules[i];
    if (!field)
        return (struct prop_rule){ .name = name, .how = PROP_SAME };
    return (struct prop_rule){
        .name = name,
        .how = field->type == FIELD_SLOTS || field->type == FIELD_JSON_TEXT ? PROP_JSON
               : field->flags & FIELD_NO_LIMIT                              ? PROP_LIMIT
                                                                            : PROP_AS,
        .as = field_name(field, as),
    };
}

static json_t *prop_to_json(const struct gql_type *type, const struct gql_value *value)
{
    json_t *list;
    char word[32];

    switch (value->kind) {
    case GQL_ENUM:
        newer_lower_word(type->values[value->integer].name, word, sizeof(word));
        return json_string(word);
    case GQL_BOOL:
        return json_boolean(value->boolean);
    case GQL_INT:
        return json_integer(value->integer);
    case GQL_FLOAT:
        return json_real(value->real);
    case GQL_STRING:
        return json_string(value->text);
    case GQL_LIST:
        list = json_array();
        for (uint32_t i = 0; i < value->count; i++)
            json_array_append_new(list, prop_to_json(type, &value->items[i]));
        return list;
    default:
        return json_null();
    }
}

static bool prop_is(const struct gql_value *value, const char *only)
{
    switch (value->kind) {
    case GQL_BOOL:
        return only && strcmp(only, value->boolean ? "true" : "false") == 0;
    case GQL_STRING:
        return !value->text[0] || (only && strcmp(only, value->text) == 0);
    case GQL_LIST:
        return value->count == 0;
    default:
        return false;
    }
}

static json_t *prop_parse(const struct gql_value *value, const char *name, struct aq_error *err)
{
    json_t *object = NULL;

    if (decode_json(value->text, strlen(value->text), &object, NULL) == 0 && json_is_object(object))
        return object;
    json_decref(object);
    api_fail_param(err, name, "must be the text of a JSON object");
    return NULL;
}

/* What cannot be as it was given. */
static int prop_check(const struct prop_rule *rule, const char *kept, const struct gql_value *value,
                      struct aq_error *err)
{
    if (rule->how == PROP_ONLY && !prop_is(value, rule->as))
        return api_fail_param(err, rule->name, "not supported: %s", rule->why);
    if (rule->how == PROP_KEPT && kept && strcmp(value->text, kept) != 0)
        return api_fail_param(err, rule->name,
                              "is '%.64s' and cannot be changed; leave it out, or create another",
                              kept);
    if (rule->how == PROP_UNLIMITED && strcmp(value->text, "UNLIMITED") != 0
        && strcmp(value->text, "LIMITED") != 0)
        return api_fail_param(err, rule->name, "must be LIMITED or UNLIMITED");
    return 0;
}

static bool prop_is_left_out(const struct prop_rule *rule, const char *kept,
                             const struct gql_value *value)
{
    if (rule->how == PROP_LIMIT)
        return value->kind == GQL_ABSENT;
    return !gql_is_given(*value) || rule->how == PROP_IGNORED || rule->how == PROP_ONLY
           || (rule->how == PROP_LIST && value->count == 0) || (rule->how == PROP_KEPT && kept)
           || (rule->how == PROP_TEXT && !value->text[0]);
}

static json_t *prop_convert(const struct prop_rule *rule, const struct gql_type *type,
                            const struct gql_value *value, struct aq_error *err)
{
    if (rule->how == PROP_JSON)
        return prop_parse(value, rule->name, err);
    if (rule->how == PROP_LIMIT && !gql_is_given(*value))
        return json_integer(0);
    if (rule->how == PROP_UNLIMITED)
        return json_boolean(strcmp(value->text, "UNLIMITED") == 0);
    return prop_to_json(type, value);
}

int mutation_props_of(const struct gql_type *type, struct gql_value object,
                      const struct account_kind *kind, const char *kept, json_t **ret,
                      struct aq_error *err)
{
    json_auto_t *props = json_object();

    for (uint32_t i = 0; i < object.count; i++) {
        const struct gql_value *value = &object.items[i];
        char name[PROP_NAME_MAX], as[FIELD_NAME_MAX];
        struct prop_rule rule;
        json_t *member;

        newer_snake_case(type->inputs[i].name, name, sizeof(name));
        rule = prop_find_rule(kind, name, as);
        if (gql_is_given(*value) && prop_check(&rule, kept, value, err) < 0)
            return -err->code;
        if (prop_is_left_out(&rule, kept, value))
            continue;
        member = prop_convert(&rule, type->inputs[i].type.type, value, err);
        if (err->code)
            return -err->code;
        json_object_set_new(props, rule.as ? rule.as : name, member);
    }
    *ret = AQ_TAKE(props);
    return 0;
}

int mutation_props(const struct gql_call *call, const struct account_kind *kind, const char *kept,
                   json_t **ret, struct aq_error *err)
{
    return mutation_props_of(call->field->args[1].type.type, call->args[1], kind, kept, ret, err);
}

/* What Backend.AI calls the member of an entity that REST calls 'name'; NULL = none. */
static const char *prop_name_member(const struct account_kind *kind, const char *name, size_t len,
                                    char buf[FIELD_NAME_MAX])
{
    const struct field *field = kind->entity ? kind->entity->fields : NULL;

    while (field && field->names
           && (field_name_len(field) != len || strncmp(field->names, name, len) != 0))
        field++;
    return field && field->names ? field_backendai_name(field, buf) : NULL;
}

void mutation_name_field(const struct gql_call *call, const struct account_kind *kind,
                         const char *key, struct aq_error *err)
{
    size_t len = strcspn(err->field, ".");
    AQ_CLEANUP(aq_freep) char *below = aq_strdup(err->field + len);
    char member[FIELD_NAME_MAX];
    const char *name = strncmp(call->field->name, "create_", 7) == 0 && strlen(key) == len
                               && strncmp(key, err->field, len) == 0
                           ? call->field->args[0].name
                           : NULL;

    for (size_t i = 0; !name && len && i < AQ_COUNT(prop_rules); i++) {
        const struct prop_rule *rule = &prop_rules[i];

        if (rule->how != PROP_ONLY && rule->as && strlen(rule->as) == len
            && strncmp(rule->as, err->field, len) == 0 && (!rule->kind || rule->kind == kind))
            name = rule->name;
    }
    if (!name)
        name = prop_name_member(kind, err->field, len, member);
    if (name)
        (void)snprintf(err->field, sizeof(err->field), "%s%s", name, below);
}

int mutation_save_account(const struct gql_call *call, struct account_change *change,
                          core_done_fn done, void *data, struct aq_error *err)
{
    const struct gql_context *context = call->context;
    const struct audit_who *by = mutation_who(call);

    if (account_change_ends_logins(change, by))
        api_say_login_ended(context->req);
    return account_change_save(change, by, done, data, err);
}
