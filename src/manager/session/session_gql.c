/* SPDX-License-Identifier: Apache-2.0 */
/* ComputeSession and its lists. The objects are struct session_row. */
#include <errno.h>
#include <string.h>

#include "base/json_load.h"
#include "manager/session/session_live.h"
#include "manager/session/session_view.h"
#include "manager/session/kernel_gql.h"
#include "manager/call/graphql/resolve.h"
#include "manager/session/session_feature.h"

#define FIELD(name) SCHEMA_FIELD_ComputeSession_##name
#define AT(how, member) GQL_##how##_AT(struct session_row, member)

/* ---- root fields ---- */

static void gql_session_note_seen(const struct gql_fetch *fetch)
{
    const struct gql_context *context = fetch->call->context;

    if (fetch->page->count)
        session_view_note_seen(context->api->core, context->who, &fetch->page->sessions[0]);
}

static int gql_session_get_one(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_ONE, store_list_sessions,
                                            sizeof(struct session_row));

    fetch->find = gql_arg_text(call, SCHEMA_ARG_Queries_compute_session_id);
    fetch->on_read = gql_session_note_seen;
    fetch->query.with_kernels = true;
    gql_scope(call->context, &fetch->query);
    return gql_fetch_start(fetch);
}

/* Administrators may narrow by key and domain; others are narrowed already. */
static void gql_session_narrow(struct gql_fetch *fetch)
{
    const struct gql_call *call = fetch->call;
    const char *access_key = gql_arg_text(call, SCHEMA_ARG_Queries_compute_session_list_access_key);
    const char *domain = gql_arg_text(call, SCHEMA_ARG_Queries_compute_session_list_domain_name);
    struct store_query *query = &fetch->query;

    gql_scope(call->context, query);
    if (access_key && query->access_key && strcmp(access_key, query->access_key) != 0)
        fetch->nothing = true;
    else if (access_key)
        query->access_key = access_key;
    if (domain && query->domain && strcmp(domain, query->domain) != 0)
        fetch->nothing = true;
    else if (domain)
        query->domain = domain;
}

#define SESSIONS_MAX 1000 /* the names of all, as the WebUI asks for them before it launches one */

static int gql_session_list_args(struct gql_fetch *fetch, struct aq_error *err)
{
    const struct gql_context *context = fetch->call->context;
    const char *project = gql_arg_text(fetch->call,
                                       SCHEMA_ARG_Queries_compute_session_list_group_id);
    const char *status = gql_arg_text(fetch->call, SCHEMA_ARG_Queries_compute_session_list_status);
    struct uuid *project_id;
    int r;

    if ((r = gql_fetch_page_args(fetch, SESSIONS_MAX, err)) < 0)
        return r;
    if (status
        && (r = session_view_read_statuses(context->who, status, &fetch->query.statuses, err)) < 0)
        return r;
    if (!project || !*project)
        return 0;
    project_id = arena_alloc(fetch->call->arena, sizeof(*project_id));
    if (uuid_parse(project, project_id) < 0)
        return aq_fail(err, EINVAL, "group_id: '%.64s' is not a UUID", project);
    fetch->query.project_id = project_id;
    return 0;
}

/* Of those that live memory knows which are on the page: the store reads these alone. */
static void gql_session_find_live(struct gql_fetch *fetch)
{
    struct gql_context *context = fetch->call->context;
    const struct core *core = context->api->core;
    struct session_live *items;
    struct uuid *ids;
    size_t count;

    if (context->has_listed_live || !session_live_is_known(core, &fetch->query))
        return;
    context->has_listed_live = true;
    session_live_list(core, &fetch->query, fetch->call->arena, &items, &count, &fetch->total);
    ids = arena_array(fetch->call->arena, count + 1, sizeof(*ids));
    for (size_t i = 0; i < count; i++)
        ids[i] = items[i].id;
    fetch->query.ids = ids;
    fetch->query.id_count = count;
    fetch->query.offset = 0;
    fetch->nothing |= count == 0;
}

