/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts and limits of folders: a setting of the store, and a copy in memory. */
#include "manager/folder/folder_rules.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "manager/call/object_setting.h"
#include "manager/folder/owner_policies.h"
#include "manager/folder/folder_feature.h"

#define RULES_MAX 10000
#define RULES_KEY_MAX 320
#define RULES_HOSTS_MAX 100
#define RULES_HOSTS "allowed_vfolder_hosts"

static const struct object_setting folder_rules_setting = {
    .name = "folders.rules", .kind = "folder-rules", .title = "folder rules", .max = RULES_MAX
};

int folder_rules_load(struct api *api, struct aq_error *err)
{
    return object_setting_load(core_store(api->core), folder_rules_setting.name,
                               &api->folder->rules, err);
}

static const char *folder_rules_key(enum folder_rules_kind kind, const char *name,
                                    char ret[RULES_KEY_MAX])
{
    static const char *const kinds[] = { [FOLDER_RULES_DOMAIN] = "domain",
                                         [FOLDER_RULES_PROJECT] = "project",
                                         [FOLDER_RULES_POLICY] = "policy" };

    (void)snprintf(ret, RULES_KEY_MAX, "%s/%s", kinds[kind], name);
    return ret;
}

const json_t *folder_rules_get(const struct api *api, enum folder_rules_kind kind, const char *name)
{
    char key[RULES_KEY_MAX];

    return json_object_get(api->folder->rules, folder_rules_key(kind, name, key));
}

/* ---- changes ---- */

static bool folder_rules_are_words(const json_t *list)
{
    size_t i;
    const json_t *word;

    json_array_foreach(list, i, word)
        if (!json_is_string(word))
            return false;
    return json_is_array(list);
}

static int folder_rules_check(const json_t *rules, struct aq_error *err)
{
    json_t *hosts = json_object_get(rules, RULES_HOSTS), *permissions;
    const char *host;

    if (hosts && !json_is_object(hosts))
        return api_fail_param(err, RULES_HOSTS, "is no object");
    if (json_object_size(hosts) > RULES_HOSTS_MAX)
        return api_fail_param(err, RULES_HOSTS, "has more than %d hosts", RULES_HOSTS_MAX);
    json_object_foreach(hosts, host, permissions)
        if (strlen(host) > FOLDER_HOST_MAX || !folder_rules_are_words(permissions))
            return api_fail_param(err, RULES_HOSTS, "is an object of lists of permissions by host");
    return 0;
}

int folder_rules_change(struct api *api, enum folder_rules_kind kind, const char *name,
                        json_t *rules, const struct audit_who *by, store_done_fn done, void *data,
                        struct aq_error *err)
{
    char key[RULES_KEY_MAX];
    int r = folder_rules_check(rules, err);

    if (r < 0) {
        json_decref(rules);
        return r;
    }
    object_setting_change(core_store(api->core), &folder_rules_setting, &api->folder->rules,
                          OBJECT_SETTING_MERGE, folder_rules_key(kind, name, key), rules, by, done,
                          data);
    return 0;
}

int folder_rules_rename(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct folder_rules_rename *rename = data;
    char from[RULES_KEY_MAX], to[RULES_KEY_MAX];
    json_auto_t *all = NULL;
    json_t *rules;
    int r = object_setting_read(tx, folder_rules_setting.name, &all, err);

    json_decref(AQ_TAKE(rename->fresh)); /* of a transaction that was tried before */
    if (r < 0)
        return r;
    rules = json_object_get(all, folder_rules_key(FOLDER_RULES_DOMAIN, rename->from, from));
    folder_rules_key(FOLDER_RULES_DOMAIN, rename->to, to);
    if (!rules && !json_object_get(all, to))
        return 0;
    (void)json_object_del(all, to); /* of a domain that had the name before */
    if (rules)
        (void)json_object_set(all, to, rules);
    (void)json_object_del(all, from);
    return object_setting_write(tx, folder_rules_setting.name, all, &rename->fresh, err);
}

