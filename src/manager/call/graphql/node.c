/* SPDX-License-Identifier: Apache-2.0 */
/* Rows as nodes of Relay: node(id), X_node(id) and X_nodes. */
#include "manager/call/graphql/newer.h"

#include <errno.h>
#include <string.h>

#include "manager/call/feature.h"

static const struct feature *const *node_features;

void gql_node_set_features(const struct feature *const *features)
{
    node_features = features;
}

const struct gql_node *gql_node_find(uint32_t type)
{
    for (const struct feature *const *feature = node_features; *feature; feature++)
        for (const struct gql_node *const *node = (*feature)->nodes; node && *node; node++)
            if ((*node)->type == type)
                return *node;
    return NULL;
}

static const char *gql_node_type_name(const struct gql_node *node)
{
    return schema_schema.types[node->type - 1]->name;
}

/* ---- one ---- */

int gql_node_set_id(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    struct uuid *parsed;

    if (!id)
        return 0;
    parsed = arena_alloc(fetch->call->arena, sizeof(*parsed));
    if (uuid_parse(id, parsed) < 0)
        return aq_fail(err, EINVAL, "id: '%.64s' is not a UUID", id);
    fetch->query.ids = parsed;
    fetch->query.id_count = 1;
    return 0;
}

static int gql_node_resolve(struct gql_call *call, const struct gql_node *node, const char *id,
                            uint32_t type)
{
    struct gql_fetch *fetch;
    struct aq_error err = { 0 };

    if (node->get)
        return node->get(call, id, type);
    fetch = gql_fetch_new(call, GQL_ONE, node->list, node->row_size);
    fetch->type = type;
    return node->narrow(fetch, id, &err) < 0 ? gql_fetch_fail(fetch, &err) : gql_fetch_start(fetch);
}

/* An argument that not all fields have; NULL = not given, or no text. */
static const char *gql_node_text_of(const struct gql_call *call, const char *name)
{
    const struct gql_field_def *field = call->field;
    const struct gql_input_def *arg = gql_input_find(field->args, field->arg_count, name,
                                                     strlen(name));

    return arg && call->args[arg - field->args].kind == GQL_STRING
               ? gql_arg_text(call, (unsigned)(arg - field->args))
               : NULL;
}

/* The argument 'permission'. */
static int gql_node_check_permission(const struct gql_call *call, const struct gql_node *node,
                                     bool *ret_may, struct aq_error *err)
{
    const char *name = gql_node_text_of(call, "permission");

    *ret_may = true;
    return name ? permission_check(call->context, node->permissions, name, ret_may, err) : 0;
}

/* X_node: the id is the first argument, and may be of any type or of none. */
int gql_node_get(struct gql_call *call)
{
    const struct gql_node *node = gql_node_find(call->field->type.type->id);
    const char *type, *id = relay_global_id_parse(call->arena, call->args[0].text, &type);
    struct aq_error err = { 0 };
    bool may;

    if (gql_node_check_permission(call, node, &may, &err) < 0)
        return gql_call_fail(call, "%s", err.text);
    return may ? gql_node_resolve(call, node, id, 0) : GQL_DONE;
}

static int gql_node_get_any(struct gql_call *call)
{
    const char *text = gql_arg_text(call, SCHEMA_ARG_Queries_node_id), *name;
    const char *id = relay_global_id_parse(call->arena, text, &name);
    const struct gql_type *type = relay_node_type(&schema_schema, name);

    if (!type)
        return gql_call_fail(call, "id: '%.64s' is no global id", text);
    return gql_node_resolve(call, gql_node_find(type->id), id, type->id);
}

struct gql_value gql_node_get_id(struct gql_get *get, const void *parent)
{
    const struct gql_node *node = gql_node_find(get->field->parent->id);
    char scratch[sizeof(get->scratch)];

    return gql_text(
        relay_global_id(get->arena, gql_node_type_name(node), node->id_of(parent, scratch)));
}

/* ---- lists ---- */

enum { ARG_FILTER, ARG_ORDER, ARG_OFFSET, ARG_BEFORE, ARG_AFTER, ARG_FIRST, ARG_LAST };

static int gql_node_read_part(const struct gql_call *call, const struct gql_node *node,
                              struct gql_node_part *ret, struct aq_error *err)
{
    const struct gql_value *args = call->args;

