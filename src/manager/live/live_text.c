/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of the feed as text: see live_text.h. */
#include "manager/live/live_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_load.h"
#include "base/map.h"
#include "manager/session/session.h"

#define PART_NUMBER_MAX 17

/* It differs from one process to the next, and leads nowhere but to the same one. */
static const char *live_text_number(const struct uuid *id, char ret[PART_NUMBER_MAX])
{
    (void)snprintf(ret, PART_NUMBER_MAX, "%016" PRIx64, aq_hash(id->bytes, sizeof(id->bytes)));
    return ret;
}

/* A writer for further members; the braces are taken off by live_text_end(). */
static void live_text_end(struct strbuf *out)
{
    strbuf_truncate(out, out->len - 1);
    strbuf_consume(out, 1);
}

/* ---- what is measured ---- */

/* As it is looked at: three digits say enough, and change less often. */
static void live_text_write_number(double value, struct jsonw *w)
{
    char text[32];

    jsonw_raw(w, text, (size_t)snprintf(text, sizeof(text), "%.3g", value));
}

static bool live_text_ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len > end_len && strcmp(text + len - end_len, end) == 0;
}

static bool live_text_is_of_card(const char *key)
{
    return strcmp(key, "cpu_util") != 0
           && (live_text_ends_with(key, "_util") || live_text_ends_with(key, "_mem"));
}

static bool live_text_is_shown(const char *key)
{
    return strcmp(key, "mem") == 0 || strcmp(key, "cpu_util") == 0 || live_text_is_of_card(key);
}

/* "cuda_mem": [now, of so much], the latter null where there is no end. */
static void live_text_write_metric(const char *key, double value, double capacity, struct jsonw *w)
{
    jsonw_key(w, key);
    jsonw_array_begin(w);
    live_text_write_number(value, w);
    if (capacity >= 0)
        live_text_write_number(capacity, w);
    else
        jsonw_null(w);
    jsonw_array_end(w);
}

static void live_text_write_measured(const struct measured *m, bool is_card_only, struct jsonw *w)
{
    jsonw_object_begin(w);
    for (size_t i = 0; m && i < m->count; i++) {
        const struct measured_item *item = &m->items[i];

        if (item->metric.at_usec
            && (is_card_only ? live_text_is_of_card : live_text_is_shown)(item->kind->key))
            live_text_write_metric(item->kind->key, metric_current(&item->metric, item->kind),
                                   metric_capacity(&item->metric, item->kind), w);
    }
    jsonw_object_end(w);
}

/* ---- nodes ---- */

static const char *const card_members[] = { "id",     "slot",   "amount", "quantum",    "model",
                                            "memory", "parent", "status", "status_text" };

static void live_text_write_parts(const struct core_held *held, const char *slot, const char *id,
                                  struct jsonw *w)
{
    char number[PART_NUMBER_MAX], amount[AMOUNT_TEXT_MAX];

