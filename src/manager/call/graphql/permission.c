/* SPDX-License-Identifier: Apache-2.0 */
/* What the caller may do with a node, by the roles of the routes that do it. */
#include "manager/call/graphql/permission.h"

#include <errno.h>
#include <string.h>

#include "manager/call/graphql/node.h"

/* ---- the words ---- */

static bool permission_may_use_group(const struct gql_context *context,
                                     const struct store_page *groups, const void *row)
{
    const char *name = ((const struct agent_row *)row)->agent.resource_group;

    (void)context;
    for (size_t i = 0; i < groups->count; i++)
        if (strcmp(groups->resource_groups[i].resource_group.name, name) == 0)
            return groups->resource_groups[i].resource_group.is_active;
    return false;
}

bool gql_session_is_modified_by(const struct principal *who, const struct session *s)
{
    return uuid_equals(&s->user_id, &who->user_id) || principal_sees_domain(who, s->domain);
}

static bool permission_may_modify_session(const struct gql_context *context,
                                          const struct store_page *groups, const void *row)
{
    (void)groups;
    return gql_session_is_modified_by(context->who, &((const struct session_row *)row)->session);
}

static bool permission_may_act_for(const struct gql_context *context,
                                   const struct store_page *groups, const void *row)
{
    const struct session *s = &((const struct session_row *)row)->session;
    const struct keypair *owner;
    struct aq_error err = { 0 };

    (void)groups;
    return api_owner(context->api, context->req, s->access_key, &owner, &err) == 0;
}

static const struct permission permission_agents[] = {
    { "read_attribute" },
    { "update_attribute", "/aliquot/v1/agents/{id}", METHOD_PATCH },
    { "create_compute_session", "/session", METHOD_POST, permission_may_use_group },
    { "create_service", .is_never = true },
};
static const struct permission permission_domains[] = {
    { "read_attribute" },
    { "read_sensitive_attribute", "/domain-config/dotfiles", METHOD_GET },
    { "update_attribute", "/aliquot/v1/domains/{key}", METHOD_PATCH },
    { "create_user", "/aliquot/v1/users", METHOD_POST },
    { "create_project", "/aliquot/v1/groups", METHOD_POST },
};
static const struct permission permission_groups[] = {
    { "read_attribute" },
    { "read_sensitive_attribute", "/group-config/dotfiles", METHOD_GET },
    { "update_attribute", "/aliquot/v1/groups/{key}", METHOD_PATCH },
    { "delete_project", "/aliquot/v1/groups/{key}", METHOD_DELETE },
    { "associate_with_user", "/aliquot/v1/groups/{key}/add-users", METHOD_POST },
};
static const struct permission permission_images[] = {
    { "read_attribute" },
    { "update_attribute", "/aliquot/v1/image-limits", METHOD_PUT },
    { "create_container", "/session", METHOD_POST },
    { "forget_image", "/aliquot/v1/images/remove", METHOD_POST },
};
static const struct permission permission_sessions[] = {
    { "read_attribute" },
    { "update_attribute", "/admin/gql", METHOD_POST, permission_may_modify_session },
    { "delete_session", "/session/{name}", METHOD_DELETE, permission_may_act_for },
    { "start_app", "/session/{name}/start-service", METHOD_POST, permission_may_act_for },
    { "execute", "/session/{name}", METHOD_POST, permission_may_act_for },
    { "convert_to_image", .is_never = true },
};

#define PERMISSIONS(items) items, AQ_COUNT(items)
const struct permission_list agent_permissions = { PERMISSIONS(permission_agents),
                                                   .needs_groups = true };
const struct permission_list domain_permissions = { PERMISSIONS(permission_domains) };
const struct permission_list group_permissions = { PERMISSIONS(permission_groups) };
const struct permission_list image_permissions = { PERMISSIONS(permission_images) };
const struct permission_list session_permissions = { PERMISSIONS(permission_sessions) };

/* ---- what the caller's role may do ---- */

static const struct route *permission_find_route(const struct api *api, const struct permission *p)
{
    size_t count;
    const struct route *const *routes = router_list(api->router, &count);

    for (size_t i = 0; i < count; i++)
        if (routes[i]->method == p->method && strcmp(routes[i]->path, p->path) == 0)
            return routes[i];
    return NULL;
}

static bool permission_is_of_role(const struct gql_context *context, const struct permission *p)
{
    const struct route *route = p->path ? permission_find_route(context->api, p) : NULL;

    if (p->is_never || (p->path && !route))
        return false;
    return !route || principal_may(context->who->role, route->role & API_ROLE_MASK);
}

int permission_check(const struct gql_context *context, const struct permission_list *list,
                     const char *name, bool *ret_may, struct aq_error *err)
{
    *ret_may = true;
    for (size_t i = 0; name && i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0) {
            *ret_may = permission_is_of_role(context, &list->items[i]);
            return 0;
        }
    return name ? aq_fail(err, EINVAL, "permission: '%.64s' is no permission of these", name) : 0;
}

/* ---- permissions of nodes ---- */

struct permission_call {
    struct gql_call *call;
    const struct permission_list *list;
    struct store_query query; /* resource groups that the caller may use */
    struct store_page *groups;
};

static struct gql_value permission_list_of(const struct permission_call *p, const bool *of_role,
                                           const void *row)
{
    struct gql_value *items = arena_array(p->call->arena, p->list->count, sizeof(*items));
    uint32_t count = 0;

    for (size_t i = 0; i < p->list->count; i++) {
        const struct permission *one = &p->list->items[i];

        if (of_role[i] && (!one->may || one->may(p->call->context, p->groups, row)))
            items[count++] = gql_text(one->name);
    }
    return gql_list(items, count);
}

static int permission_fill(const struct permission_call *p)
{
    bool *of_role = arena_array(p->call->arena, p->list->count, sizeof(*of_role));

    for (size_t i = 0; i < p->list->count; i++)
        of_role[i] = permission_is_of_role(p->call->context, &p->list->items[i]);
    for (uint32_t i = 0; i < p->call->count && !arena_is_over(p->call->arena); i++)
        p->call->results[i] = permission_list_of(p, of_role, p->call->parents[i]);
    return GQL_DONE;
}

static int permission_read_groups(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct permission_call *p = data;
    int r = gql_set_room(p->call->context, &p->query, err);

    return r < 0 ? r : store_list_resource_groups(tx, &p->query, &p->groups, err);
}

static void permission_on_groups(void *data, int r, const struct aq_error *err)
{
    struct permission_call *p = data;

    (void)(r < 0 ? gql_call_fail(p->call, "%s", err->text) : permission_fill(p));
    store_page_free(p->groups);
    gql_call_done(p->call);
}

int permission_resolve(struct gql_call *call, const struct permission_list *list)
{
    const struct principal *who = ((const struct gql_context *)call->context)->who;
    struct permission_call *p = arena_alloc(call->arena, sizeof(*p));

    *p = (struct permission_call){ .call = call, .list = list };
    if (!list->needs_groups)
        return permission_fill(p);
    p->query = (struct store_query){ .domain = who->domain,
                                     .user_id = &who->user_id,
                                     .access_key = who->access_key };
    return gql_read(call, permission_read_groups, permission_on_groups, p);
}
