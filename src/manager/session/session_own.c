/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions as JSON in our own form: a table of its members. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/json_load.h"
#include "manager/session/session_attempts.h"
#include "manager/session/session_view.h"

/* One session on its way out. */
struct session_own {
    const struct principal *who;
    const struct core *core;
    const struct session_row *row;
};

/* ---- kernels ---- */

/* Its accelerators, and how much of each it has: {"cuda.shares": {"DEVICE": "0.60"}}. */
static void session_own_write_devices(const char *alloc, struct jsonw *w)
{
    json_auto_t *slots = alloc ? json_load_string(alloc, 0) : NULL;
    AQ_CLEANUP(aq_freep) char *text = NULL;
    const char *slot;
    json_t *devices;
    void *next;

    json_object_foreach_safe(slots, next, slot, devices) if (!strchr(slot, '.'))
        json_object_del(slots, slot);
    text = slots ? json_dump_text(slots, JSON_COMPACT) : NULL;
    api_write_raw(w, "devices", text ? text : "{}");
}

static void session_own_write_kernel(const struct principal *who, const struct core *core,
                                     const struct uuid *session, const struct kernel_row *row,
                                     struct jsonw *w)
{
    const struct kernel *kernel = &row->kernel;
    char hostname[KERNEL_HOSTNAME_MAX];

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &kernel->id);
    jsonw_member_str(w, "hostname", kernel_hostname(kernel, hostname));
    jsonw_member_str(w, "role", kernel->role);
    jsonw_member_int(w, "index", kernel->index);
    jsonw_member_str(w, "status", kernel_view_status(who, kernel->status));
    jsonw_member_str(w, "agent", kernel->agent_id);
    if (kernel->has_exit)
        jsonw_member_int(w, "exit_code", kernel->exit_code);
    else
        jsonw_member_null(w, "exit_code");
    jsonw_member_str(w, "reason", row->reason);
    jsonw_member_str(w, "gpu_misuse", core_kernel_limit_violations(core, session, &kernel->id));
    jsonw_key(w, "requested_slots");
    slots_write_json(&kernel->requested, core_slot_types(core), w);
    session_own_write_devices(kernel_granted(kernel), w);
    api_write_raw(w, "service_ports", kernel->service_ports ? kernel->service_ports : "[]");
    api_write_time(w, "status_changed", kernel->status_changed_usec);
    api_write_time(w, "terminated_at", row->terminated_usec);
    jsonw_object_end(w);
}

static void session_own_write_kernels(const struct session_own *own, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < own->row->kernel_count; i++)
        session_own_write_kernel(own->who, own->core, &own->row->session.id, &own->row->kernels[i],
                                 w);
    jsonw_array_end(w);
}

/* That of the main kernel, whose end is the session's: the others are killed then. */
static void session_own_write_exit_code(const struct session_own *own, struct jsonw *w)
{
    const struct kernel *main = own->row->kernel_count ? &own->row->kernels[0].kernel : NULL;

    if (main && main->has_exit)
        jsonw_int(w, main->exit_code);
    else
        jsonw_null(w);
}

/* Those of the main kernel, as no other may hand on any. */
static void session_own_write_outputs(const struct session_own *own, struct jsonw *w)
{
    if (own->row->outputs)
        jsonw_raw(w, own->row->outputs, strlen(own->row->outputs));
    else
        jsonw_null(w);
}

static bool session_own_is_first_on_agent(const struct session_row *row, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (row->kernels[j].kernel.agent_id
            && strcmp(row->kernels[j].kernel.agent_id, row->kernels[i].kernel.agent_id) == 0)
            return false;
    return true;
}

static void session_own_write_agents(const struct session_own *own, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < own->row->kernel_count; i++)
        if (own->row->kernels[i].kernel.agent_id && session_own_is_first_on_agent(own->row, i))
            jsonw_str(w, own->row->kernels[i].kernel.agent_id);
    jsonw_array_end(w);
}

/* ---- single members ---- */

