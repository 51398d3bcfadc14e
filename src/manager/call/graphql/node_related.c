/* SPDX-License-Identifier: Apache-2.0 */
/* What belongs to nodes, as connections: all parents' rows are read in one transaction. */
#include <errno.h>
#include <string.h>

#include "manager/call/graphql/node.h"
#include "store/folder.h"

/* Narrows the query of a node's rows to what belongs to the parent. */
typedef int gql_node_of_fn(struct gql_fetch *fetch, const void *parent, struct aq_error *err);

struct related {
    struct gql_call *call;
    struct gql_fetch **fetches; /* one for each parent */
};

static int gql_node_read_related(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct related *related = data;
    size_t bytes = 0;
    int r = 0;

    for (uint32_t i = 0; r == 0 && i < related->call->count; i++) {
        struct gql_fetch *fetch = related->fetches[i];

        if (fetch->nothing)
            continue;
        if ((r = gql_set_room(related->call->context, &fetch->query, err)) < 0)
            break;
        if (bytes >= fetch->query.bytes_max)
            return aq_fail_field(err, EMSGSIZE, "limit",
                                 "the rows of all lists have more than %d "
                                 "bytes: ask for fewer",
                                 GQL_KEPT_MAX);
        fetch->query.bytes_max -= bytes;
        r = fetch->list(tx, &fetch->query, &fetch->page, err);
        bytes += fetch->page ? fetch->page->arena.used : 0;
    }
    return r;
}

/* What one parent has; the page is kept or freed. */
static struct gql_value gql_node_take_related(struct gql_fetch *fetch)
{
    const struct store_page *page = fetch->page;

    if (!page)
        return gql_node_connect_page(fetch, NULL, 0, 0, 0);
    gql_keep(fetch->call->context, fetch->call->arena, fetch->page);
    return gql_node_connect_page(fetch, page->rows, page->count, page->first, page->total);
}

static void gql_node_on_related(void *data, int r, const struct aq_error *err)
{
    const struct related *related = data;
    struct gql_call *call = related->call;

    for (uint32_t i = 0; i < call->count; i++)
        if (r == 0)
            call->results[i] = gql_node_take_related(related->fetches[i]);
        else
            store_page_free(related->fetches[i]->page);
    if (r < 0)
        gql_call_fail(call, "%s", err->text);
    gql_call_done(call);
}

static int gql_node_connect_each(struct gql_call *call, gql_node_of_fn *narrow)
{
    const struct gql_node *node = gql_node_of_connection(call->field->type.type);
    struct related *related = arena_alloc(call->arena, sizeof(*related));
    struct store_range *ranges = arena_array(call->arena, call->count, sizeof(*ranges));
    struct aq_error err = { 0 };

    related->call = call;
    related->fetches = arena_array(call->arena, call->count, sizeof(struct gql_fetch *));
    for (uint32_t i = 0; i < call->count; i++) {
        struct gql_fetch *fetch = gql_fetch_new(call, GQL_CONNECTION, node->list, node->row_size);

        if (arena_is_over(call->arena)) /* each keeps a copy of the filter */
            return GQL_DONE;
        related->fetches[i] = fetch;
        fetch->node = node;
        if (gql_node_read_args(fetch, &ranges[i], &err) < 0
            || narrow(fetch, call->parents[i], &err) < 0)
            return gql_fetch_fail(fetch, &err);
    }
    return gql_read(call, gql_node_read_related, gql_node_on_related, related);
}

/* ---- one row for each parent ---- */

struct loaded {
    struct gql_fetch *fetch;
    const struct uuid **ids; /* of each parent; NULL = none */
};

static int gql_node_read_ids(struct store_tx *tx, struct gql_fetch *fetch, struct aq_error *err)
{
    int r = gql_set_room(fetch->call->context, &fetch->query, err);

    if (r < 0)
        return r;
    return fetch->folders ? store_list_folders(tx, fetch->folders, &fetch->query, &fetch->page, err)
                          : fetch->list(tx, &fetch->query, &fetch->page, err);
}

