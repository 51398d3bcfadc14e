/* SPDX-License-Identifier: Apache-2.0 */
/* Mutations about who may use which resource groups, and of agents.
 *
 * associate_... and disassociate_..., each with the arguments 'scaling_group',
 * 'scaling_groups' or none (all), and 'domain', 'user_group' or 'access_key'.
 */
#include <string.h>

#include "manager/account/account.h"
#include "manager/account/account_feature.h"
#include "manager/call/graphql/mutation.h"

static const struct gql_value *access_mutation_find(const struct gql_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->field->arg_count; i++)
        if (strcmp(call->field->args[i].name, name) == 0)
            return &call->args[i];
    return NULL;
}

static const char *access_mutation_text(const struct gql_call *call, const char *name)
{
    const struct gql_value *value = access_mutation_find(call, name);

    return value ? value->text : NULL;
}

/* The groups that are named: 1, several, or none where all are meant. */
static int access_mutation_groups(const struct gql_call *call, struct core_access_change *change,
                                  struct aq_error *err)
{
    const struct gql_value *one = access_mutation_find(call, "scaling_group");
    const struct gql_value *many = access_mutation_find(call, "scaling_groups");
    size_t count = one ? 1 : many ? many->count : 0;
    const char **names = arena_array(call->arena, count + 1, sizeof(*names));

    if (many && !count)
        return api_fail_param(err, "scaling_groups", "name at least one");
    for (size_t i = 0; i < count; i++) {
        const struct gql_value *name = one ? one : &many->items[i];

        names[i] = name->kind == GQL_STRING ? name->text : "";
    }
    change->resource_groups = names;
    change->count = count;
    return 0;
}

static int access_mutation_change(struct gql_call *call)
{
    struct api *api = mutation_api(call);
    struct core_access_change change = {
        .domain = access_mutation_text(call, "domain"),
        .project_id = access_mutation_text(call, "user_group"),
        .access_key = access_mutation_text(call, "access_key"),
        .is_allowed = strncmp(call->field->name, "associate", 9) == 0,
    };
    struct aq_error err = { 0 };

    if (!mutation_may(call))
        return GQL_DONE;
    if (access_mutation_groups(call, &change, &err) < 0
        || account_check_access(api, call->arena, &change, &err) < 0)
        return mutation_refuse(call, &err);
    core_change_access(api->core, &change, mutation_who(call), mutation_on_done, call);
    return GQL_LATER;
}

/* ---- agents ---- */

static int access_mutation_modify_agent(struct gql_call *call)
{
    struct core *core = mutation_api(call)->core;
    const char *id = gql_arg_text(call, SCHEMA_ARG_Mutations_modify_agent_id);
    struct gql_value group = mutation_prop(call, "scaling_group");
    struct gql_value schedulable = mutation_prop(call, "schedulable");
    struct core_agent_change change = {
        .drain = !gql_is_given(schedulable) ? CORE_AGENT_DRAIN_KEEP
                 : schedulable.boolean      ? CORE_AGENT_DRAIN_OFF
                                            : CORE_AGENT_DRAIN_ON,
        .resource_group = gql_is_given(group) ? group.text : NULL,
    };

    if (!mutation_may(call))
        return GQL_DONE;
    core_change_agent(core, id, &change, mutation_who(call), mutation_on_done, call);
    return GQL_LATER;
}

static int access_mutation_rescan_devices(struct gql_call *call)
{
    const char *id = gql_arg_text(call, SCHEMA_ARG_Mutations_rescan_gpu_alloc_maps_agent_id);

    if (!mutation_may_or_fails(call))
        return GQL_DONE;
    if (!core_find_agent(mutation_api(call)->core, id))
        return gql_call_fail(call, "agent_id: there is no agent '%.64s'", id);
    call->results[0] = gql_object(id);
    return GQL_DONE;
}

#define ACCESS(name)                                                                            \
    {                                                                                           \
        SCHEMA_FIELD_Mutations_##name, GQL_CALL_COST(access_mutation_change, GQL_COST_WRITE, 1) \
    }

static const struct gql_entry access_mutation_entries[] = {
    ACCESS(associate_scaling_group_with_domain),
    ACCESS(associate_scaling_groups_with_domain),
    ACCESS(disassociate_scaling_group_with_domain),
    ACCESS(disassociate_scaling_groups_with_domain),
    ACCESS(disassociate_all_scaling_groups_with_domain),
    ACCESS(associate_scaling_group_with_user_group),
    ACCESS(associate_scaling_groups_with_user_group),
    ACCESS(disassociate_scaling_group_with_user_group),
    ACCESS(disassociate_scaling_groups_with_user_group),
    ACCESS(disassociate_all_scaling_groups_with_group),
    ACCESS(associate_scaling_group_with_keypair),
    ACCESS(associate_scaling_groups_with_keypair),
    ACCESS(disassociate_scaling_group_with_keypair),
    ACCESS(disassociate_scaling_groups_with_keypair),
    { SCHEMA_FIELD_Mutations_modify_agent,
      GQL_CALL_COST(access_mutation_modify_agent, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_Mutations_rescan_gpu_alloc_maps, GQL_CALL(access_mutation_rescan_devices) },
    { SCHEMA_FIELD_RescanGPUAllocMaps_task_id, GQL_ALWAYS_NULL },
    MUTATION_RESULT(AssociateScalingGroupWithDomain),
    MUTATION_RESULT(AssociateScalingGroupsWithDomain),
    MUTATION_RESULT(DisassociateScalingGroupWithDomain),
    MUTATION_RESULT(DisassociateScalingGroupsWithDomain),
    MUTATION_RESULT(DisassociateAllScalingGroupsWithDomain),
    MUTATION_RESULT(AssociateScalingGroupWithUserGroup),
    MUTATION_RESULT(AssociateScalingGroupsWithUserGroup),
    MUTATION_RESULT(DisassociateScalingGroupWithUserGroup),
    MUTATION_RESULT(DisassociateScalingGroupsWithUserGroup),
    MUTATION_RESULT(DisassociateAllScalingGroupsWithGroup),
    MUTATION_RESULT(AssociateScalingGroupWithKeyPair),
    MUTATION_RESULT(AssociateScalingGroupsWithKeyPair),
    MUTATION_RESULT(DisassociateScalingGroupWithKeyPair),
    MUTATION_RESULT(DisassociateScalingGroupsWithKeyPair),
    MUTATION_RESULT(ModifyAgent),
};
GQL_ENTRIES_END(access_mutation);