static int gql_session_list(struct gql_call *call)
{
    struct gql_fetch *fetch = gql_fetch_new(call, GQL_PAGE, store_list_sessions,
                                            sizeof(struct session_row));
    struct aq_error err = { 0 };

    if (gql_session_list_args(fetch, &err) < 0)
        return gql_fetch_fail(fetch, &err);
    gql_session_narrow(fetch);
    fetch->query.with_kernels = true;
    if (!fetch->nothing)
        gql_session_find_live(fetch);
    return gql_fetch_start(fetch);
}

/* ---- children of all sessions of a list at once ---- */

static int gql_session_containers(struct gql_call *call)
{
    for (uint32_t i = 0; i < call->count && !arena_is_over(call->arena); i++)
        call->results[i] = gql_containers(call->arena, call->parents[i]);
    return GQL_DONE;
}

/* ---- single values ---- */

static struct gql_value gql_session_get_type(struct gql_get *get, const void *parent)
{
    static const char *const names[] = {
        [SESSION_INTERACTIVE] = "INTERACTIVE",
        [SESSION_BATCH] = "BATCH",
        [SESSION_INFERENCE] = "INFERENCE",
        [SESSION_SYSTEM] = "SYSTEM",
    };

    (void)get;
    return gql_text(names[((const struct session_row *)parent)->session.type]);
}

static struct gql_value gql_session_get_status(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    const struct session_row *row = parent;

    return gql_text(session_view_status(context->who, row->session.status));
}

static struct gql_value gql_session_get_result(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(session_result_name(((const struct session_row *)parent)->session.result));
}

static struct gql_value gql_session_get_main_kernel(struct gql_get *get, const void *parent)
{
    const struct session_row *row = parent;

    if (!row->kernels || !row->kernel_count)
        return gql_null();
    return gql_text(uuid_format(&row->kernels[0].kernel.id, get->scratch));
}

/* Of the main kernel, as Backend.AI has it. */
static struct gql_value gql_session_get_service_ports(struct gql_get *get, const void *parent)
{
    const struct session_row *row = parent;
    const char *ports = row->kernels && row->kernel_count ? row->kernels[0].kernel.service_ports
                                                          : NULL;

    (void)get;
    return gql_text(ports ? ports : "[]");
}

static struct gql_value gql_session_get_cluster_size(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_int((int64_t)((const struct session_row *)parent)->kernel_count);
}

static struct gql_value gql_session_get_least(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_int(session_view_cluster(parent).least);
}

static struct gql_value gql_session_get_on_failure(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(session_view_cluster(parent).on_failure);
}

static struct gql_value gql_session_get_on_node_loss(struct gql_get *get, const void *parent)
{
    (void)get;
    return gql_text(session_view_cluster(parent).on_node_loss);
}

static struct gql_value gql_session_get_roles(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    session_view_write_roles(context->types, parent, &w);
    return strcmp(out.data, "null") == 0 ? gql_null() : gql_copy(get, out.data);
}

static struct gql_value gql_session_get_architecture(struct gql_get *get, const void *parent)
{
    const struct session_spec *spec = ((const struct session_row *)parent)->session.spec;

    (void)get;
    return gql_text(spec && spec->architecture ? spec->architecture : "x86_64");
}

static struct gql_value gql_session_get_command(struct gql_get *get, const void *parent)
{
    const struct session_spec *spec = ((const struct session_row *)parent)->session.spec;

    (void)get;
    return gql_text(spec ? spec->command : NULL);
}

/* {"main1": {...}, "sub1": {...}}: those of each kernel. */
static struct gql_value gql_session_get_resource_opts(struct gql_get *get, const void *parent)
{
    const struct session_row *row = parent;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    jsonw_object_begin(&w);
    for (size_t i = 0; row->session.spec && i < row->kernel_count; i++) {
        char name[KERNEL_HOSTNAME_MAX];

        jsonw_key(&w, kernel_hostname(&row->kernels[i].kernel, name));
        session_spec_write_resource_opts(row->session.spec, &w);
    }
    jsonw_object_end(&w);
    return gql_copy(get, out.data);
}

static struct gql_value gql_session_get_mounts(struct gql_get *get, const void *parent)
{
    const struct session_spec *spec = ((const struct session_row *)parent)->session.spec;
    size_t count = spec ? spec->mounts.count : 0;
    struct gql_value *items = arena_array(get->arena, count + 1, sizeof(*items));

    for (size_t i = 0; i < count; i++)
        items[i] = gql_text(spec->mounts.items[i].name);
    return gql_list(items, (uint32_t)count);
}

