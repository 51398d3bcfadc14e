/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeSession as a node, and what it is related to. The objects are struct session_row. */
#include <errno.h>
#include <string.h>

#include "manager/gql/kernel.h"
#include "manager/gql/node.h"

#define FIELD(name) SCHEMA_FIELD_ComputeSessionNode_##name
#define AT(how, member) GQL_##how##_AT(struct session_row, member)

static const char *gql_session_id_of(const void *row, char scratch[64])
{
    return uuid_format(&((const struct session_row *)row)->session.id, scratch);
}

static int gql_session_narrow_node(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    fetch->query.with_kernels = true;
    gql_scope(fetch->call->context, &fetch->query);
    return gql_node_set_id(fetch, id, err);
}

const struct gql_node session_node = {
    .type = SCHEMA_TYPE_ComputeSessionNode,
    .id_of = gql_session_id_of,
    .list = store_list_sessions,
    .row_size = sizeof(struct session_row),
    .narrow = gql_session_narrow_node,
};

/* ---- dependencies: known as long as the session lives ---- */

struct dependencies {
    struct gql_call *call;
    bool is_list;     /* or a connection */
    struct uuid *ids; /* of all parents, one after the other */
    size_t *counts;   /* how many of them are each parent's */
    struct store_query query;
    struct store_page *page;
};

static int gql_session_read_dependencies(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct dependencies *deps = data;
    int r = gql_set_room(deps->call->context, &deps->query, err);

    return r < 0 ? r : store_list_sessions(tx, &deps->query, &deps->page, err);
}

static const struct session_row *gql_session_find_row(const struct store_page *page,
                                                      const struct uuid *id)
{
    for (size_t i = 0; page && i < page->count; i++)
        if (uuid_equals(&page->sessions[i].session.id, id))
            return &page->sessions[i];
    return NULL;
}

/* The rows of one parent, which has the 'count' ids from 'ids' on. */
static struct gql_value gql_session_rows_of(const struct dependencies *deps, const struct uuid *ids,
                                            size_t count)
{
    struct session_row *rows = arena_array(deps->call->arena, count + 1, sizeof(*rows));
    uint32_t found = 0;

    if (!rows)
        return gql_error(deps->call->arena, "out of memory");
    for (size_t i = 0; i < count; i++) {
        const struct session_row *row = gql_session_find_row(deps->page, &ids[i]);

        if (row)
            rows[found++] = *row;
    }
    return deps->is_list ? gql_rows_of(deps->call->arena, rows, found, sizeof(*rows))
                         : gql_node_connect(deps->call, &session_node, rows, sizeof(*rows), found);
}

static void gql_session_on_dependencies(void *data, int r, const struct aq_error *err)
{
    struct dependencies *deps = data;
    struct gql_call *call = deps->call;
    const struct uuid *ids = deps->ids;

    if (r < 0) {
        gql_call_fail(call, "%s", err->text);
    } else if (gql_keep(call->context, call->arena, deps->page) < 0) {
        gql_call_fail(call, "out of memory");
    } else {
        for (uint32_t i = 0; i < call->count; i++) {
            call->results[i] = gql_session_rows_of(deps, ids, deps->counts[i]);
            ids += deps->counts[i];
        }
    }
    gql_call_done(call);
}

static void gql_session_add_id(struct dependencies *deps, uint32_t parent, const struct uuid *id)
{
    if (deps->query.id_count == STORE_IDS_MAX)
        return;
    deps->ids[deps->query.id_count++] = *id;
    deps->counts[parent]++;
}

/* What a parent waits for. */
static void gql_session_add_dependees(struct dependencies *deps, uint32_t parent,
                                      const struct core *core, const struct uuid *id)
{
    const struct session *live = core_find_session(core, id);

    for (size_t d = 0; live && d < live->dependency_count; d++)
        gql_session_add_id(deps, parent, &live->dependencies[d].id);
}

/* What waits for a parent. */
static void gql_session_add_dependents(struct dependencies *deps, uint32_t parent,
                                       const struct core *core, const struct uuid *id)
{
    for (const struct session *s = core_next_session(core, NULL); s; s = core_next_session(core, s))
        for (size_t d = 0; d < s->dependency_count; d++)
            if (uuid_equals(&s->dependencies[d].id, id))
                gql_session_add_id(deps, parent, &s->id);
}