static void session_own_write_id(const struct session_own *own, struct jsonw *w)
{
    char text[UUID_TEXT_MAX];

    jsonw_str(w, uuid_format(&own->row->session.id, text));
}

static void session_own_write_job_id(const struct session_own *own, struct jsonw *w)
{
    jsonw_int(w, own->row->session.row);
}

static void session_own_write_name(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, own->row->session.name);
}

static void session_own_write_type(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, session_type_name(own->row->session.type));
}

static void session_own_write_status(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, session_view_status(own->who, own->row->session.status));
}

static void session_own_write_result(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, session_result_name(own->row->session.result));
}

/* What is to be said of its end besides the reason, in sentences. */
static void session_own_write_text(const struct session_own *own, struct jsonw *w)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    const struct session *s = &own->row->session;

    if (session_is_terminal(s->status) && s->status_data)
        core_status_text(s->status_data, &text);
    jsonw_str(w, text.len ? text.data : NULL);
}

static void session_own_write_priority(const struct session_own *own, struct jsonw *w)
{
    jsonw_int(w, own->row->session.priority);
}

static void session_own_write_access_key(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, own->row->session.access_key);
}

static void session_own_write_cluster_size(const struct session_own *own, struct jsonw *w)
{
    jsonw_int(w, (int64_t)own->row->kernel_count);
}

static void session_own_write_cluster_size_min(const struct session_own *own, struct jsonw *w)
{
    jsonw_int(w, session_view_cluster(own->row).least);
}

static void session_own_write_on_failure(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, session_view_cluster(own->row).on_failure);
}

static void session_own_write_on_node_loss(const struct session_own *own, struct jsonw *w)
{
    jsonw_str(w, session_view_cluster(own->row).on_node_loss);
}

static void session_own_write_roles(const struct session_own *own, struct jsonw *w)
{
    session_view_write_roles(core_slot_types(own->core), own->row, w);
}

static void session_own_write_wait_for_capacity(const struct session_own *own, struct jsonw *w)
{
    const struct session_spec *spec = own->row->session.spec;

    jsonw_bool(w, spec && spec->waits_for_capacity);
}

static void session_own_write_reservation(const struct session_own *own, struct jsonw *w)
{
    const struct session_spec *spec = own->row->session.spec;

    jsonw_str(w, spec ? spec->reservation : NULL);
}

/* {"kernel", "agent", "exit_code"} of the kernel whose failure ended the session; else null. */
static void session_own_write_failure(const struct session_own *own, struct jsonw *w)
{
    const struct session *s = &own->row->session;
    json_auto_t *data = session_is_terminal(s->status) ? json_load_string(s->status_data, 0) : NULL;
    const json_t *code = json_object_get(data, "exit_code");
    const char *kernel = json_string_value(json_object_get(data, "kernel"));

    if (!kernel) {
        jsonw_null(w);
        return;
    }
    jsonw_object_begin(w);
    jsonw_member_str(w, "kernel", kernel);
    jsonw_member_str(w, "agent", json_string_value(json_object_get(data, "agent")));
    jsonw_key(w, "exit_code");
    if (json_is_integer(code))
        jsonw_int(w, json_integer_value(code));
    else
        jsonw_null(w);
    jsonw_object_end(w);
}

void session_view_write_timeout(const struct session *session, struct jsonw *w)
{
    int64_t usec = session->spec ? session->spec->batch_timeout_usec : 0;

    if (!usec)
        jsonw_null(w);
    else if (usec % USEC_PER_SEC)
        jsonw_double(w, (double)usec / (double)USEC_PER_SEC);
    else
        jsonw_int(w, usec / USEC_PER_SEC);
}

void session_view_write_ends_by(const struct session *session, struct jsonw *w)
{
    int64_t usec = session->spec ? session->spec->batch_timeout_usec : 0;
    bool is_running = session->status == SESSION_RUNNING
                      || session->status == SESSION_RUNNING_DEGRADED;
    char iso[CLOCK_ISO_MAX];

    jsonw_str(w, usec && is_running && session->running_usec
                     ? clock_format_iso(session->running_usec + usec, iso)
                     : NULL);
}