    jsonw_key(w, "parts");
    jsonw_array_begin(w);
    for (size_t i = 0; i < held->grant.count; i++) {
        const struct grant_item *item = &held->grant.items[i];
        const struct core_holder *holder = &held->holders[i];

        if (strcmp(item->device_id, id) != 0 || strcmp(item->slot_name, slot) != 0)
            continue;
        jsonw_object_begin(w);
        jsonw_member_str(w, "of", live_text_number(&holder->session->id, number));
        jsonw_member_str(w, "kernel",
                         live_text_number(&holder->session->kernels[holder->rank].id, number));
        jsonw_member_str(w, "amount", slot_amount_short(item->amount, item->type, amount));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

/* Of accelerators alone, whose slots are of a plugin: cores and memory are sums. */
static void live_text_write_cards(const struct agent *agent, const struct core_held *held,
                                  struct jsonw *w)
{
    json_auto_t *devices = agent->devices ? json_load_string(agent->devices, 0) : NULL;
    json_t *device;
    size_t i;

    jsonw_key(w, "cards");
    jsonw_array_begin(w);
    json_array_foreach(devices, i, device) {
        const char *slot = json_string_value(json_object_get(device, "slot"));
        const char *id = json_string_value(json_object_get(device, "id"));

        if (!slot || !id || !strchr(slot, '.'))
            continue;
        jsonw_object_begin(w);
        for (size_t k = 0; k < AQ_COUNT(card_members); k++) {
            const json_t *member = json_object_get(device, card_members[k]);

            if (json_is_string(member))
                jsonw_member_str(w, card_members[k], json_string_value(member));
            else if (json_is_integer(member))
                jsonw_member_int(w, card_members[k], json_integer_value(member));
        }
        live_text_write_parts(held, slot, id, w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void live_text_write_held(const struct core *core, const struct agent *agent,
                                 struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots held = { .items = NULL };

    jsonw_key(w, "offered");
    slots_write_json(&agent->available, core_slot_types(core), w);
    jsonw_key(w, "held");
    if (core_get_occupied(core, agent->id, &held) == 0)
        slots_write_json(&held, core_slot_types(core), w);
    else
        jsonw_null(w);
}

static void live_text_write_node_use(const struct core *core, const struct agent *agent,
                                     const struct core_held *held, struct jsonw *w)
{
    const struct agent_measured *m = core_agent_measured(core, agent->id);
    char number[PART_NUMBER_MAX];

    jsonw_key(w, "use");
    live_text_write_measured(m ? &m->node : NULL, false, w);
    jsonw_key(w, "card_use");
    jsonw_object_begin(w);
    for (size_t i = 0; m && i < m->count; i++) {
        jsonw_key(w, m->devices[i].id);
        live_text_write_measured(&m->devices[i].measured, true, w);
    }
    jsonw_object_end(w);
    jsonw_key(w, "part_use");
    jsonw_object_begin(w);
    for (size_t i = 0; i < held->grant.count; i++) {
        const struct core_holder *holder = &held->holders[i];
        const struct uuid *id = &holder->session->kernels[holder->rank].id;

        if (!strchr(held->grant.items[i].slot_name, '.'))
            continue;
        jsonw_key(w, live_text_number(id, number));
        live_text_write_measured(core_kernel_measured(core, id), true, w);
    }
    jsonw_object_end(w);
}

void live_text_write_agent(const struct core *core, const struct agent *agent, struct strbuf *fixed,
                           struct strbuf *measured)
{
    struct jsonw w = jsonw_make(fixed), use = jsonw_make(measured);
    struct core_held held = { .holders = NULL };

    (void)core_find_held(core, agent->id, &held);
    jsonw_object_begin(&w);
    jsonw_member_str(&w, "status", agent_status_name(agent->status));
    jsonw_member_bool(&w, "connected", core_agent_is_connected(core, agent->id));
    jsonw_member_bool(&w, "schedulable", agent->schedulable);
    jsonw_member_str(&w, "drain_reason", agent->drain_reason);
    jsonw_member_str(&w, "resource_group", agent->resource_group);
    live_text_write_held(core, agent, &w);
    live_text_write_cards(agent, &held, &w);
    jsonw_object_end(&w);
    jsonw_object_begin(&use);
    live_text_write_node_use(core, agent, &held, &use);
    jsonw_object_end(&use);
    core_held_done(&held);
    live_text_end(fixed);
    live_text_end(measured);
}

/* ---- sessions ---- */

#define SESSION_MEMBERS                                                                  \
    "name,type,status,result,exit_code,reason,priority,image,user,group,resource_group," \
    "cluster_size,resources,requested_slots,agents,created_at,status_changed,starts_at," \
    "idle_ends_at,array"

/* What memory knows besides session_view_fill_live(). */
static void live_text_fill_names(const struct core *core, struct session_row *row)
{
    const struct user *user = core_find_user(core, &row->session.user_id);
    const struct project *project = core_find_project(core, &row->session.project_id);

    row->user_email = user ? user->email : NULL;
    row->project_name = project ? project->name : NULL;
}

static void live_text_write_session_use(const struct core *core, const struct session *s,
                                        struct jsonw *w)
{
    const struct measured *main = s->kernel_count ? core_kernel_measured(core, &s->kernels[0].id)
                                                  : NULL;
    struct metric_kind kind;
    struct metric sum;

    jsonw_key(w, "use");
    jsonw_object_begin(w);
    for (size_t i = 0; main && i < main->count; i++) {
        const char *key = main->items[i].kind->key;

        if (live_text_is_shown(key) && session_sum_metric(core, s, key, &sum, &kind))
            live_text_write_metric(key, sum.value, sum.capacity, w);
    }
    jsonw_object_end(w);
}

static void live_text_write_pull(const struct session *s, struct jsonw *w)
{
    struct core_image_progress pull;

    jsonw_key(w, "pull");
    if (!core_get_pull(s, &pull)) {
        jsonw_null(w);
        return;
    }
    jsonw_object_begin(w);
    jsonw_member_str(w, "state", pull.state);
    jsonw_member_int(w, "done_bytes", pull.done_bytes);
    jsonw_member_int(w, "total_bytes", pull.total_bytes);
    jsonw_object_end(w);
}

void live_text_write_session(const struct core *core, const struct session *s, struct strbuf *fixed,
                             struct strbuf *measured)
{
    static const struct principal nobody = { .version = { .major = 9 } };
    struct jsonw w = jsonw_make(fixed), use = jsonw_make(measured);
    char number[PART_NUMBER_MAX];
    struct kernel_row main;
    struct session_row row;
    uint64_t fields = 0;

    (void)session_view_read_fields(SESSION_MEMBERS, &fields, NULL);
    session_view_fill_live(s, &main, &row);
    live_text_fill_names(core, &row);
    session_view_own(&nobody, core, &row, fields, &w);
    if (row.kernels != &main)
        free(row.kernels);
    live_text_end(fixed);
    strbuf_addf(fixed, ",\"number\":\"%s\"", live_text_number(&s->id, number));
    jsonw_object_begin(&use);
    live_text_write_pull(s, &use);
    live_text_write_session_use(core, s, &use);
    jsonw_object_end(&use);
    live_text_end(measured);
}

/* ---- arrays and runs ---- */

void live_text_write_array(const struct core *core, const struct core_array *array,
                           struct strbuf *fixed)
{
    struct jsonw w = jsonw_make(fixed);

    session_array_view(core, array, &w);
    live_text_end(fixed);
}

void live_text_write_run(const struct api *api, const struct uuid *id, struct strbuf *fixed)
{
    struct jsonw w = jsonw_make(fixed);

    pipeline_write_live(api, id, &w);
    live_text_end(fixed);
}

void live_text_write_task(const struct pipeline_task_row *task, struct strbuf *fixed)
{
    struct jsonw w = jsonw_make(fixed);

    pipeline_write_task(task, &w);
    live_text_end(fixed);
}

/* ---- what waits ---- */

/* Sessions whose end or start it waits for: they are its owner's, too. */
static void live_text_write_dependencies(const struct core *core, const struct session *s,
                                         struct jsonw *w)
{
    jsonw_key(w, "waits_for");
    jsonw_array_begin(w);
    for (size_t i = 0; i < s->dependency_count; i++) {
        const struct session_dependency *dependency = &s->dependencies[i];
        const struct session *other = core_find_session(core, &dependency->id);

        if (dependency_state(dependency) == DEPENDENCY_MET)
            continue;
        jsonw_object_begin(w);
        api_write_uuid(w, "id", &dependency->id);
        jsonw_member_str(w, "name", other ? other->name : NULL);
        jsonw_member_str(w, "condition", dependency_condition_name(dependency->condition));
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

void live_text_write_waiting(struct core *core, const struct session *s, struct strbuf *fixed,
                             struct strbuf *measured)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf text = STRBUF_INIT;
    struct core_start_estimate estimate = { .position = 0 };
    struct jsonw w = jsonw_make(fixed), place = jsonw_make(measured);

    jsonw_object_begin(&place);
    if (core_get_start_estimate(core, &s->id, &estimate) != -ENOENT)
        core_write_start_estimate(&estimate, &place);
    jsonw_object_end(&place);
    jsonw_object_begin(&w);
    if (s->status_data)
        core_status_text(s->status_data, &text);
    if (!text.len && estimate.verdict == SCHED_BEHIND && estimate.position > 1)
        strbuf_adds(&text, "It waits its turn: sessions before it wait for room.");
    jsonw_member_str(&w, "reason", s->reason);
    jsonw_member_str(&w, "text", text.len ? text.data : NULL);
    live_text_write_dependencies(core, s, &w);
    jsonw_object_end(&w);
    live_text_end(fixed);
    live_text_end(measured);
}
