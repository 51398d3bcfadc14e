/* SPDX-License-Identifier: Apache-2.0 */
/* Agent and its lists. The objects are struct agent_row. */
#include <errno.h>
#include <string.h>

#include "base/map.h"
#include "manager/node/agent_plugins.h"
#include "manager/session/session.h"
#include "manager/call/graphql/node.h"
#include "manager/node/node_feature.h"

#define FIELD(name) SCHEMA_FIELD_Agent_##name
#define AT(how, member) GQL_##how##_AT(struct agent_row, member)

/* ---- root fields ---- */

/* NULL after the call has failed: only administrators may. */
static struct gql_fetch *gql_agent_fetch_new(struct gql_call *call, enum gql_shape shape)
{
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_agents,
                                            sizeof(struct agent_row));
    struct aq_error err = { 0 };

    if (gql_need(call->context, API_ADMIN, &err) < 0) {
        gql_fetch_fail(fetch, &err);
        return NULL;
    }
    return fetch;
}

static int gql_agent_get_one(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_agent_fetch_new(call, GQL_ONE);

    if (!fetch)
        return GQL_DONE;
    fetch->query.name = gql_arg_text(call, SCHEMA_ARG_Queries_agent_agent_id);
    return gql_fetch_start(fetch);
}

static int gql_agent_narrow(struct gql_fetch *fetch, const char *resource_group, const char *status,
                            struct aq_error *err)
{
    enum agent_status wanted;

    fetch->query.resource_group = resource_group;
    if (!status)
        return 0;
    if (agent_status_parse(status, &wanted) < 0)
        return aq_fail(err, EINVAL, "status: '%.40s' is no agent status", status);
    fetch->query.statuses = 1u << wanted;
    return 0;
}

