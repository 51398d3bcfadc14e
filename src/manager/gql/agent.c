/* SPDX-License-Identifier: Apache-2.0 */
/* Agent and its lists. The objects are struct agent_row. */
#include <errno.h>
#include <string.h>

#include "manager/view/agent_plugins.h"
#include "manager/gql/kernel.h"
#include "manager/gql/resolve.h"

#define FIELD(name) SCHEMA_FIELD_Agent_##name
#define AT(how, member) GQL_##how##_AT(struct agent_row, member)

/* ---- root fields ---- */

static struct gql_fetch *gql_agent_fetch_new(struct gql_call *call, enum gql_shape shape)
{
    struct gql_fetch *fetch = gql_fetch_new(call, shape, store_list_agents,
                                            sizeof(struct agent_row));
    struct aq_error err = { 0 };

    if (fetch && gql_need(call->context, API_ADMIN, &err) < 0) {
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
    fetch->query.name = gql_arg_text(call, SCHEMA_ARG_Query_agent_agent_id);
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
    if (gql_fetch_page_args(fetch, &err) < 0
        || gql_agent_narrow(fetch, gql_arg_text(call, SCHEMA_ARG_Query_agent_list_scaling_group),
                            gql_arg_text(call, SCHEMA_ARG_Query_agent_list_status), &err)
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
    if (gql_agent_narrow(fetch, gql_arg_text(call, SCHEMA_ARG_Query_agents_scaling_group),
                         gql_arg_text(call, SCHEMA_ARG_Query_agents_status), &err)
        < 0)
        return gql_fetch_fail(fetch, &err);
    return gql_fetch_start(fetch);
}

/* ---- kernels on an agent ---- */

static bool gql_agent_is_on(const struct kernel *kernel, const char *agent_id, const char *status)
{
    return kernel->agent_id && strcmp(kernel->agent_id, agent_id) == 0
           && (status ? strcmp(kernel_status_name(kernel->status), status) == 0
                      : kernel_is_holding(kernel->status));
}

static size_t gql_agent_count_kernels(const struct core *core, const char *agent_id,
                                      const char *status)
{
    size_t count = 0;

    for (const struct session *s = core_next_session(core, NULL); s; s = core_next_session(core, s))
        for (size_t k = 0; k < s->kernel_count; k++)
            count += gql_agent_is_on(&s->kernels[k], agent_id, status);
    return count;
}

/* Copies: memory may change before the reply is written. */
static int gql_agent_copy_kernel(struct arena *arena, const struct session *s,
                                 const struct kernel *kernel, struct kernel_row *ret)
{
    *ret = (struct kernel_row){ .kernel = *kernel, .session_id = s->id };
    ret->kernel.session = NULL;
    ret->kernel.alloc = NULL;
    ret->kernel.agent_id = arena_strdup(arena, kernel->agent_id);
    ret->kernel.requested.items = arena_array(
        arena, kernel->requested.count ? kernel->requested.count : 1, sizeof(struct slot));
    if (!ret->kernel.agent_id || !ret->kernel.requested.items)
        return -ENOMEM;
    if (kernel->requested.count)
        memcpy(ret->kernel.requested.items, kernel->requested.items,
               kernel->requested.count * sizeof(struct slot));
    return 0;
}

static struct gql_value gql_agent_kernels_of(const struct gql_call *call,
                                             const struct agent_row *agent, const char *status)
{
    const struct core *core = ((const struct gql_context *)call->context)->api->core;
    size_t count = gql_agent_count_kernels(core, agent->agent.id, status), n = 0;
    struct gql_container *items = arena_array(call->arena, count + 1, sizeof(*items));
    struct kernel_row *rows = arena_array(call->arena, count + 1, sizeof(*rows));

    if (!items || !rows)
        return gql_error(call->arena, "out of memory");
    for (const struct session *s = core_next_session(core, NULL); s; s = core_next_session(core, s))
        for (size_t k = 0; k < s->kernel_count; k++) {
            if (!gql_agent_is_on(&s->kernels[k], agent->agent.id, status))
                continue;
            if (gql_agent_copy_kernel(call->arena, s, &s->kernels[k], &rows[n]) < 0)
                return gql_error(call->arena, "out of memory");
            items[n].row = &rows[n];
            n++;
        }
    return gql_rows_of(call->arena, items, (uint32_t)n, sizeof(*items));
}

static int gql_agent_containers(struct gql_call *call)
{
    const char *status = gql_arg_text(call, SCHEMA_ARG_Agent_compute_containers_status);

    for (uint32_t i = 0; i < call->count; i++)
        call->results[i] = gql_agent_kernels_of(call, call->parents[i], status);
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

/* A text, or why there is none. */
static struct gql_value gql_agent_copy_text(struct gql_get *get, const struct strbuf *text)
{
    return strbuf_ok(text) ? gql_copy(get, text->data) : gql_error(get->arena, "out of memory");
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
    return gql_agent_copy_text(get, &text);
}

static struct gql_value gql_agent_get_hardware(struct gql_get *get, const void *parent)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    plugins_write_hardware(gql_agent_plugins_of(get, parent), &w);
    return gql_agent_copy_text(get, &text);
}

static struct gql_value gql_agent_get_alloc_map(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    if (core_write_gpu_map(core, ((const struct agent_row *)parent)->agent.id, &w) < 0
        || !strbuf_ok(&text))
        return gql_error(get->arena, "out of memory");
    return gql_copy(get, text.data);
}

/* Clients crash on null, and on objects without both keys. */
static struct gql_value gql_agent_get_live_stat(struct gql_get *get, const void *parent)
{
    const struct core *core = ((const struct gql_context *)get->context)->api->core;
    const struct agent_row *agent = parent;
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct jsonw w = jsonw_make(&text);

    agent_measured_write(core_agent_measured(core, agent->agent.id), &w);
    return strbuf_ok(&text) ? gql_copy(get, text.data) : gql_error(get->arena, "out of memory");
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

const struct gql_entry agent_entries[] = {
    { SCHEMA_FIELD_Query_agent, GQL_CALL(gql_agent_get_one) },
    { SCHEMA_FIELD_Query_agent_list, GQL_CALL(gql_agent_list) },
    { SCHEMA_FIELD_Query_agents, GQL_CALL(gql_agent_list_all) },
    { SCHEMA_FIELD_AgentList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_AgentList_total_count, GQL_PAGE_TOTAL },
    { FIELD(id), AT(CHARS, agent.id) },
    { FIELD(status), GQL_GET(gql_agent_get_status) },
    { FIELD(status_changed), AT(TIME, agent.status_changed_usec) },
    { FIELD(region), AT(TEXT, agent.region) },
    { FIELD(scaling_group), AT(TEXT, agent.resource_group) },
    { FIELD(schedulable), AT(BOOL, agent.schedulable) },
    { FIELD(available_slots), GQL_GET(gql_agent_get_available) },
    { FIELD(occupied_slots), GQL_GET(gql_agent_get_occupied) },
    { FIELD(addr), AT(TEXT, agent.addr) },
    { FIELD(architecture), AT(TEXT, agent.architecture) },
    { FIELD(first_contact), AT(TIME, agent.first_contact_usec) },
    { FIELD(lost_at), AT(TIME, agent.lost_usec) },
    { FIELD(live_stat), GQL_GET(gql_agent_get_live_stat) },
    { FIELD(version), AT(TEXT, agent.version) },
    { FIELD(compute_plugins), GQL_GET(gql_agent_get_plugins) },
    { FIELD(hardware_metadata), GQL_GET(gql_agent_get_hardware) },
    { FIELD(local_config), GQL_FIXED_TEXT("{}") },
    { FIELD(cpu_cur_pct), GQL_GET(gql_agent_get_cpu_percent) },
    { FIELD(mem_cur_bytes), GQL_GET(gql_agent_get_memory) },
    { FIELD(gpu_alloc_map), GQL_GET(gql_agent_get_alloc_map) },
    { FIELD(compute_containers), GQL_CALL(gql_agent_containers) },
    { FIELD(drain_reason), AT(TEXT, agent.drain_reason) },
};
GQL_ENTRIES_END(agent);
