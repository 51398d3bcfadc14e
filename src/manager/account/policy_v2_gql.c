/* SPDX-License-Identifier: Apache-2.0 */
/* KeypairResourcePolicyV2: keypair policies as newer clients know them, and their hosts of folders.
 * The objects are struct policy_row.
 */
#include "manager/folder/folder.h"
#include "manager/call/graphql/node.h"
#include "manager/account/account_feature.h"
#include "manager/call/graphql/mutation.h"

#define AT(how, member) GQL_##how##_AT(struct policy_row, member)

static int gql_policy_v2_narrow(struct gql_fetch *fetch, const char *name, struct aq_error *err)
{
    fetch->query.name = name;
    return gql_need(fetch->call->context, API_ADMIN, err);
}

static const char *gql_policy_v2_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct policy_row *)row)->policy.name;
}

const struct gql_node policy_v2_node = {
    .type = SCHEMA_TYPE_KeypairResourcePolicyV2,
    .id_of = gql_policy_v2_id_of,
    .list = store_list_policies,
    .row_size = sizeof(struct policy_row),
    .narrow = gql_policy_v2_narrow,
    .is_unowned = true,
};

static struct gql_value gql_policy_v2_get_hosts(struct gql_get *get, const void *parent)
{
    return folder_rule_list_hosts(get, FOLDER_RULES_POLICY,
                                  ((const struct policy_row *)parent)->policy.name);
}

/* ---- its hosts ---- */

/* A mutation under way; also its payload. */
struct policy_v2_change {
    struct gql_call *call;
    struct store_query query;
    struct store_page *page;
    const void *row;
};

static int policy_v2_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct policy_v2_change *c = data;
    int r = gql_set_room(c->call->context, &c->query, err);

    return r < 0 ? r : store_list_policies(tx, &c->query, &c->page, err);
}

static void policy_v2_on_read(void *data, int r, const struct aq_error *err)
{
    struct policy_v2_change *c = data;

    if (r < 0) {
        gql_call_fail(c->call, "%s", err->text);
    } else {
        gql_keep(c->call->context, c->call->arena, c->page);
        c->row = c->page->count ? c->page->rows : NULL;
        c->call->results[0] = gql_object(c);
    }
    gql_call_done(c->call);
}

static void policy_v2_on_changed(void *data, int r, const struct aq_error *err)
{
    struct policy_v2_change *c = data;

    if (r == 0) {
        (void)gql_read(c->call, policy_v2_read, policy_v2_on_read, c);
        return;
    }
    (void)mutation_fail(c->call, err);
    gql_call_done(c->call);
}

static int policy_v2_change_hosts(struct gql_call *call)
{
    const char *name = gql_arg_text(call,
                                    SCHEMA_ARG_Mutations_adminUpdateKeypairResourcePolicyV2_name);
    struct policy_v2_change *c = arena_alloc(call->arena, sizeof(*c));
    struct aq_error err = { 0 };

    if (!mutation_may_or_fails(call))
        return GQL_DONE;
    if (!core_find_policy(mutation_api(call)->core, name))
        return gql_call_fail(call, "name: there is no policy '%.64s'", name);
    *c = (struct policy_v2_change){ .call = call, .query = { .name = name } };
    if (folder_rules_change(mutation_api(call), FOLDER_RULES_POLICY, name,
                            folder_rule_read_entries(call), mutation_who(call),
                            policy_v2_on_changed, c, &err)
        < 0)
        return mutation_fail(call, &err);
    return GQL_LATER;
}

#define POLICY(name) SCHEMA_FIELD_KeypairResourcePolicyV2_##name

static const struct gql_entry policy_v2_entries[] = {
    { SCHEMA_FIELD_Queries_adminKeypairResourcePoliciesV2,
      GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Mutations_adminUpdateKeypairResourcePolicyV2,
      GQL_CALL_COST(policy_v2_change_hosts, GQL_COST_WRITE, 1) },
    { SCHEMA_FIELD_UpdateKeypairResourcePolicyPayload_keypairResourcePolicy,
      GQL_OBJECT_AT(struct policy_v2_change, row) },
    { POLICY(id), GQL_GET(gql_node_get_id) },
    { POLICY(name), AT(TEXT, policy.name) },
    { POLICY(createdAt), AT(TIME, created_usec) },
    { POLICY(allowedVfolderHosts), GQL_GET_COST(gql_policy_v2_get_hosts, GQL_COST_MADE) },
    NODE_CONNECTION(KeypairResourcePolicyV2),
};
GQL_ENTRIES_END(policy_v2);