    if (newer_is_asked(call->field))
        return newer_read_part(call, node, ret, err);
    ret->filter = gql_arg_text(call, ARG_FILTER);
    ret->order = gql_arg_text(call, ARG_ORDER);
    return relay_part_parse(call->arena, args[ARG_FIRST], args[ARG_AFTER], args[ARG_LAST],
                            args[ARG_BEFORE], args[ARG_OFFSET], NODES_MAX, &ret->part, err);
}

static struct store_range gql_node_range_of(const struct relay_part *part)
{
    return (struct store_range){ .after = part->after,
                                 .before = part->before,
                                 .limit = part->limit,
                                 .offset = part->offset,
                                 .is_from_end = part->is_from_end };
}

void gql_node_set_uuid(struct gql_fetch *fetch, const struct uuid **member, const struct uuid *id)
{
    fetch->nothing |= *member && !uuid_equals(*member, id);
    *member = id;
}

static int gql_node_set_scope(struct gql_fetch *fetch, const char *kind, const char *id,
                              struct aq_error *err)
{
    struct store_query *query = &fetch->query;
    struct uuid *parsed = arena_alloc(fetch->call->arena, sizeof(*parsed));

    if (strcmp(kind, "domain") == 0) {
        fetch->nothing |= query->domain && strcmp(query->domain, id) != 0;
        query->domain = id;
        return 0;
    }
    if (uuid_parse(id, parsed) < 0)
        return aq_fail(err, EINVAL, "scope: '%.64s' is not a UUID", id);
    if (strcmp(kind, "project") == 0 && fetch->node->narrow_to_project)
        return fetch->node->narrow_to_project(fetch, parsed, err);
    gql_node_set_uuid(fetch, strcmp(kind, "user") == 0 ? &query->user_id : &query->project_id,
                      parsed);
    return 0;
}

/* Of rows that may belong to a domain, a project or a user. */
static int gql_node_narrow_to_scope(struct gql_fetch *fetch, const char *scope,
                                    struct aq_error *err)
{
    static const char *const kinds[] = { "domain", "project", "user" };

    if (!scope || strcmp(scope, "system") == 0)
        return 0;
    for (size_t i = 0; i < AQ_COUNT(kinds) && !fetch->node->is_unowned; i++) {
        size_t len = strlen(kinds[i]);

        if (strncmp(scope, kinds[i], len) == 0 && scope[len] == ':')
            return gql_node_set_scope(fetch, kinds[i], scope + len + 1, err);
    }
    return aq_fail(err, EINVAL, "scope: '%.64s' is not %s", scope,
                   fetch->node->is_unowned ? "system"
                                           : "system, domain:NAME, project:ID or user:ID");
}

int gql_node_read_args(struct gql_fetch *fetch, struct store_range *range, struct aq_error *err)
{
    const struct gql_call *call = fetch->call;
    const char *project_id = gql_node_text_of(call, "project_id");
    struct gql_node_part part;
    bool may;
    int r;

    if ((r = gql_node_read_part(call, fetch->node, &part, err)) < 0)
        return r;
    *range = gql_node_range_of(&part.part);
    fetch->query.range = range;
    fetch->query.filter = part.filter;
    fetch->query.order = part.order;
    if ((r = fetch->node->narrow(fetch, NULL, err)) < 0
        || (r = gql_node_narrow_to_scope(fetch, gql_node_text_of(call, "scope"), err)) < 0
        || (r = gql_node_narrow_to_scope(fetch, gql_node_text_of(call, "scope_id"), err)) < 0
        || (r = gql_node_check_permission(call, fetch->node, &may, err)) < 0)
        return r;
    fetch->nothing |= !may;
    return project_id ? gql_node_set_scope(fetch, "project", project_id, err) : 0;
}

const struct gql_node *gql_node_of_connection(const struct gql_type *connection)
{
    const struct gql_type *edge = gql_field_find(connection, "edges", 5)->type.type;

    return gql_node_find(gql_field_find(edge, "node", 4)->type.type->id);
}

