/* SPDX-License-Identifier: Apache-2.0 */
/* Registers folders with the manager. */
#include "manager/folder/folder_feature.h"

#include <stdlib.h>

#include "base/memory.h"
#include "manager/folder/folder_jobs.h"
#include "manager/folder/folder_recount.h"
#include "manager/folder/folder_rights.h"
#include "manager/folder/folder_rules.h"
#include "manager/folder/storage_hosts.h"

static const struct route_table *const folder_routes[] = { &folder_list_route_table,
                                                           &folder_change_route_table,
                                                           &folder_files_route_table,
                                                           &folder_share_route_table,
                                                           &folder_clone_route_table,
                                                           &folder_admin_route_table,
                                                           NULL };
static const struct gql_table *const folder_gql[] = { &folder_gql_table,
                                                      &folder_v2_gql_table,
                                                      &folder_rule_gql_table,
                                                      &owner_policy_gql_table,
                                                      &storage_volume_gql_table,
                                                      &quota_scope_gql_table,
                                                      NULL };
static const struct gql_node *const folder_nodes[] = { &folder_node, &folder_v2_node, NULL };
static const struct gql_same folder_same[] = {
    { SCHEMA_TYPE_VirtualFolder, SCHEMA_TYPE_VirtualFolderNode },
    { SCHEMA_TYPE_UserResourcePolicy, SCHEMA_TYPE_ProjectResourcePolicy },
    { 0 },
};

static int folder_feature_open(struct api *api, struct aq_error *err)
{
    struct folder_state *folder = api->folder = aq_alloc(sizeof(*folder));
    int r;

    folder->hosts = storage_hosts_new(api->core);
    folder->rights = folder_rights_new(api);
    if ((r = owner_policies_load(api, err)) < 0 || (r = folder_rules_load(api, err)) < 0
        || (r = folder_jobs_new(api, &folder->jobs, err)) < 0)
        return r;
    return folder_recount_new(api, &folder->recount, err);
}

static void folder_feature_stop(struct api *api)
{
    storage_hosts_stop(api->folder->hosts);
    folder_jobs_stop(api->folder->jobs);
    folder_recount_stop(api->folder->recount);
    folder_rights_stop(api->folder->rights);
}

static void folder_feature_close(struct api *api)
{
    struct folder_state *folder = api->folder;

    if (!folder)
        return;
    storage_hosts_free(folder->hosts);
    folder_jobs_free(folder->jobs);
    folder_recount_free(folder->recount);
    folder_rights_free(folder->rights);
    json_decref(folder->rules);
    for (size_t i = 0; i < OWNER_POLICY_KINDS; i++)
        json_decref(folder->policies[i]);
    free(folder);
}

bool folder_mounts_automatic(const struct api *api)
{
    return api->folder->has_automatic;
}

const struct feature folder_feature = {
    .name = "folder",
    .routes = folder_routes,
    .gql = folder_gql,
    .nodes = folder_nodes,
    .same = folder_same,
    .open = folder_feature_open,
    .stop = folder_feature_stop,
    .close = folder_feature_close,
};