void folder_rules_renamed(struct api *api, struct folder_rules_rename *rename, int r)
{
    json_t *fresh = AQ_TAKE(rename->fresh);

    if (r == 0 && fresh) {
        json_decref(api->folder->rules);
        api->folder->rules = fresh;
    } else {
        json_decref(fresh);
    }
}

/* ---- what they say ---- */

/* The rules that may speak of a folder there; NULL = none. */
struct folder_rules_found {
    const json_t *domain, *project, *policy;
};

static struct folder_rules_found folder_rules_find(const struct api *api,
                                                   const struct folder_place *place)
{
    const struct keypair *key = core_find_keypair(api->core, place->who->access_key);
    const char *domain = place->project ? place->project->domain : place->who->domain;
    struct folder_rules_found found = { 0 };
    char id[UUID_TEXT_MAX];

    if (domain)
        found.domain = folder_rules_get(api, FOLDER_RULES_DOMAIN, domain);
    if (place->project)
        found.project = folder_rules_get(api, FOLDER_RULES_PROJECT,
                                         uuid_format(&place->project->id, id));
    if (key)
        found.policy = folder_rules_get(api, FOLDER_RULES_POLICY, key->policy);
    return found;
}

/* -1 = the rules have no list, or an empty one; else whether the host has the permission, or its
 * storage as a whole.
 */
static int folder_rules_ask(const json_t *rules, const char *host, const char *permission)
{
    const json_t *hosts = json_object_get(rules, RULES_HOSTS), *word;
    const json_t *permissions = json_object_get(hosts, host);
    size_t i;

    if (!json_object_size(hosts))
        return -1;
    if (!permissions)
        permissions = json_object_getn(hosts, host, strcspn(host, ":"));
    json_array_foreach(permissions, i, word)
        if (strcmp(json_string_value(word), permission) == 0)
            return 1;
    return 0;
}

/* The most that any of them says. */
static int folder_rules_ask_all(const struct api *api, const struct folder_place *place,
                                const char *host, const char *permission)
{
    const struct folder_rules_found found = folder_rules_find(api, place);
    const json_t *const all[] = { found.domain, found.project, found.policy };
    int most = -1;

    for (size_t i = 0; i < AQ_COUNT(all); i++)
        most = AQ_MAX(most, folder_rules_ask(all[i], host, permission));
    return most;
}

bool folder_rules_allow(const struct api *api, const struct folder_place *place, const char *host,
                        const char *permission)
{
    return folder_rules_ask_all(api, place, host, permission) != 0;
}

bool folder_rules_are_open(const struct api *api, const struct folder_place *place)
{
    return folder_rules_ask_all(api, place, "", "") < 0;
}

/* The lower of two, where 0 and less are no limit. */
static int64_t folder_rules_lower(int64_t a, int64_t b)
{
    return a <= 0 ? AQ_MAX(b, 0) : b <= 0 ? a : AQ_MIN(a, b);
}

struct folder_limits folder_rules_limits(const struct api *api, const struct folder_place *place)
{
    const json_t *owner = json_object_get(
        owner_policies_all(api, place->project ? OWNER_POLICY_PROJECT : OWNER_POLICY_USER),
        OWNER_POLICY_DEFAULT);
    /* A keypair's policy limits the folders of its user. */
    const json_t *policy = place->project || place->is_guest ? NULL
                                                             : folder_rules_find(api, place).policy;

    return (struct folder_limits){
        .folders = folder_rules_lower(
            json_integer_value(json_object_get(owner, "max_vfolder_count")),
            json_integer_value(json_object_get(policy, "max_vfolder_count"))),
        .bytes = folder_rules_lower(
            json_integer_value(json_object_get(owner, "max_quota_scope_size")),
            json_integer_value(json_object_get(policy, "max_vfolder_size"))),
    };
}
