/* SPDX-License-Identifier: Apache-2.0 */
/* Policies of users and of projects: a setting of each in the store, and a copy in memory. */
#include "manager/folder/owner_policies.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "manager/call/object_setting.h"
#include "manager/core/services.h"
#include "manager/folder/folder_feature.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const struct object_setting owner_policies_settings[] = {
    [OWNER_POLICY_USER] = { .name = "policies.users",
                            .kind = "user-policy",
                            .title = "user resource policy",
                            .max = OWNER_POLICIES_MAX },
    [OWNER_POLICY_PROJECT] = { .name = "policies.projects",
                               .kind = "project-policy",
                               .title = "project resource policy",
                               .max = OWNER_POLICIES_MAX },
};

static int owner_policies_read_since(struct store_tx *tx, void *data, struct aq_error *err)
{
    static const struct store_query first = { .order = "created_at", .limit = 1 };
    AQ_CLEANUP(store_page_freep) struct store_page *page = NULL;
    int r = store_list_domains(tx, &first, &page, err);

    if (r == 0 && page->count)
        *(int64_t *)data = page->domains[0].created_usec;
    return r;
}

/* core_replica_limit_fn: all users have the policy 'default'. */
static int64_t owner_policies_replica_limit(void *data, const struct uuid *user_id)
{
    const struct api *api = data;
    const json_t *policy = json_object_get(api->folder->policies[OWNER_POLICY_USER],
                                           OWNER_POLICY_DEFAULT);

    (void)user_id;
    return json_integer_value(json_object_get(policy, "max_session_count_per_model_session"));
}

int owner_policies_load(struct api *api, struct aq_error *err)
{
    int r = store_call(core_store(api->core), owner_policies_read_since,
                       &api->folder->policies_since_usec, err);

    core_set_replica_limit(api->core, owner_policies_replica_limit, api);
    for (size_t i = 0; r == 0 && i < OWNER_POLICY_KINDS; i++)
        r = object_setting_load(core_store(api->core), owner_policies_settings[i].name,
                                &api->folder->policies[i], err);
    return r;
}

int64_t owner_policies_since(const struct api *api)
{
    return api->folder->policies_since_usec;
}

const json_t *owner_policies_all(const struct api *api, enum owner_policy_kind kind)
{
    return api->folder->policies[kind];
}

static int owner_policies_check(const char *name, const json_t *old, bool is_new,
                                const json_t *members, const struct object_setting *setting,
                                struct aq_error *err)
{
    bool is_default = strcmp(name, OWNER_POLICY_DEFAULT) == 0;
    const char *member;
    json_t *value;

    if (!name[0] || strlen(name) > OWNER_POLICY_NAME_MAX || name[strspn(name, NAME_CHARS)])
        return api_fail_param(err, "name",
                              "is 1 to %d letters, digits, dots, dashes and underscores",
                              OWNER_POLICY_NAME_MAX);
    if (is_new && (old || is_default))
        return api_fail_param(err, "name", "there is a policy '%s' already", name);
    if (!members && is_default)
        return api_fail_param(err, "name", "'%s' stays: it is everyone's", name);
    if (!is_new && !old && !is_default)
        return problem_no_such(err, setting->title, "there is no %s '%s'", setting->kind, name);
    json_object_foreach((json_t *)(uintptr_t)members, member, value)
        if (json_integer_value(value) < -1)
            return api_fail_param(err, member, "must be -1 (no limit) or more");
    return 0;
}

int owner_policies_change(struct api *api, enum owner_policy_kind kind, const char *name,
                          bool is_new, const json_t *members, const struct audit_who *by,
                          store_done_fn done, void *data, struct aq_error *err)
{
    const struct object_setting *setting = &owner_policies_settings[kind];
    const json_t *old = json_object_get(api->folder->policies[kind], name);
    int64_t created = strcmp(name, OWNER_POLICY_DEFAULT) == 0 ? api->folder->policies_since_usec
                                                              : clock_realtime_usec();
    json_auto_t *policy = NULL;
    int r = owner_policies_check(name, old, is_new, members, setting, err);

    if (r < 0)
        return r;
    if (members) {
        policy = old ? json_object() : json_pack("{s:I}", "created_usec", (json_int_t)created);
        (void)json_object_update(policy, (json_t *)(uintptr_t)members);
    }
    object_setting_change(core_store(api->core), setting, &api->folder->policies[kind],
                          !members ? OBJECT_SETTING_REMOVE
                          : is_new ? OBJECT_SETTING_CREATE
                          : old    ? OBJECT_SETTING_MODIFY
                                   : OBJECT_SETTING_MERGE,
                          name, json_incref(policy), by, done, data);
    return 0;
}
