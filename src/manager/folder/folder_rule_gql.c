/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and limits of folders of domains, projects and keypair policies. */
#include "manager/folder/folder_rules.h"

#include <stdio.h>
#include <string.h>

#include "base/json_load.h"
#include "base/memory.h"
#include "manager/call/graphql/mutation.h"
#include "manager/folder/folder_feature.h"
#include "manager/folder/storage_hosts.h"

#define HOSTS "allowed_vfolder_hosts"

static const char *const all_permissions[] = {
    "create-vfolder", "modify-vfolder", "delete-vfolder", "mount-in-session",
    "upload-file",    "download-file",  "invite-others",  "set-user-specific-permission",
};

/* As an object of GraphQL. */
struct folder_rule_host {
    const char *name;
    struct gql_value permissions; /* list of texts */
};

/* ---- reading ---- */

/* A name stands for all that may be allowed there. Clients of 22.03 send a list in Python's
 * notation as one text.
 */
static void folder_rule_add_names(json_t *hosts, char *names)
{
    char *rest, *name = strtok_r(names, "[]'\", ", &rest);

    for (; name; name = strtok_r(NULL, "[]'\", ", &rest)) {
        json_t *permissions = json_array();

        for (size_t i = 0; i < AQ_COUNT(all_permissions); i++)
            (void)json_array_append_new(permissions, json_string(all_permissions[i]));
        (void)json_object_set_new(hosts, name, permissions);
    }
}

/* Clients of 26 send the text of {HOST: [PERMISSION, ...]}. */
static int folder_rule_add_object(json_t *hosts, const char *text, struct aq_error *err)
{
    json_auto_t *object = NULL;
    struct aq_error why = { 0 };

    if (decode_json(text, strlen(text), &object, &why) < 0)
        return api_fail_param(err, HOSTS, "is no JSON");
    (void)json_object_update(hosts, object);
    return 0;
}

static int folder_rule_read_hosts(const struct gql_value *given, json_t *hosts,
                                  struct aq_error *err)
{
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < given->count; i++) {
        const char *text = given->items[i].kind == GQL_STRING ? given->items[i].text : "";
        AQ_CLEANUP(aq_freep) char *names = aq_strdup(text);

        if (text[0] == '{')
            r = folder_rule_add_object(hosts, text, err);
        else
            folder_rule_add_names(hosts, names);
    }
    return r;
}

int folder_rule_read(const struct gql_call *call, json_t **ret, struct aq_error *err)
{
    static const char *const limits[] = { "max_vfolder_count", "max_vfolder_size" };
    struct gql_value given = mutation_prop(call, HOSTS);
    json_auto_t *rules = json_object(), *hosts = json_object();

    if (gql_is_given(given)) {
        if (folder_rule_read_hosts(&given, hosts, err) < 0)
            return -err->code;
        (void)json_object_set(rules, HOSTS, hosts);
    }
    for (size_t i = 0; i < AQ_COUNT(limits); i++) {
        struct gql_value limit = mutation_prop(call, limits[i]);

        if (gql_is_given(limit))
            (void)json_object_set_new(rules, limits[i], json_integer(limit.integer));
    }
    *ret = json_object_size(rules) ? json_incref(rules) : NULL;
    return 0;
}

static struct gql_value folder_rule_member(struct gql_value entry, const char *name)
{
    const struct gql_type *type = gql_type_find(&schema_schema, "VFolderHostPermissionEntryInput",
                                                31);

    return entry
        .items[gql_input_find(type->inputs, type->input_count, name, strlen(name)) - type->inputs];
}

static void folder_rule_read_entry(struct gql_value entry, json_t *hosts)
{
    struct gql_value words = folder_rule_member(entry, "permissions");
    json_t *permissions = json_array();

    for (uint32_t i = 0; i < words.count; i++)
        (void)json_array_append_new(permissions, json_string(words.items[i].text));
    (void)json_object_set_new(hosts, folder_rule_member(entry, "host").text, permissions);
}