static int gql_agent_list(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_agent_fetch_new(call, GQL_PAGE);
    struct aq_error err = { 0 };

    if (!fetch)
        return GQL_DONE;
    fetch->query.order = "status,scaling_group,id";
    if (gql_fetch_page_args(fetch, GQL_PAGE_MAX, &err) < 0
        || gql_agent_narrow(fetch, gql_arg_text(call, SCHEMA_ARG_Queries_agent_list_scaling_group),
                            gql_arg_text(call, SCHEMA_ARG_Queries_agent_list_status), &err)
               < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

static int gql_agent_list_all(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_agent_fetch_new(call, GQL_MANY);
    struct aq_error err = { 0 };

    if (!fetch)
        return GQL_DONE;
    if (gql_agent_narrow(fetch, gql_arg_text(call, SCHEMA_ARG_Queries_agents_scaling_group),
                         gql_arg_text(call, SCHEMA_ARG_Queries_agents_status), &err)
        < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

/* ---- summaries, for everyone ---- */

#define SUMMARIES_MAX 1000

static struct gql_fetch *gql_agent_summary_new(struct gql_call *call, enum gql_shape shape)
{
    const struct principal *who = ((const struct gql_context *)call->context)->who;
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_agents,
                                            sizeof(struct agent_row));

    if (!principal_may(who->role, API_ADMIN)) {
        fetch->query.domain = who->domain;
        fetch->query.user_id = &who->user_id;
        fetch->query.access_key = who->access_key;
    }
    return fetch;
}

static int gql_agent_get_summary(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_agent_summary_new(call, GQL_ONE);

    fetch->query.name = gql_arg_text(call, SCHEMA_ARG_Queries_agent_summary_agent_id);
    return gql_fetch_start(fetch);
}

static int gql_agent_list_summaries(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_agent_summary_new(call, GQL_PAGE);
    struct aq_error err = { 0 };

    fetch->query.order = "status,scaling_group,id";
    if (gql_fetch_page_args(fetch, SUMMARIES_MAX, &err) < 0
        || gql_agent_narrow(fetch,
                            gql_arg_text(call, SCHEMA_ARG_Queries_agent_summary_list_scaling_group),
                            gql_arg_text(call, SCHEMA_ARG_Queries_agent_summary_list_status), &err)
               < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

/* ---- nodes ---- */

static const char *gql_agent_id_of(const void *row, char scratch[64])
{
    (void)scratch;
    return ((const struct agent_row *)row)->agent.id;
}

static int gql_agent_narrow_node(struct gql_fetch *fetch, const char *id, struct aq_error *err)
{
    fetch->query.name = id;
    return gql_need(fetch->call->context, API_ADMIN, err);
}

const struct gql_node agent_node = {
    .type = SCHEMA_TYPE_AgentNode,
    .id_of = gql_agent_id_of,
    .list = store_list_agents,
    .row_size = sizeof(struct agent_row),
    .narrow = gql_agent_narrow_node,
    .is_unowned = true,
    .permissions = &agent_permissions,
};

/* ---- kernels on an agent ---- */

static bool gql_agent_has_status(const struct kernel *kernel, const char *status)
{
    return status ? strcmp(kernel_status_name(kernel->status), status) == 0
                  : kernel_is_holding(kernel->status);
}

/* What kernels show of their session. */
static void gql_agent_copy_session(struct arena *arena, const struct session *s,
                                   struct session_row *ret)
{
    const struct int_list *ports = s->spec ? &s->spec->ports : NULL;
    struct session_spec *spec = arena_alloc(arena, sizeof(*spec));

    ret->session.image = arena_strdup(arena, s->image ? s->image : "");
    ret->session.created_usec = s->created_usec;
    ret->session.starts_usec = s->starts_usec;
    ret->session.spec = spec;
    if (!ports || !ports->count)
        return;
    spec->ports.items = arena_array(arena, ports->count, sizeof(*ports->items));
    memcpy(spec->ports.items, ports->items, ports->count * sizeof(*ports->items));
    spec->ports.count = ports->count;
}

/* Copies: memory may change before the reply is written. */
static void gql_agent_copy_kernel(struct arena *arena, const struct session *s,
                                  const struct kernel *kernel, struct kernel_row *ret)
{
    *ret = (struct kernel_row){ .kernel = *kernel, .session_id = s->id };
    ret->kernel.session = NULL;
    ret->kernel.alloc = NULL;
    ret->kernel.service_ports = kernel->service_ports ? arena_strdup(arena, kernel->service_ports)
                                                      : NULL;
    ret->kernel.agent_id = arena_strdup(arena, kernel->agent_id);
    ret->kernel.requested.items = arena_array(
        arena, kernel->requested.count ? kernel->requested.count : 1, sizeof(struct slot));
    if (kernel->requested.count)
        memcpy(ret->kernel.requested.items, kernel->requested.items,
               kernel->requested.count * sizeof(struct slot));
}

/* The kernels of each agent of a call, found by one walk of all sessions. */
struct on_agents {
    struct gql_call *call;
    const char *status;
    struct map index; /* agent id -> which parent, counted from 1 */
    uint32_t *counts;
    struct gql_container **items;
};

typedef void (*gql_agent_visit_fn)(struct on_agents *on, uint32_t parent, const struct session *s,
                                   const struct kernel *kernel);

/* Each kernel on one of the agents that the caller may see: of its own domain. Ends once the
 * request is over its memory.
 */
static void gql_agent_walk_kernels(struct on_agents *on, gql_agent_visit_fn visit)
{
    const struct gql_context *context = on->call->context;
    const struct core *core = context->api->core;

    for (const struct session *s = core_next_session(core, NULL);
         s && !arena_is_over(on->call->arena); s = core_next_session(core, s)) {
        if (!principal_sees_domain(context->who, s->domain))
            continue;
        for (size_t k = 0; k < s->kernel_count; k++) {
            const struct kernel *kernel = &s->kernels[k];
            uintptr_t at = kernel->agent_id && gql_agent_has_status(kernel, on->status)
                               ? (uintptr_t)map_gets(&on->index, kernel->agent_id)
                               : 0;

            if (at)
                visit(on, (uint32_t)at - 1, s, kernel);
        }
    }
}

static void gql_agent_count_kernel(struct on_agents *on, uint32_t parent, const struct session *s,
                                   const struct kernel *kernel)
{
    (void)s;
    (void)kernel;
    on->counts[parent]++;
}

static void gql_agent_add_kernel(struct on_agents *on, uint32_t parent, const struct session *s,
                                 const struct kernel *kernel)
{
    struct kernel_row *row = arena_alloc(on->call->arena, sizeof(*row));
    struct session_row *session = arena_alloc(on->call->arena, sizeof(*session));

    gql_agent_copy_kernel(on->call->arena, s, kernel, row);
    gql_agent_copy_session(on->call->arena, s, session);
    on->items[parent][on->counts[parent]++] = (struct gql_container){ row, session };
}

static void gql_agent_find_kernels(struct on_agents *on)
{
    struct gql_call *call = on->call;

    on->counts = arena_array(call->arena, call->count, sizeof(*on->counts));
    on->items = arena_array(call->arena, call->count, sizeof(struct gql_container *));
    for (uint32_t i = 0; i < call->count; i++)
        map_sets(&on->index, ((const struct agent_row *)call->parents[i])->agent.id,
                 (void *)(uintptr_t)(i + 1));
    gql_agent_walk_kernels(on, gql_agent_count_kernel);
    for (uint32_t i = 0; i < call->count; i++) {
        on->items[i] = arena_array(call->arena, on->counts[i] + 1, sizeof(**on->items));
        on->counts[i] = 0;
    }
    gql_agent_walk_kernels(on, gql_agent_add_kernel);
    map_done(&on->index);
}

/* One domain's administrator sees the kernels of that domain only: what others hold is
 * in the agent's occupied_slots.
 */
static int gql_agent_containers(struct gql_call *call)
{
    struct on_agents on = { .call = call,
                            .status = gql_arg_text(call,
                                                   SCHEMA_ARG_Agent_compute_containers_status),
                            .index = MAP_INIT };

    gql_agent_find_kernels(&on);
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_rows_of(call->arena, on.items[i], on.counts[i],
                                       sizeof(struct gql_container));
    return GQL_DONE;
}

static int gql_agent_kernel_nodes(struct gql_call *call)
{
    struct on_agents on = { .call = call, .index = MAP_INIT };

    gql_agent_find_kernels(&on);
    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_node_connect(call, gql_node_find(SCHEMA_TYPE_KernelNode),
                                            on.items[i], sizeof(struct gql_container),
                                            on.counts[i]);
    return GQL_DONE;
}

/* ---- values ---- */

static struct gql_value gql_agent_get_status(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(agent_status_name(((const struct agent_row *)parent)->agent.status));
}

static struct gql_value gql_agent_get_available(struct gql_get *get, const void *parent)
{
    return gql_slots(get, &((const struct agent_row *)parent)->agent.available);
}

static struct gql_value gql_agent_get_occupied(struct gql_get *get, const void *parent)
{
    return gql_slots(get, &((const struct agent_row *)parent)->occupied);
}

static const char *gql_agent_plugins_of(const struct gql_get *get, const struct agent_row *row)
{
    return core_agent_get_plugins(((const struct gql_context *)get->context)->api->core,
                                  row->agent.id);
}

static struct gql_value gql_agent_get_plugins(struct gql_get *get, const void *parent)
{
    const struct agent_row *row = parent;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    plugins_write_compute(row->agent.version, gql_agent_plugins_of(get, row), &w);
    return gql_copy(get, text.data);
}

static struct gql_value gql_agent_get_hardware(struct gql_get *get, const void *parent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    plugins_write_hardware(gql_agent_plugins_of(get, parent), &w);
    return gql_copy(get, text.data);
}

static struct gql_value gql_agent_get_alloc_map(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (core_write_gpu_map(core, ((const struct agent_row *)parent)->agent.id, &w) < 0)
        return gql_error(get->arena, "cannot map the allocations of the agent to its devices");
    return gql_copy(get, text.data);
}

static struct gql_value gql_agent_get_alloc_object(struct gql_get *get, const void *parent)
{
    struct gql_value text = gql_agent_get_alloc_map(get, parent);

    return text.kind == GQL_STRING ? gql_raw(text.text, text.count) : text;
}

/* Clients crash on null, and on objects without both keys. */
static struct gql_value gql_agent_get_live_stat(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct agent_row *agent = parent;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    agent_measured_write(core_agent_measured(core, agent->agent.id), &w);
    return gql_copy(get, text.data);
}

/* A metric of the node; NULL without one. */
static const struct measured_item *gql_agent_find_metric(const struct gql_get *get,
                                                         const void *parent, const char *key)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct agent_row *agent = parent;
    const struct agent_measured *m = core_agent_measured(core, agent->agent.id);

    return m ? measured_find(&m->node, key) : NULL;
}

static struct gql_value gql_agent_get_cpu_percent(struct gql_get *get, const void *parent)
{
    const struct measured_item *item = gql_agent_find_metric(get, parent, "cpu_util");
    double percent = item ? metric_percent(&item->metric, item->kind) : 0;

    return gql_float(AQ_MAX(percent, 0));
}

static struct gql_value gql_agent_get_memory(struct gql_get *get, const void *parent)
{
    const struct measured_item *item = gql_agent_find_metric(get, parent, "mem");

    return gql_float(item ? metric_current(&item->metric, item->kind) : 0);
}

static const struct gql_entry agent_entries[] = {
    { SCHEMA_FIELD_Queries_agent, GQL_CALL_COST(gql_agent_get_one, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_agent_list, GQL_CALL_COST(gql_agent_list, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_agents,
      GQL_CALL_COST(gql_agent_list_all, GQL_COST_READ, GQL_ROWS_WHOLE) },
    { SCHEMA_FIELD_Queries_agent_summary, GQL_CALL_COST(gql_agent_get_summary, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_agent_summary_list,
      GQL_CALL_COST(gql_agent_list_summaries, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_AgentSummaryList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_AgentSummaryList_total_count, GQL_PAGE_TOTAL },
    { SCHEMA_FIELD_AgentList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_AgentList_total_count, GQL_PAGE_TOTAL },
    { FIELD(id), AT(CHARS, agent.id) },
    { SCHEMA_FIELD_AgentNode_row_id, AT(CHARS, agent.id) },
    { FIELD(status), GQL_GET(gql_agent_get_status) },
    { FIELD(status_changed), AT(TIME, agent.status_changed_usec) },
    { FIELD(region), AT(TEXT, agent.region) },
    { FIELD(scaling_group), AT(TEXT, agent.resource_group) },
    { FIELD(schedulable), AT(BOOL, agent.schedulable) },
    { FIELD(available_slots), GQL_GET_COST(gql_agent_get_available, GQL_COST_MADE) },
    { FIELD(occupied_slots), GQL_GET_COST(gql_agent_get_occupied, GQL_COST_MADE) },
    { FIELD(addr), AT(TEXT, agent.addr) },
    { FIELD(architecture), AT(TEXT, agent.architecture) },
    { FIELD(first_contact), AT(TIME, agent.first_contact_usec) },
    { FIELD(lost_at), AT(TIME, agent.lost_usec) },
    { FIELD(live_stat), GQL_GET_COST(gql_agent_get_live_stat, GQL_COST_TEXT) },
    { FIELD(version), AT(TEXT, agent.version) },
    { FIELD(compute_plugins), GQL_GET_COST(gql_agent_get_plugins, GQL_COST_TEXT) },
    { FIELD(hardware_metadata), GQL_GET_COST(gql_agent_get_hardware, GQL_COST_TEXT) },
    { FIELD(local_config), GQL_FIXED_TEXT("{}") },
    { FIELD(cpu_cur_pct), GQL_GET(gql_agent_get_cpu_percent) },
    { FIELD(mem_cur_bytes), GQL_GET(gql_agent_get_memory) },
    { SCHEMA_FIELD_AgentNode_gpu_alloc_map,
      GQL_GET_COST(gql_agent_get_alloc_object, GQL_COST_TEXT) },
    { FIELD(gpu_alloc_map), GQL_GET_COST(gql_agent_get_alloc_map, GQL_COST_TEXT) },
    { FIELD(compute_containers),
      GQL_CALL_COST(gql_agent_containers, GQL_COST_WALK / GQL_ROWS_WHOLE, 4) },
    { SCHEMA_FIELD_AgentNode_kernel_nodes,
      GQL_CALL_COST(gql_agent_kernel_nodes, GQL_COST_WALK / GQL_ROWS_WHOLE, 4) },
    { FIELD(drain_reason), AT(TEXT, agent.drain_reason) },
};
GQL_ENTRIES_END(agent);