int gql_node_list(struct gql_call *call)
{
    const struct gql_node *node = gql_node_of_connection(call->field->type.type);
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_CONNECTION, node->list, node->row_size);
    struct store_range *range = arena_alloc(call->arena, sizeof(*range));
    struct aq_error err = { 0 };

    fetch->node = node;
    return gql_node_read_args(fetch, range, &err) < 0 ? gql_fetch_fail(fetch, &err)
                                                      : gql_fetch_start(fetch);
}

/* Which row it is, counted from 1; 0 = none. */
static int64_t gql_node_find_place(const struct gql_node *node, const char *rows, size_t size,
                                   uint32_t count, const char *id)
{
    char scratch[64];

    for (uint32_t i = 0; i < count; i++)
        if (strcmp(node->id_of(rows + i * size, scratch), id) == 0)
            return i + 1;
    return 0;
}

static int gql_node_place(const struct gql_node *node, const struct store_range *range,
                          const void *rows, size_t size, uint32_t count, int64_t *ret_first,
                          int64_t *ret_count, struct aq_error *err)
{
    const char *bounds[] = { range->after, range->before };
    int64_t places[] = { 0, (int64_t)count + 1 };

    for (size_t i = 0; i < AQ_COUNT(bounds); i++)
        if (bounds[i] && !(places[i] = gql_node_find_place(node, rows, size, count, bounds[i])))
            return aq_fail(err, EINVAL, "%s: '%.64s' is not in the list (any more)",
                           i ? "before" : "after", bounds[i]);
    *ret_first = store_range_place(range, places[0], places[1] - 1, ret_count);
    return 0;
}

/* By the order that was asked for, and by id. */
struct sorting {
    const struct order *order;
    const struct gql_node *node;
};

static int gql_node_compare(const void *a, const void *b, void *data)
{
    const struct sorting *sorting = data;
    int r = order_compare(sorting->order, a, b);
    char left[64], right[64];

    return r ? r : strcmp(sorting->node->id_of(a, left), sorting->node->id_of(b, right));
}

/* Those that 'filter' finds, in 'order': a copy if one is given. */
static int gql_node_select(const struct gql_call *call, const struct gql_node *node,
                           const struct gql_node_part *part, const void **rows, size_t size,
                           uint32_t *count, struct aq_error *err)
{
    const char *filter = part->filter, *by = part->order;
    const struct filter_program *program = NULL;
    struct order order = { .count = 0 };
    struct sorting sorting = { &order, node };
    uint32_t found = 0;
    char *copy;

    by = by && *by ? by : NULL;
    filter = filter && *filter ? filter : NULL;
    if (!filter && !by)
        return 0;
    if (!node->fields)
        return aq_fail(err, EINVAL, "%s: takes no filter and no order", call->field->name);
    if (filter
        && filter_read(filter, node->fields, node->field_count, call->arena, &program, err) < 0)
        return -err->code;
    if (by && order_read(by, node->fields, node->field_count, &order, err) < 0)
        return -err->code;
    copy = arena_array(call->arena, *count + 1, size);
    for (uint32_t i = 0; i < *count; i++)
        if (!program || filter_match(program, (const char *)*rows + i * size))
            memcpy(copy + found++ * size, (const char *)*rows + i * size, size);
    if (order.count)
        qsort_r(copy, found, size, gql_node_compare, &sorting);
    *rows = copy;
    *count = found;
    return 0;
}

struct gql_value gql_node_connect(struct gql_call *call, const struct gql_node *node,
                                  const void *rows, size_t size, uint32_t count)
{
    struct gql_node_part part;
    struct store_range range;
    int64_t first = 0, shown = 0;
    struct aq_error err = { 0 };

    if (gql_node_read_part(call, node, &part, &err) < 0
        || gql_node_select(call, node, &part, &rows, size, &count, &err) < 0)
        return gql_error(call->arena, "%s", err.text);
    range = gql_node_range_of(&part.part);
    if (gql_node_place(node, &range, rows, size, count, &first, &shown, &err) < 0)
        return gql_error(call->arena, "%s", err.text);
    return gql_object(relay_connection_new(call->arena, gql_node_type_name(node), node->id_of,
                                           (const char *)rows + (size_t)first * size, size,
                                           (uint32_t)shown, first, count));
}

