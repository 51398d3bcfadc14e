/* SPDX-License-Identifier: Apache-2.0 */
/* Who may use which resource groups: what a request names is there. */
#include "manager/account/account.h"

static int access_check_project(const struct api *api, struct arena *arena,
                                struct core_access_change *change, struct aq_error *err)
{
    char text[UUID_TEXT_MAX];
    struct uuid id;

    if (uuid_parse(change->project_id, &id) < 0 || !core_find_project(api->core, &id))
        return problem_no_such(err, "user group (or project)", "there is no project '%.64s'",
                               change->project_id);
    change->project_id = arena_strdup(arena, uuid_format(&id, text));
    return 0;
}

int account_check_access(const struct api *api, struct arena *arena,
                         struct core_access_change *change, struct aq_error *err)
{
    for (size_t i = 0; i < change->count; i++)
        if (!core_find_resource_group(api->core, change->resource_groups[i]))
            return problem_no_such(err, "scaling group", "there is no resource group '%.64s'",
                                   change->resource_groups[i]);
    if (change->domain && !core_find_domain(api->core, change->domain))
        return problem_no_such(err, "domain", "there is no domain '%.64s'", change->domain);
    if (change->access_key && !core_find_keypair(api->core, change->access_key))
        return problem_no_such(err, "keypair", "there is no keypair '%.64s'", change->access_key);
    return change->project_id ? access_check_project(api, arena, change, err) : 0;
}