static void session_own_write_timeout(const struct session_own *own, struct jsonw *w)
{
    session_view_write_timeout(&own->row->session, w);
}

static void session_own_write_ends_by(const struct session_own *own, struct jsonw *w)
{
    session_view_write_ends_by(&own->row->session, w);
}

static void session_own_write_started_at(const struct session_own *own, struct jsonw *w)
{
    int64_t usec = session_started_usec(&own->row->session);
    char iso[CLOCK_ISO_MAX];

    jsonw_str(w, usec ? clock_format_iso(usec, iso) : NULL);
}

static void session_own_write_retry(const struct session_own *own, struct jsonw *w)
{
    session_attempts_write_retry(&own->row->session, w);
}

static void session_own_write_retry_of(const struct session_own *own, struct jsonw *w)
{
    const struct session_spec *spec = own->row->session.spec;

    jsonw_str(w, spec ? spec->retry_of : NULL);
}

static void session_own_write_attempts(const struct session_own *own, struct jsonw *w)
{
    session_attempts_write(own->row, w);
}

static void session_own_write_summary(const struct session_own *own, struct jsonw *w)
{
    session_attempts_write_summary(own->core, own->row, w);
}

static void session_own_write_mounts(const struct session_own *own, struct jsonw *w)
{
    static const struct folder_mounts none;
    const struct session_spec *spec = own->row->session.spec;

    folder_mounts_write(spec ? &spec->mounts : &none, w);
}

/* As the row has it, or later. */
static void session_own_write_last_access(const struct session_own *own, struct jsonw *w)
{
    const struct session_use *use = core_session_use(own->core, &own->row->session.id);
    int64_t seen = use ? use->at_usec : 0;

    char iso[CLOCK_ISO_MAX];

    seen = AQ_MAX(seen, own->row->accessed_usec);
    jsonw_str(w, seen ? clock_format_iso(seen, iso) : NULL);
}