struct gql_value gql_node_page(struct gql_call *call, const struct gql_node *node, const void *rows,
                               size_t size, uint32_t count)
{
    int64_t limit = call->args[0].integer, offset = call->args[1].integer;
    const struct gql_node_part part = { .filter = gql_arg_text(call, 2),
                                        .order = gql_arg_text(call, 3) };
    struct gql_rows_page *page = arena_alloc(call->arena, sizeof(*page));
    struct aq_error err = { 0 };

    if (limit < 1 || limit > GQL_PAGE_MAX || offset < 0)
        return offset < 0 ? gql_error(call->arena, "offset must not be negative")
                          : gql_error(call->arena, "limit must be within 1..%d", GQL_PAGE_MAX);
    if (gql_node_select(call, node, &part, &rows, size, &count, &err) < 0)
        return gql_error(call->arena, "%s", err.text);
    offset = AQ_MIN(offset, (int64_t)count);
    limit = AQ_MIN(limit, (int64_t)count - offset);
    page->items = gql_rows_of(call->arena, (const char *)rows + (size_t)offset * size,
                              (uint32_t)limit, size);
    page->total = count;
    return gql_object(page);
}

struct gql_value gql_node_connect_page(const struct gql_fetch *fetch, const void *rows,
                                       size_t count, int64_t first, int64_t total)
{
    return gql_object(relay_connection_new(fetch->call->arena, gql_node_type_name(fetch->node),
                                           fetch->node->id_of, rows, fetch->row_size,
                                           (uint32_t)count, first, total));
}

static int gql_node_permissions(struct gql_call *call)
{
    return permission_resolve(call, gql_node_find(call->field->parent->id)->permissions);
}

/* The global id of each type, and what all connections have. */
static const struct gql_entry node_entries[] = {
    { SCHEMA_FIELD_Queries_node, GQL_CALL_COST(gql_node_get_any, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_Queries_agent_node, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_agent_nodes, GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_domain_node, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_domain_nodes, GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_group_node, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_group_nodes, GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_user_node, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_user_nodes, GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_compute_session_node, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_compute_session_nodes,
      GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_vfolder_node, GQL_CALL_COST(gql_node_get, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_vfolder_nodes,
      GQL_CALL_COST(gql_node_list, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_VirtualFolderNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_Queries_image_node, GQL_CALL_COST(gql_node_get, GQL_COST_WALK, 1) },
    { SCHEMA_FIELD_AgentNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_DomainNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_GroupNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_UserNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ScalingGroupNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ImageNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ComputeSessionNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_KernelNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ContainerRegistryNode_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_ContainerRegistry_id, GQL_GET(gql_node_get_id) },
    { SCHEMA_FIELD_Queries_container_registry_node, GQL_CALL(gql_node_get) },
    { SCHEMA_FIELD_AgentNode_permissions,
      GQL_CALL_COST(gql_node_permissions, GQL_COST_READ / 10, 1) },
    { SCHEMA_FIELD_DomainNode_permissions, GQL_CALL_COST(gql_node_permissions, GQL_COST_MADE, 1) },
    { SCHEMA_FIELD_GroupNode_permissions, GQL_CALL_COST(gql_node_permissions, GQL_COST_MADE, 1) },
    { SCHEMA_FIELD_ImageNode_permissions, GQL_CALL_COST(gql_node_permissions, GQL_COST_MADE, 1) },
    { SCHEMA_FIELD_ComputeSessionNode_permissions,
      GQL_CALL_COST(gql_node_permissions, GQL_COST_MADE, 1) },
    { SCHEMA_FIELD_PageInfo_hasNextPage, RELAY_HAS_NEXT_PAGE },
    { SCHEMA_FIELD_PageInfo_hasPreviousPage, RELAY_HAS_PREVIOUS_PAGE },
    { SCHEMA_FIELD_PageInfo_startCursor, RELAY_START_CURSOR },
    { SCHEMA_FIELD_PageInfo_endCursor, RELAY_END_CURSOR },
    NODE_CONNECTION(Agent),
    NODE_CONNECTION(Domain),
    NODE_CONNECTION(Group),
    NODE_CONNECTION(User),
    NODE_CONNECTION(ScalinGroup),
    NODE_CONNECTION(Image),
    NODE_CONNECTION(ComputeSession),
    NODE_CONNECTION(Kernel),
    NODE_CONNECTION(ContainerRegistry),
    NODE_CONNECTION(VirtualFolder),
};
GQL_ENTRIES_END(node);