json_t *folder_rule_read_entries(const struct gql_call *call)
{
    struct gql_value entries = gql_arg_member(call, "input", "allowedVfolderHosts");
    json_auto_t *hosts = json_object();

    for (uint32_t i = 0; i < entries.count; i++)
        folder_rule_read_entry(entries.items[i], hosts);
    return json_pack("{s:O}", HOSTS, hosts);
}

/* ---- showing ---- */

static const json_t *folder_rule_find(const struct gql_get *get, enum folder_rules_kind kind,
                                      const char *name)
{
    return folder_rules_get(((const struct gql_context *)get->context)->api, kind, name);
}

/* Everything on all hosts that are connected. */
static json_t *folder_rule_make_open(const struct api *api)
{
    json_t *all = json_object();
    size_t count;
    const struct storage_host *hosts = storage_hosts_list(api->folder->hosts, &count);

    for (size_t i = 0; i < count; i++) {
        char name[FOLDER_HOST_MAX + 1];

        (void)snprintf(name, sizeof(name), "%s", hosts[i].name);
        folder_rule_add_names(all, name);
    }
    return all;
}

/* Pages offer what they find here: of somebody whom no list restricts, what goes without one.
 * json_decref; NULL = nothing.
 */
static json_t *folder_rule_show(const struct gql_get *get, enum folder_rules_kind kind,
                                const char *name)
{
    const struct gql_context *context = get->context;
    const struct folder_place place = { .who = context->who };
    json_t *hosts = json_object_get(folder_rule_find(get, kind, name), HOSTS);

    return !json_object_size(hosts) && folder_rules_are_open(context->api, &place)
               ? folder_rule_make_open(context->api)
               : json_incref(hosts);
}

struct gql_value folder_rule_get_hosts(struct gql_get *get, enum folder_rules_kind kind,
                                       const char *name)
{
    json_auto_t *hosts = folder_rule_show(get, kind, name);
    AQ_CLEANUP(aq_freep) char *text = hosts ? json_dump_text(hosts, JSON_COMPACT) : NULL;

    return hosts ? gql_copy(get, text) : gql_text("{}");
}

static void folder_rule_fill_host(struct gql_get *get, const char *name, const json_t *permissions,
                                  struct folder_rule_host *ret)
{
    struct gql_value *items = arena_array(get->arena, json_array_size(permissions) + 1,
                                          sizeof(*items));
    json_t *word;
    size_t i;

    ret->name = arena_strdup(get->arena, name);
    json_array_foreach((json_t *)(uintptr_t)permissions, i, word)
        items[i] = gql_copy(get, json_string_value(word));
    ret->permissions = gql_list(items, (uint32_t)i);
}

struct gql_value folder_rule_list_hosts(struct gql_get *get, enum folder_rules_kind kind,
                                        const char *name)
{
    json_auto_t *hosts = folder_rule_show(get, kind, name);
    struct folder_rule_host *rows = arena_array(get->arena, json_object_size(hosts) + 1,
                                                sizeof(*rows));
    uint32_t count = 0;
    const char *host;
    json_t *permissions;

    json_object_foreach(hosts, host, permissions)
        folder_rule_fill_host(get, host, permissions, &rows[count++]);
    return gql_rows_of(get->arena, rows, count, sizeof(*rows));
}

struct gql_value folder_rule_get_limit(struct gql_get *get, const char *policy, const char *member)
{
    return gql_int(json_integer_value(
        json_object_get(folder_rule_find(get, FOLDER_RULES_POLICY, policy), member)));
}

static const struct gql_entry folder_rule_entries[] = {
    { SCHEMA_FIELD_VFolderHostPermissionEntry_host, GQL_TEXT_AT(struct folder_rule_host, name) },
    { SCHEMA_FIELD_VFolderHostPermissionEntry_permissions,
      GQL_VALUE_AT(struct folder_rule_host, permissions) },
};
GQL_ENTRIES_END(folder_rule);