static int gql_node_read_loaded(struct store_tx *tx, void *data, struct aq_error *err)
{
    return gql_node_read_ids(tx, ((struct loaded *)data)->fetch, err);
}

static const void *gql_node_find_loaded(const struct gql_fetch *fetch, const struct uuid *id)
{
    char text[UUID_TEXT_MAX], scratch[64];

    (void)uuid_format(id, text);
    for (size_t i = 0; i < fetch->page->count; i++) {
        const void *row = (const char *)fetch->page->rows + i * fetch->row_size;

        if (strcmp(fetch->node->id_of(row, scratch), text) == 0)
            return row;
    }
    return NULL;
}

static void gql_node_on_loaded(void *data, int r, const struct aq_error *err)
{
    const struct loaded *loaded = data;
    struct gql_fetch *fetch = loaded->fetch;
    struct gql_call *call = fetch->call;

    if (r < 0)
        gql_call_fail(call, "%s", err->text);
    else
        gql_keep(call->context, call->arena, fetch->page);
    for (uint32_t i = 0; r == 0 && i < call->count; i++)
        if (loaded->ids[i])
            call->results[i] = gql_object(gql_node_find_loaded(fetch, loaded->ids[i]));
    gql_call_done(call);
}

int gql_node_load(struct gql_call *call, const struct gql_node *node,
                  const struct uuid *(*id_of)(const void *parent))
{
    struct loaded *loaded = arena_alloc(call->arena, sizeof(*loaded));
    struct uuid *ids = arena_array(call->arena, call->count + 1, sizeof(*ids));
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_MANY, node->list, node->row_size);
    struct aq_error err = { 0 };
    char text[UUID_TEXT_MAX];
    size_t count = 0;

    loaded->fetch = fetch;
    loaded->ids = arena_array(call->arena, call->count, sizeof(*loaded->ids));
    fetch->node = node;
    for (uint32_t i = 0; i < call->count; i++)
        if (!uuid_is_nil(id_of(call->parents[i]))) {
            loaded->ids[i] = id_of(call->parents[i]);
            ids[count++] = *loaded->ids[i];
        }
    if (count == 0)
        return GQL_DONE;
    if (count > STORE_IDS_MAX)
        return gql_call_fail(call, "%s: of %d rows at most", call->field->name, STORE_IDS_MAX);
    if (node->narrow(fetch, uuid_format(ids, text), &err) < 0)
        return gql_fetch_fail(fetch, &err);
    fetch->query.ids = ids;
    fetch->query.id_count = count;
    return gql_read(call, gql_node_read_loaded, gql_node_on_loaded, loaded);
}

/* ---- several rows for each parent, by their ids ---- */

struct loaded_lists {
    struct gql_fetch *fetch;
    struct {
        const struct uuid *ids;
        size_t count;
    } * of; /* each parent */
};

static int gql_node_read_loaded_lists(struct store_tx *tx, void *data, struct aq_error *err)
{
    return gql_node_read_ids(tx, ((struct loaded_lists *)data)->fetch, err);
}

static void gql_node_on_loaded_lists(void *data, int r, const struct aq_error *err)
{
    const struct loaded_lists *loaded = data;
    struct gql_fetch *fetch = loaded->fetch;
    struct gql_call *call = fetch->call;

    if (r < 0)
        gql_call_fail(call, "%s", err->text);
    else
        gql_keep(call->context, call->arena, fetch->page);
    for (uint32_t i = 0; r == 0 && i < call->count; i++) {
        const void **rows = arena_array(call->arena, loaded->of[i].count + 1, sizeof(*rows));
        uint32_t count = 0;

        for (size_t k = 0; k < loaded->of[i].count; k++)
            if ((rows[count] = gql_node_find_loaded(fetch, &loaded->of[i].ids[k])))
                count++;
        call->results[i] = gql_rows(rows, count);
    }
    gql_call_done(call);
}