static void session_own_write_traffic(const struct session_own *own, struct jsonw *w)
{
    const struct session_use *use = core_session_use(own->core, &own->row->session.id);

    jsonw_array_begin(w);
    for (size_t i = 0; use && i < use->apps.count; i++) {
        const struct app_use *app = &use->apps.items[i];

        jsonw_object_begin(w);
        jsonw_member_str(w, "app", app->name);
        jsonw_member_int(w, "connections", app->connections);
        jsonw_member_int(w, "requests", app->requests);
        jsonw_member_int(w, "bytes_in", app->bytes_in);
        jsonw_member_int(w, "bytes_out", app->bytes_out);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void session_own_write_idle(const struct session_own *own, struct jsonw *w)
{
    session_view_write_idle(own->core, &own->row->session.id, w);
}

static void session_own_write_idle_end(const struct session_own *own, struct jsonw *w)
{
    session_view_write_idle_end(own->core, &own->row->session.id, w);
}

/* Those of the only kernel as they are, else the sum. */
static void session_own_write_slots(const struct session_own *own, bool is_requested,
                                    struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots occupied = { 0 }, requested = { 0 };
    const struct session_row *row = own->row;

    if (is_requested && row->kernels && row->kernel_count == 1) {
        slots_write_json(&row->kernels[0].kernel.requested, core_slot_types(own->core), w);
        return;
    }
    session_view_slots(row, &occupied, &requested);
    slots_write_json(is_requested ? &requested : &occupied, core_slot_types(own->core), w);
}

/* Kernels of a session with a minimum that wait hold nothing. */
static void session_own_write_resources(const struct session_own *own, struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots occupied = { 0 }, requested = { 0 };

    session_view_slots(own->row, &occupied, &requested);
    slots_write_json(occupied.count ? &occupied : &requested, core_slot_types(own->core), w);
}

static void session_own_write_requested(const struct session_own *own, struct jsonw *w)
{
    session_own_write_slots(own, true, w);
}

static void session_own_write_occupied(const struct session_own *own, struct jsonw *w)
{
    session_own_write_slots(own, false, w);
}

static void session_own_write_array(const struct session_own *own, struct jsonw *w)
{
    const struct session *s = &own->row->session;

    if (uuid_is_nil(&s->array_id)) {
        jsonw_null(w);
        return;
    }
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &s->array_id);
    jsonw_member_int(w, "index", s->array_index);
    jsonw_object_end(w);
}

static void session_own_write_dependency(const struct dependency_row *row, struct jsonw *w)
{
    static const char *const states[] = {
        [DEPENDENCY_WAITING] = "waiting", [DEPENDENCY_MET] = "met", [DEPENDENCY_UNMET] = "unmet"
    };
    const struct session_dependency *d = &row->dependency;
    bool is_element = d->is_array && d->element != DEPENDENCY_ALL;
    AQ_CLEANUP(aq_freep) char *full = is_element && row->name
                                          ? aq_format("%s[%" PRId64 "]", row->name, d->element)
                                          : NULL;

    jsonw_object_begin(w);
    jsonw_member_str(w, "condition", dependency_condition_name(d->condition));
    api_write_uuid(w, d->is_array ? "array" : "session", &d->id);
    if (row->number)
        jsonw_member_int(w, d->is_array ? "number" : "job_id", row->number);
    else
        jsonw_member_null(w, d->is_array ? "number" : "job_id");
    if (is_element)
        jsonw_member_int(w, "index", d->element);
    jsonw_member_str(w, "name", full ? full : row->name);
    jsonw_member_str(w, "state", states[dependency_state(d)]);
    jsonw_object_end(w);
}

void session_view_dependencies(const struct dependency_row *rows, size_t count, struct jsonw *w)
{
    jsonw_array_begin(w);
    for (size_t i = 0; i < count; i++)
        session_own_write_dependency(&rows[i], w);
    jsonw_array_end(w);
}

static void session_own_write_dependencies(const struct session_own *own, struct jsonw *w)
{
    session_view_dependencies(own->row->dependencies, own->row->dependency_count, w);
}

/* ---- the table ---- */

/* What the store has to read for a member. */
enum {
    OWN_NEEDS_NAMES = 1u << 0,
    OWN_NEEDS_TEXTS = 1u << 1, /* of no bounded size */
    OWN_NEEDS_KERNELS = 1u << 2,
    OWN_NEEDS_SCHEDULED = 1u << 3,
    OWN_NEEDS_RUNS = 1u << 5,
    OWN_NEEDS_DEPENDENCIES = 1u << 6,
    OWN_NEEDS_OUTPUTS = 1u << 7,
    OWN_NEEDS_REST = 1u << 4, /* what STORE_SESSION_BRIEF leaves out */
};

/* 'write', else a time at 'time', else a text at 'text'. */
static const struct session_own_member {
    const char *name;
    void (*write)(const struct session_own *own, struct jsonw *w);
    size_t text, time; /* offsets in struct session_row */
    unsigned needs;
} session_own_members[] = {
#define ROW(member) offsetof(struct session_row, member)
    { "id", .write = session_own_write_id, .needs = OWN_NEEDS_REST },
    { "name", .write = session_own_write_name },
    { "job_id", .write = session_own_write_job_id },
    { "type", .write = session_own_write_type },
    { "status", .write = session_own_write_status },
    { "result", .write = session_own_write_result },
    { "exit_code", .write = session_own_write_exit_code, .needs = OWN_NEEDS_KERNELS },
    { "reason", .text = ROW(session.reason) },
    { "text", .write = session_own_write_text, .needs = OWN_NEEDS_TEXTS },
    { "outputs", .write = session_own_write_outputs, .needs = OWN_NEEDS_TEXTS | OWN_NEEDS_OUTPUTS },
    { "priority", .write = session_own_write_priority },
    { "image", .text = ROW(session.image), .needs = OWN_NEEDS_REST },
    { "tag", .text = ROW(session.tag), .needs = OWN_NEEDS_REST },
    { "user", .text = ROW(user_email), .needs = OWN_NEEDS_NAMES },
    { "group", .text = ROW(project_name), .needs = OWN_NEEDS_NAMES },
    { "domain", .text = ROW(session.domain), .needs = OWN_NEEDS_REST },
    { "access_key", .write = session_own_write_access_key, .needs = OWN_NEEDS_REST },
    { "resource_group", .text = ROW(session.resource_group), .needs = OWN_NEEDS_REST },
    { "cluster_mode", .text = ROW(cluster_mode), .needs = OWN_NEEDS_REST },
    { "cluster_size", .write = session_own_write_cluster_size },
    { "cluster_size_min", .write = session_own_write_cluster_size_min, .needs = OWN_NEEDS_TEXTS },
    { "on_failure", .write = session_own_write_on_failure, .needs = OWN_NEEDS_TEXTS },
    { "on_node_loss", .write = session_own_write_on_node_loss, .needs = OWN_NEEDS_TEXTS },
    { "roles", .write = session_own_write_roles, .needs = OWN_NEEDS_TEXTS | OWN_NEEDS_KERNELS },
    { "reservation", .write = session_own_write_reservation, .needs = OWN_NEEDS_TEXTS },
    { "wait_for_capacity", .write = session_own_write_wait_for_capacity, .needs = OWN_NEEDS_TEXTS },
    { "failure", .write = session_own_write_failure, .needs = OWN_NEEDS_TEXTS },
    { "retry", .write = session_own_write_retry, .needs = OWN_NEEDS_TEXTS },
    { "retry_of", .write = session_own_write_retry_of, .needs = OWN_NEEDS_TEXTS },
    { "attempts", .write = session_own_write_attempts,
      .needs = OWN_NEEDS_TEXTS | OWN_NEEDS_KERNELS | OWN_NEEDS_RUNS },
    { "summary", .write = session_own_write_summary,
      .needs = OWN_NEEDS_TEXTS | OWN_NEEDS_KERNELS | OWN_NEEDS_RUNS | OWN_NEEDS_REST },
    { "mounts", .write = session_own_write_mounts, .needs = OWN_NEEDS_TEXTS },
    { "resources", .write = session_own_write_resources, .needs = OWN_NEEDS_KERNELS },
    { "requested_slots", .write = session_own_write_requested, .needs = OWN_NEEDS_KERNELS },
    { "occupied_slots", .write = session_own_write_occupied, .needs = OWN_NEEDS_KERNELS },
    { "agents", .write = session_own_write_agents, .needs = OWN_NEEDS_KERNELS },
    { "created_at", .time = ROW(session.created_usec) },
    { "status_changed", .time = ROW(session.status_changed_usec) },
    { "starts_at", .time = ROW(session.starts_usec), .needs = OWN_NEEDS_REST },
    { "started_at", .write = session_own_write_started_at, .needs = OWN_NEEDS_REST },
    { "timeout_sec", .write = session_own_write_timeout, .needs = OWN_NEEDS_TEXTS },
    { "ends_by", .write = session_own_write_ends_by, .needs = OWN_NEEDS_TEXTS | OWN_NEEDS_REST },
    { "scheduled_at", .time = ROW(scheduled_usec), .needs = OWN_NEEDS_SCHEDULED },
    { "terminated_at", .time = ROW(terminated_usec), .needs = OWN_NEEDS_REST },
    { "last_access", .write = session_own_write_last_access, .needs = OWN_NEEDS_REST },
    { "app_traffic", .write = session_own_write_traffic, .needs = OWN_NEEDS_REST },
    { "idle", .write = session_own_write_idle },
    { "idle_ends_at", .write = session_own_write_idle_end },
    { "array", .write = session_own_write_array, .needs = OWN_NEEDS_REST },
    { "dependencies", .write = session_own_write_dependencies,
      .needs = OWN_NEEDS_DEPENDENCIES | OWN_NEEDS_REST },
    { "kernels", .write = session_own_write_kernels, .needs = OWN_NEEDS_TEXTS | OWN_NEEDS_KERNELS },
#undef ROW
};

static void session_own_write_member(const struct session_own *own,
                                     const struct session_own_member *member, struct jsonw *w)
{
    const char *row = (const char *)own->row;

    if (member->time) {
        api_write_time(w, member->name, *(const int64_t *)(const void *)(row + member->time));
        return;
    }
    jsonw_key(w, member->name);
    if (member->write)
        member->write(own, w);
    else
        jsonw_str(w, *(const char *const *)(const void *)(row + member->text));
}

void session_view_own(const struct principal *who, const struct core *core,
                      const struct session_row *row, uint64_t fields, struct jsonw *w)
{
    struct session_own own = { .who = who, .core = core, .row = row };

    jsonw_object_begin(w);
    for (size_t i = 0; i < AQ_COUNT(session_own_members); i++)
        if (fields & (UINT64_C(1) << i))
            session_own_write_member(&own, &session_own_members[i], w);
    jsonw_object_end(w);
}

/* ---- which members ---- */

#define UNKNOWN_SHOWN_MAX 15 /* of an unknown name */

/* Names in the middle of the list are omitted if the error has no room for all. */
static int session_own_fail_unknown(const char *name, size_t len, struct aq_error *err)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf known = STRBUF_INIT;
    const char *last = session_own_members[AQ_COUNT(session_own_members) - 1].name;
    const size_t room = sizeof(err->text) - sizeof("'' is none of ,...,") - UNKNOWN_SHOWN_MAX;

    for (size_t i = 0; i + 1 < AQ_COUNT(session_own_members); i++) {
        const char *next = session_own_members[i].name;

        if (known.len + strlen(next) + strlen(last) + 1 > room) {
            strbuf_adds(&known, ",...");
            break;
        }
        strbuf_addf(&known, "%s%s", i ? "," : "", next);
    }
    return api_fail_param(err, "fields", "'%.*s' is none of %s,%s",
                          (int)AQ_MIN(len, (size_t)UNKNOWN_SHOWN_MAX), name, known.data, last);
}

