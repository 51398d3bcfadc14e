/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeSession as a node, and what it is related to. The objects are struct session_row. */
#include <string.h>

#include "base/map.h"
#include "manager/session/kernel_gql.h"
#include "manager/call/graphql/node.h"
#include "manager/session/session_feature.h"
#include "model/session_array.h"

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
    .permissions = &session_permissions,
};

/* ---- dependencies: known as long as the session lives ---- */

struct dependencies {
    struct gql_call *call;
    bool is_list; /* or a connection */
    bool is_full; /* there are more than are read */
    struct uuid *ids;
    uint32_t *parents; /* whose each of the ids is */
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

/* What is related to one parent. */
static struct gql_value gql_session_rows_of(const struct dependencies *deps, uint32_t parent)
{
    struct session_row *rows;
    size_t count = 0;
    uint32_t found = 0;

    for (size_t i = 0; i < deps->query.id_count; i++)
        count += deps->parents[i] == parent;
    rows = arena_array(deps->call->arena, count + 1, sizeof(*rows));
    for (size_t i = 0; i < deps->query.id_count; i++) {
        const struct session_row *row = deps->parents[i] == parent
                                            ? gql_session_find_row(deps->page, &deps->ids[i])
                                            : NULL;

        if (row)
            rows[found++] = *row;
    }
    return deps->is_list ? gql_rows_of(deps->call->arena, rows, found, sizeof(*rows))
                         : gql_node_connect(deps->call, &session_node, rows, sizeof(*rows), found);
}

static void gql_session_fill_related(const struct dependencies *deps)
{
    for (uint32_t i = 0; i < deps->call->count; i++)
        deps->call->results[i] = gql_session_rows_of(deps, i);
}

static void gql_session_on_dependencies(void *data, int r, const struct aq_error *err)
{
    struct dependencies *deps = data;
    struct gql_call *call = deps->call;

    if (r < 0) {
        gql_call_fail(call, "%s", err->text);
    } else {
        gql_keep(call->context, call->arena, deps->page);
        gql_session_fill_related(deps);
    }
    gql_call_done(call);
}

static void gql_session_add_id(struct dependencies *deps, uint32_t parent, const struct uuid *id)
{
    if ((deps->is_full = deps->query.id_count == STORE_IDS_MAX))
        return;
    deps->parents[deps->query.id_count] = parent;
    deps->ids[deps->query.id_count++] = *id;
}

static const struct core *gql_session_core_of(const struct gql_call *call)
{
    return ((const struct gql_context *)call->context)->api->core;
}

static const struct uuid *gql_session_parent(const struct gql_call *call, uint32_t i)
{
    return &((const struct session_row *)call->parents[i])->session.id;
}

#define ELEMENTS_SHOWN_MAX 100 /* of each array that a session waits for */

/* An array has no ComputeSession: its elements that live are shown in its place. */
static void gql_session_add_elements(struct dependencies *deps, uint32_t parent,
                                     const struct session_dependency *d)
{
    const struct core *core = gql_session_core_of(deps->call);
    const struct session *elements[ELEMENTS_SHOWN_MAX];
    size_t count = core_list_elements(core, &d->id, d->element, elements, ELEMENTS_SHOWN_MAX);

    for (size_t i = 0; i < count; i++)
        gql_session_add_id(deps, parent, &elements[i]->id);
}

/* What the parents wait for. */
static void gql_session_add_dependees(struct dependencies *deps)
{
    const struct core *core = gql_session_core_of(deps->call);

    for (uint32_t i = 0; i < deps->call->count; i++) {
        const struct session *live = core_find_session(core, gql_session_parent(deps->call, i));

        for (size_t d = 0; live && d < live->dependency_count; d++) {
            if (live->dependencies[d].is_array)
                gql_session_add_elements(deps, i, &live->dependencies[d]);
            else
                gql_session_add_id(deps, i, &live->dependencies[d].id);
        }
    }
}

/* Does 'd' name the session, or its array as a whole or by its index? */
static bool gql_session_is_meant(const struct session_dependency *d, const struct session *s)
{
    if (!d->is_array)
        return uuid_equals(&d->id, &s->id);
    return !uuid_is_nil(&s->array_id) && uuid_equals(&d->id, &s->array_id)
           && (d->element == DEPENDENCY_ALL || d->element == s->array_index);
}

/* What waits for the parents, by one walk of all sessions. */
static void gql_session_add_dependents(struct dependencies *deps)
{
    const struct gql_call *call = deps->call;
    const struct core *core = gql_session_core_of(call);
    struct map parents = MAP_INIT; /* id -> which parent, counted from 1 */

    for (uint32_t i = 0; i < call->count; i++)
        (void)map_set(&parents, gql_session_parent(call, i)->bytes, sizeof(struct uuid),
                      (void *)(uintptr_t)(i + 1));
    for (const struct session *s = core_next_session(core, NULL); s; s = core_next_session(core, s))
        for (size_t d = 0; d < s->dependency_count; d++) {
            const struct session_dependency *on = &s->dependencies[d];
            uintptr_t parent = (uintptr_t)map_get(&parents, on->id.bytes, sizeof(struct uuid));

            if (parent)
                gql_session_add_id(deps, (uint32_t)parent - 1, &s->id);
            for (uint32_t i = 0; on->is_array && i < call->count; i++)
                if (gql_session_is_meant(on,
                                         &((const struct session_row *)call->parents[i])->session))
                    gql_session_add_id(deps, i, &s->id);
        }
    map_done(&parents);
}

static int gql_session_relate(struct gql_call *call, void (*add)(struct dependencies *deps),
                              bool is_list)
{
    struct dependencies *deps = arena_alloc(call->arena, sizeof(*deps));

    deps->parents = arena_array(call->arena, STORE_IDS_MAX, sizeof(*deps->parents));
    deps->ids = arena_array(call->arena, STORE_IDS_MAX, sizeof(*deps->ids));
    deps->call = call;
    deps->is_list = is_list;
    deps->query.ids = deps->ids;
    add(deps);
    if (deps->is_full)
        return gql_call_fail(call, "%s: there are more than %d: ask for fewer sessions",
                             call->field->name, STORE_IDS_MAX);
    if (deps->query.id_count)
        return gql_read(call, gql_session_read_dependencies, gql_session_on_dependencies, deps);
    gql_session_fill_related(deps);
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

static struct gql_value gql_session_get_full_name(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct user *user = core_find_user(
        core, &((const struct session_row *)parent)->session.user_id);

    return gql_copy(get, user ? user->full_name : NULL);
}

/* [{"condition", "array", "number", "name"}] */
static struct gql_value gql_session_get_dependent_arrays(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct session *s = &((const struct session_row *)parent)->session;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct session_array *a;

    jsonw_array_begin(&w);
    for (size_t i = 0; (a = core_list_array(core, i)); i++)
        for (size_t d = 0; d < a->element.dependency_count; d++) {
            const struct session_dependency *on = &a->element.dependencies[d];

            if (!gql_session_is_meant(on, s))
                continue;
            jsonw_object_begin(&w);
            jsonw_member_str(&w, "condition", dependency_condition_name(on->condition));
            api_write_uuid(&w, "array", &a->id);
            jsonw_member_int(&w, "number", a->row);
            jsonw_member_str(&w, "name", a->name);
            jsonw_object_end(&w);
        }
    jsonw_array_end(&w);
    return gql_copy(get, out.data);
}

/* ---- its kernels ---- */

static int gql_session_kernel_nodes(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++)
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

static struct gql_value gql_session_get_folders(struct gql_get *get, const void *parent)
{
    const struct session_spec *spec = ((const struct session_row *)parent)->session.spec;
    size_t count = spec ? spec->mounts.count : 0;
    struct gql_value *ids = arena_array(get->arena, count + 1, sizeof(*ids));
    char id[UUID_TEXT_MAX];

    for (size_t i = 0; i < count; i++)
        ids[i] = gql_copy(get, uuid_format(&spec->mounts.items[i].folder, id));
    return gql_list(ids, (uint32_t)count);
}

static struct gql_value gql_session_get_images(struct gql_get *get, const void *parent)
{
    const char *image = ((const struct session_row *)parent)->session.image;
    struct gql_value *items = arena_alloc(get->arena, sizeof(*items));

    *items = gql_text(image);
    return gql_list(items, image ? 1 : 0);
}

/* As the scheduler's plan has it, which is made once for all of a group. */
static struct gql_value gql_session_get_position(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    const struct session *s = &((const struct session_row *)parent)->session;
    struct core_start_estimate estimate;

    if (s->status != SESSION_PENDING
        || core_get_start_estimate(context->api->core, &s->id, &estimate) < 0
        || estimate.position == 0)
        return gql_null();
    return gql_int((int64_t)estimate.position - 1);
}

static struct gql_value gql_session_get_type(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(session_type_name(((const struct session_row *)parent)->session.type));
}

static const struct gql_entry session_node_entries[] = {
    { SCHEMA_FIELD_ComputeSession_dependencies,
      GQL_CALL_COST(gql_session_dependencies, GQL_COST_READ, 4) },
    { SCHEMA_FIELD_ComputeSession_full_name, GQL_GET(gql_session_get_full_name) },
    { FIELD(abusing_reports), GQL_FIXED_EMPTY },
    { FIELD(row_id), AT(UUID, session.id) },
    { FIELD(project_id), AT(UUID, session.project_id) },
    { FIELD(type), GQL_GET(gql_session_get_type) },
    { FIELD(commit_status), GQL_ALWAYS_NULL },
    { FIELD(queue_position), GQL_GET_COST(gql_session_get_position, GQL_COST_TEXT) },
    { FIELD(agent_ids), GQL_GET_COST(gql_session_get_agents, GQL_COST_MADE) },
    { SCHEMA_FIELD_ComputeSession_agents, GQL_GET_COST(gql_session_get_agents, GQL_COST_MADE) },
    { FIELD(vfolder_mounts), GQL_GET_COST(gql_session_get_folders, GQL_COST_MADE) },
    { FIELD(image_references), GQL_GET(gql_session_get_images) },
    { FIELD(kernel_nodes), GQL_CALL_COST(gql_session_kernel_nodes, 1, 4) },
    { FIELD(dependees), GQL_CALL_COST(gql_session_dependees, GQL_COST_READ, 4) },
    { FIELD(dependents), GQL_CALL_COST(gql_session_dependents, GQL_COST_WALK / GQL_ROWS_WHOLE, 4) },
    { SCHEMA_FIELD_ComputeSession_dependent_arrays,
      GQL_GET_COST(gql_session_get_dependent_arrays, GQL_COST_READ) },
};
GQL_ENTRIES_END(session_node);