typedef void add_fn(struct dependencies *deps, uint32_t parent, const struct core *core,
                    const struct uuid *id);

static int gql_session_relate(struct gql_call *call, add_fn *add, bool is_list)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    struct dependencies *deps = arena_alloc(call->arena, sizeof(*deps));

    if (!deps || !(deps->counts = arena_array(call->arena, call->count, sizeof(*deps->counts)))
        || !(deps->ids = arena_array(call->arena, STORE_IDS_MAX, sizeof(*deps->ids))))
        return gql_call_fail(call, "out of memory");
    deps->call = call;
    deps->is_list = is_list;
    deps->query.ids = deps->ids;
    for (uint32_t i = 0; i < call->count; i++)
        add(deps, i, core, &((const struct session_row *)call->parents[i])->session.id);
    if (deps->query.id_count)
        return gql_read(call, gql_session_read_dependencies, gql_session_on_dependencies, deps);
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_session_rows_of(deps, NULL, 0);
    return GQL_DONE;
}

static int gql_session_dependencies(struct gql_call *call)
{
    return gql_session_relate(call, gql_session_add_dependees, true);
}

static int gql_session_dependees(struct gql_call *call)
{
    return gql_session_relate(call, gql_session_add_dependees, false);
}

static int gql_session_dependents(struct gql_call *call)
{
    return gql_session_relate(call, gql_session_add_dependents, false);
}

/* ---- its kernels ---- */

static int gql_session_kernel_nodes(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_kernel_nodes(call, call->parents[i]);
    return GQL_DONE;
}

/* Each agent once. */
static struct gql_value gql_session_get_agents(struct gql_get *get, const void *parent)
{
    const struct session_row *row = parent;
    size_t count = row->kernels ? row->kernel_count : 0;
    struct gql_value *ids = arena_array(get->arena, count + 1, sizeof(*ids));
    uint32_t found = 0;

    if (!ids)
        return gql_error(get->arena, "out of memory");
    for (size_t k = 0; k < count; k++) {
        const char *id = row->kernels[k].kernel.agent_id;
        uint32_t i = 0;

        while (id && i < found && strcmp(ids[i].text, id) != 0)
            i++;
        if (id && i == found)
            ids[found++] = gql_text(id);
    }
    return gql_list(ids, found);
}

static struct gql_value gql_session_get_images(struct gql_get *get, const void *parent)
{
    const char *image = ((const struct session_row *)parent)->session.image;
    struct gql_value *items = arena_alloc(get->arena, sizeof(*items));

    if (!items)
        return gql_error(get->arena, "out of memory");
    *items = gql_text(image);
    return gql_list(items, image ? 1 : 0);
}

static struct gql_value gql_session_get_type(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(session_type_name(((const struct session_row *)parent)->session.type));
}

const struct gql_entry session_node_entries[] = {
    { SCHEMA_FIELD_ComputeSession_dependencies,
      GQL_CALL_COST(gql_session_dependencies, GQL_COST_READ, 4) },
    { FIELD(row_id), AT(UUID, session.id) },
    { FIELD(project_id), AT(UUID, session.project_id) },
    { FIELD(type), GQL_GET(gql_session_get_type) },
    { FIELD(commit_status), GQL_ALWAYS_NULL },
    { FIELD(agent_ids), GQL_GET_COST(gql_session_get_agents, GQL_COST_MADE) },
    { SCHEMA_FIELD_ComputeSession_agents, GQL_GET_COST(gql_session_get_agents, GQL_COST_MADE) },
    { FIELD(vfolder_mounts), GQL_FIXED_EMPTY },
    { FIELD(image_references), GQL_GET(gql_session_get_images) },
    { FIELD(kernel_nodes), GQL_CALL_COST(gql_session_kernel_nodes, 1, 4) },
    { FIELD(dependees), GQL_CALL_COST(gql_session_dependees, GQL_COST_READ, 4) },
    { FIELD(dependents), GQL_CALL_COST(gql_session_dependents, GQL_COST_WALK / GQL_ROWS_WHOLE, 4) },
};
GQL_ENTRIES_END(session_node);