static struct gql_value gql_session_get_slots(struct gql_get *get, const void *parent,
                                              bool occupied)
{
    AQ_CLEANUP(slots_donep) struct slots held = { 0 }, requested = { 0 };

    session_view_slots(parent, &held, &requested);
    return gql_slots(get, occupied ? &held : &requested);
}

static struct gql_value gql_session_get_idle_checks(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);

    session_view_write_idle_checks(context->api->core,
                                   &((const struct session_row *)parent)->session.id, &w);
    return gql_copy(get, out.data);
}

static struct gql_value gql_session_get_occupied(struct gql_get *get, const void *parent)
{
    return gql_session_get_slots(get, parent, true);
}

static struct gql_value gql_session_get_requested(struct gql_get *get, const void *parent)
{
    return gql_session_get_slots(get, parent, false);
}

/* What 22.03 calls the rule that speaks against a session; NULL: room is short. */
static const char *gql_session_predicate_name(enum sched_verdict verdict)
{
    switch (verdict) {
    case SCHED_TOO_EARLY:
        return "reserved_time";
    case SCHED_DEPENDENCY:
    case SCHED_DOOMED:
        return "dependencies";
    case SCHED_CONCURRENCY:
        return "concurrency";
    case SCHED_QUOTA:
        return "resource_limit";
    default:
        return NULL;
    }
}

static void gql_session_write_scheduler(const struct core_start_estimate *estimate, const char *msg,
                                        struct jsonw *w)
{
    const char *predicate = gql_session_predicate_name(estimate->verdict);

    jsonw_object_begin(w);
    core_write_start_estimate(estimate, w);
    jsonw_member_int(w, "retries", estimate->tries);
    jsonw_member_str(w, "msg", msg);
    jsonw_key(w, "failed_predicates");
    jsonw_array_begin(w);
    if (predicate) {
        jsonw_object_begin(w);
        jsonw_member_str(w, "name", predicate);
        jsonw_member_str(w, "msg", msg);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
    jsonw_key(w, "passed_predicates");
    jsonw_array_begin(w);
    jsonw_array_end(w);
    jsonw_object_end(w);
}

/* Of a session that waits, its place in the queue in "scheduler", where 22.03's clients look for
 * its retries; of one that has ended, how, where consoles look for it. False = there is neither.
 */
static bool gql_session_write_state(struct core *core, const struct session_row *row,
                                    const json_t *data, struct jsonw *w)
{
    const struct session *s = &row->session;
    const struct kernel *main = row->kernels && row->kernel_count ? &row->kernels[0].kernel : NULL;
    struct core_start_estimate estimate;

    if (s->status == SESSION_PENDING && core_get_start_estimate(core, &s->id, &estimate) == 0) {
        jsonw_object_begin(w);
        jsonw_key(w, "scheduler");
        gql_session_write_scheduler(&estimate, json_string_value(json_object_get(data, "text")), w);
        jsonw_object_end(w);
        return true;
    }
    if (s->status != SESSION_TERMINATED || !main || !main->has_exit)
        return false;
    jsonw_object_begin(w);
    jsonw_key(w, "kernel");
    jsonw_object_begin(w);
    jsonw_member_int(w, "exit_code", main->exit_code);
    jsonw_object_end(w);
    jsonw_key(w, "session");
    jsonw_object_begin(w);
    jsonw_member_str(w, "status", "terminated");
    jsonw_object_end(w);
    jsonw_object_end(w);
    return true;
}

static struct gql_value gql_session_get_status_data(struct gql_get *get, const void *parent)
{
    const struct gql_context *context = get->context;
    const struct session_row *row = parent;
    const char *stored = row->session.status_data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    json_auto_t *data = stored ? json_load_string(stored, 0) : json_object();
    json_auto_t *state = NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL;