int session_view_read_fields(const char *text, uint64_t *ret, struct aq_error *err)
{
    uint64_t fields = 0;

    for (const char *at = text; at;) {
        size_t len = strcspn(at, ","), i = 0;

        while (i < AQ_COUNT(session_own_members)
               && (strncmp(session_own_members[i].name, at, len) != 0
                   || session_own_members[i].name[len]))
            i++;
        if (i == AQ_COUNT(session_own_members))
            return session_own_fail_unknown(at, len, err);
        fields |= UINT64_C(1) << i;
        at = at[len] ? at + len + 1 : NULL;
    }
    *ret = fields;
    return 0;
}

static unsigned session_own_needs(uint64_t fields)
{
    unsigned needs = 0;

    for (size_t i = 0; i < AQ_COUNT(session_own_members); i++)
        if (fields & (UINT64_C(1) << i))
            needs |= session_own_members[i].needs;
    return needs;
}

bool session_view_is_short(uint64_t fields)
{
    return !(session_own_needs(fields) & OWN_NEEDS_TEXTS);
}

void session_view_apply_fields(uint64_t fields, struct store_query *query)
{
    unsigned needs = session_own_needs(fields);

    query->with_kernels = needs & OWN_NEEDS_KERNELS;
    query->with_scheduled = needs & OWN_NEEDS_SCHEDULED;
    query->with_runs = needs & OWN_NEEDS_RUNS;
    query->with_dependencies = needs & OWN_NEEDS_DEPENDENCIES;
    query->with_outputs = needs & OWN_NEEDS_OUTPUTS;
    query->detail = needs & OWN_NEEDS_TEXTS   ? STORE_SESSION_WHOLE
                    : needs & OWN_NEEDS_NAMES ? STORE_SESSION_SHORT
                    : needs & OWN_NEEDS_REST  ? STORE_SESSION_BARE
                                              : STORE_SESSION_BRIEF;
}