int gql_node_load_lists(struct gql_call *call, const struct gql_node *node,
                        const struct uuid *(*ids_of)(const struct gql_call *call,
                                                     const void *parent, size_t *ret_count))
{
    struct loaded_lists *loaded = arena_alloc(call->arena, sizeof(*loaded));
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_MANY, node->list, node->row_size);
    struct uuid *ids = arena_array(call->arena, STORE_IDS_MAX, sizeof(*ids));
    struct aq_error err = { 0 };
    char text[UUID_TEXT_MAX];
    size_t count = 0;

    loaded->fetch = fetch;
    loaded->of = arena_array(call->arena, call->count, sizeof(*loaded->of));
    fetch->node = node;
    for (uint32_t i = 0; i < call->count; i++) {
        loaded->of[i].ids = ids_of(call, call->parents[i], &loaded->of[i].count);
        if (count + loaded->of[i].count > STORE_IDS_MAX)
            return gql_call_fail(call, "%s: of %d rows at most", call->field->name, STORE_IDS_MAX);
        for (size_t k = 0; k < loaded->of[i].count; k++)
            ids[count++] = loaded->of[i].ids[k];
        call->results[i] = gql_rows(NULL, 0);
    }
    if (count == 0)
        return GQL_DONE;
    if (node->narrow(fetch, uuid_format(ids, text), &err) < 0)
        return gql_fetch_fail(fetch, &err);
    fetch->query.ids = ids;
    fetch->query.id_count = count;
    return gql_read(call, gql_node_read_loaded_lists, gql_node_on_loaded_lists, loaded);
}

/* ---- lists for each parent ---- */

static int gql_node_narrow_to_user(struct gql_fetch *fetch, const void *parent,
                                   struct aq_error *err)
{
    (void)err;
    gql_node_set_uuid(fetch, &fetch->query.user_id, &((const struct user_row *)parent)->user.id);
    return 0;
}

static int gql_node_projects_of_user(struct gql_call *call)
{
    return gql_node_connect_each(call, gql_node_narrow_to_user);
}

static int gql_node_narrow_to_project(struct gql_fetch *fetch, const void *parent,
                                      struct aq_error *err)
{
    (void)err;
    fetch->query.project_id = &((const struct project_row *)parent)->project.id;
    return 0;
}

static int gql_node_users_of_project(struct gql_call *call)
{
    return gql_node_connect_each(call, gql_node_narrow_to_project);
}

static int gql_node_narrow_to_domain(struct gql_fetch *fetch, const void *parent,
                                     struct aq_error *err)
{
    (void)err;
    fetch->query.domain = ((const struct domain_row *)parent)->domain.name;
    return 0;
}

static int gql_node_groups_of_domain(struct gql_call *call)
{
    return gql_node_connect_each(call, gql_node_narrow_to_domain);
}

static int gql_node_narrow_to_agent(struct gql_fetch *fetch, const void *parent,
                                    struct aq_error *err)
{
    (void)err;
    fetch->query.agent = ((const struct agent_row *)parent)->agent.id;
    return 0;
}

static int gql_node_sessions_of_agent(struct gql_call *call)
{
    return gql_node_connect_each(call, gql_node_narrow_to_agent);
}

static const struct gql_entry node_related_entries[] = {
    { SCHEMA_FIELD_UserNode_project_nodes,
      GQL_CALL_COST(gql_node_projects_of_user, NODES_COST, 4) },
    { SCHEMA_FIELD_UserV2_projects, GQL_CALL_SHORT(gql_node_projects_of_user, NODES_COST, 4) },
    { SCHEMA_FIELD_GroupNode_user_nodes,
      GQL_CALL_COST(gql_node_users_of_project, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_AgentV2_sessions,
      GQL_CALL_COST(gql_node_sessions_of_agent, NODES_COST, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_DomainNode_scaling_groups,
      GQL_CALL_COST(gql_node_groups_of_domain, NODES_COST, 4) },
};
GQL_ENTRIES_END(node_related);