    if (!gql_session_write_state(context->api->core, row, data, &w))
        return gql_copy(get, stored);
    state = json_load_string(out.data, 0);
    (void)json_object_update(data, state);
    text = json_dump_text(data, JSON_COMPACT);
    return gql_copy(get, text);
}

static const struct gql_entry session_entries[] = {
    { SCHEMA_FIELD_Queries_compute_session, GQL_CALL_COST(gql_session_get_one, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_Queries_compute_session_list,
      GQL_CALL_COST(gql_session_list, GQL_COST_READ, 1) },
    { SCHEMA_FIELD_ComputeSessionList_items, GQL_PAGE_ITEMS },
    { SCHEMA_FIELD_ComputeSessionList_total_count, GQL_PAGE_TOTAL },
    { FIELD(id), AT(UUID, session.id) },
    { FIELD(session_id), AT(UUID, session.id) },
    { FIELD(main_kernel_id), GQL_GET(gql_session_get_main_kernel) },
    { FIELD(main_kernel_role), GQL_FIXED_TEXT("COMPUTE") },
    { FIELD(inference_metrics), GQL_ALWAYS_NULL },
    { FIELD(tag), AT(TEXT, session.tag) },
    { FIELD(name), AT(CHARS, session.name) },
    { FIELD(type), GQL_GET(gql_session_get_type) },
    { FIELD(image), AT(TEXT, session.image) },
    { FIELD(architecture), GQL_GET(gql_session_get_architecture) },
    { FIELD(registry), GQL_ALWAYS_NULL },
    { FIELD(cluster_template), GQL_ALWAYS_NULL },
    { FIELD(cluster_mode), AT(TEXT, cluster_mode) },
    { FIELD(cluster_size), GQL_GET(gql_session_get_cluster_size) },
    { FIELD(cluster_size_min), GQL_GET(gql_session_get_least) },
    { FIELD(on_failure), GQL_GET(gql_session_get_on_failure) },
    { FIELD(on_node_loss), GQL_GET(gql_session_get_on_node_loss) },
    { FIELD(roles), GQL_GET_COST(gql_session_get_roles, GQL_COST_TEXT) },
    { FIELD(priority), AT(INT32, session.priority) },
    { FIELD(domain_name), AT(TEXT, session.domain) },
    { FIELD(group_name), AT(TEXT, project_name) },
    { FIELD(group_id), AT(UUID, session.project_id) },
    { FIELD(user_email), AT(TEXT, user_email) },
    { FIELD(user_id), AT(UUID, session.user_id) },
    { FIELD(access_key), AT(CHARS, session.access_key) },
    { FIELD(created_user_email), AT(TEXT, user_email) },
    { FIELD(created_user_id), AT(UUID, session.user_id) },
    { FIELD(status), GQL_GET(gql_session_get_status) },
    { FIELD(status_changed), AT(TIME, session.status_changed_usec) },
    { FIELD(status_info), AT(TEXT, session.reason) },
    { FIELD(status_data), GQL_GET_COST(gql_session_get_status_data, GQL_COST_TEXT) },
    { FIELD(status_history), GQL_ALWAYS_NULL },
    { FIELD(created_at), AT(TIME, session.created_usec) },
    { FIELD(terminated_at), AT(TIME, terminated_usec) },
    { FIELD(starts_at), AT(TIME, session.starts_usec) },
    { FIELD(startup_command), GQL_GET_COST(gql_session_get_command, GQL_COST_TEXT) },
    { FIELD(result), GQL_GET(gql_session_get_result) },
    { FIELD(resource_opts), GQL_GET_COST(gql_session_get_resource_opts, GQL_COST_MADE) },
    { FIELD(scaling_group), AT(TEXT, session.resource_group) },
    { FIELD(service_ports), GQL_GET_COST(gql_session_get_service_ports, GQL_COST_MADE) },
    { FIELD(mounts), GQL_GET_COST(gql_session_get_mounts, GQL_COST_MADE) },
    { FIELD(occupied_slots), GQL_GET_COST(gql_session_get_occupied, GQL_COST_MADE) },
    { FIELD(occupying_slots), GQL_GET_COST(gql_session_get_occupied, GQL_COST_MADE) },
    { FIELD(requested_slots), GQL_GET_COST(gql_session_get_requested, GQL_COST_MADE) },
    { FIELD(idle_checks), GQL_GET_COST(gql_session_get_idle_checks, GQL_COST_MADE) },
    { FIELD(num_queries), GQL_FIXED_INT(0) },
    { FIELD(containers), GQL_CALL_COST(gql_session_containers, 1, 4) },
};
GQL_ENTRIES_END(session);
