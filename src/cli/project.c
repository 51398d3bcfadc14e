/* SPDX-License-Identifier: Apache-2.0 */
/* Which project new sessions belong to. */
#include "cli/project.h"

#include <string.h>

#include "base/memory.h"
#include "cli/client.h"
#include "cli/list.h"

#define PROJECT_USUAL "default"

bool project_is_usable(const json_t *user, const char *name)
{
    const char *role = json_string_value(json_object_get(user, "role"));

    return list_find(json_object_get(user, "groups"), "name", name)
           || (role && strcmp(role, "user") != 0);
}

const char *project_choose(const struct cli *cli, const json_t *user)
{
    const char *configured = cli_config_get(&cli->config, SETTING_GROUP);
    const json_t *groups = json_object_get(user, "groups");

    if (configured)
        return configured;
    if (project_is_usable(user, PROJECT_USUAL))
        return PROJECT_USUAL;
    return json_array_size(groups) == 1
               ? json_string_value(json_object_get(json_array_get(groups, 0), "name"))
               : NULL;
}

int project_find(struct cli *cli, char **ret, struct aq_error *err)
{
    const char *configured = cli_config_get(&cli->config, SETTING_GROUP), *name;
    json_t *body, *answer = NULL;
    int r = 0;

    *ret = configured ? aq_strdup(configured) : NULL;
    if (configured || cli->globals.owner)
        return 0;
    body = json_pack("{s:s}", "query", "query { user { " PROJECT_USER_FIELDS " } }");
    r = cli_call(cli, METHOD_POST, "/admin/gql", body, &answer, err);
    name = project_choose(cli, json_object_get(json_object_get(answer, "data"), "user"));
    *ret = name ? aq_strdup(name) : NULL;
    json_decref(body);
    json_decref(answer);
    return r;
}
