/* SPDX-License-Identifier: Apache-2.0 */
/* What sessions and agents use: now, over a month, and who uses most. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/usage/usage_feature.h"
#include "manager/session/session.h"
#include "store/query.h"
#include "store/series.h"

/* ---- now ---- */

static void statistics_write_kernel(const struct api *api, const struct kernel_row *row,
                                    struct jsonw *w)
{
    const struct measured *m = core_kernel_measured(api->core, &row->kernel.id);
    char hostname[KERNEL_HOSTNAME_MAX];

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &row->kernel.id);
    jsonw_member_str(w, "hostname", kernel_hostname(&row->kernel, hostname));
    jsonw_member_str(w, "agent", row->kernel.agent_id);
    jsonw_member_str(w, "status", kernel_status_name(row->kernel.status));
    jsonw_key(w, "requested_slots");
    slots_write_json(&row->kernel.requested, core_slot_types(api->core), w);
    if (m && m->at_usec) {
        jsonw_key(w, "statistics");
        measured_write(m, w);
        api_write_time(w, "at", m->at_usec);
    } else {
        api_write_raw(w, "statistics", row->last_stat);
        api_write_time(w, "at", row->terminated_usec);
    }
    jsonw_object_end(w);
}

/* Which statistics a request asks for. */
struct wanted_statistics {
    const struct api *api;
    const char *kernel; /* NULL = of all */
    int64_t hours;
};

#define STATISTICS_KERNEL_FIELD(type, member)                                                 \
    {                                                                                         \
        "kernel", FIELD_STR, FIELD_NULLABLE, offsetof(type, member), 1, 64,                   \
            .doc = "host name of the only kernel to show, such as sub1; default: all kernels" \
    }

static const struct field session_statistics_fields[] = {
    OWNER_FIELD(struct kernel_params, owner_access_key),
    STATISTICS_KERNEL_FIELD(struct kernel_params, kernel),
    FIELD_END,
};

/* Move 'row' to the wanted kernel alone. False after an answer that there is none of its name. */
static bool statistics_choose_kernel(struct request *req, const struct wanted_statistics *wanted,
                                     struct session_row *row)
{
    const struct session session = session_of_row(row, request_get_arena(req));
    const struct kernel *kernel;
    struct aq_error err = { 0 };

    if (!wanted->kernel || !row->kernels)
        return true;
    kernel = session_find_kernel(&session, wanted->kernel, &err);
    if (!kernel) {
        request_fail(req, &err);
        return false;
    }
    row->kernels += kernel - session.kernels;
    row->kernel_count = 1;
    return true;
}

static void statistics_on_session_found(struct request *req, const struct session_row *found,
                                        void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct wanted_statistics *wanted = data;
    struct jsonw w = jsonw_make(&out);
    struct session_row chosen = *found;
    const struct session_row *row = &chosen;

    if (!statistics_choose_kernel(req, wanted, &chosen))
        return;
    jsonw_object_begin(&w);
    api_write_uuid(&w, "id", &row->session.id);
    jsonw_member_str(&w, "name", row->session.name);
    jsonw_member_str(&w, "status", session_status_name(row->session.status));
    jsonw_key(&w, "kernels");
    jsonw_array_begin(&w);
    for (size_t i = 0; row->kernels && i < row->kernel_count; i++)
        statistics_write_kernel(wanted->api, &row->kernels[i], &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void statistics_on_session(struct request *req, void *data)
{
    struct wanted_statistics *wanted = arena_alloc(request_get_arena(req), sizeof(*wanted));
    struct kernel_params params = { NULL };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    *wanted = (struct wanted_statistics){ .api = data, .kernel = params.kernel };
    session_find(data, req, params.owner_access_key, statistics_on_session_found, wanted);
}

/* False after an answer that there is no such agent. */
static bool statistics_check_agent(const struct api *api, struct request *req)
{
    const char *id = request_get_param(req, "id");
    struct aq_error err = { 0 };

    if (core_find_agent(api->core, id))
        return true;
    problem_no_such(&err, "agent instance", "there is no agent '%.64s'", id);
    request_fail(req, &err);
    return false;
}

static void statistics_on_agent(struct request *req, void *data)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    struct jsonw w = jsonw_make(&out);
    const struct api *api = data;

    if (!api_has_no_params(req) || !statistics_check_agent(api, req))
        return;
    agent_measured_write(core_agent_measured(api->core, request_get_param(req, "id")), &w);
    request_reply_json(req, 200, &out);
}

/* ---- series ---- */

#define SERIES_HOURS_MAX (31 * 24)
#define SERIES_ROWS_MAX 3000 /* of an owner: a month has 2976 quarters of an hour */

struct series_params {
    const char *owner_access_key, *kernel;
    int64_t hours;
};

static const struct field agent_series_fields[] = {
    { "hours", FIELD_INT, 0, offsetof(struct series_params, hours), 1, SERIES_HOURS_MAX,
      .doc = "of so many hours back; default 744" },
    FIELD_END,
};

static const struct field session_series_fields[] = {
    OWNER_FIELD(struct series_params, owner_access_key),
    STATISTICS_KERNEL_FIELD(struct series_params, kernel),
    { "hours", FIELD_INT, 0, offsetof(struct series_params, hours), 1, SERIES_HOURS_MAX,
      .doc = "of so many hours back; default 744" },
    FIELD_END,
};

/* Written by a thread of the store, sent by the loop's. */
struct statistics_series {
    const struct api *api;
    struct request *req;
    char (*owners)[SERIES_OWNER_MAX];
    size_t count;
    int64_t from_usec;
    struct strbuf out;
    struct jsonw w;
};

static void statistics_put_number(struct jsonw *w, const char *key, double value)
{
    char buf[METRIC_NUMBER_MAX];

    jsonw_member_str(w, key, metric_format(value, 3, buf));
}

static void statistics_write_item(void *data, const struct measured_row_item *item)
{
    struct jsonw *w = data;

    jsonw_key(w, item->kind.key);
    jsonw_object_begin(w);
    jsonw_member_str(w, "unit_hint", metric_unit_hint(item->kind.unit));
    statistics_put_number(w, "min", item->sum.min);
    statistics_put_number(w, "max", item->sum.max);
    statistics_put_number(w, "avg", metric_sum_avg(&item->sum));
    jsonw_member_int(w, "samples", (int64_t)item->sum.count);
    jsonw_object_end(w);
}

static int statistics_write_row(void *data, const struct series_row *row)
{
    struct statistics_series *series = data;
    bool is_agent = strncmp(row->owner, "agent:", 6) == 0;

    jsonw_object_begin(&series->w);
    jsonw_member_str(&series->w, is_agent ? "agent" : "kernel", row->owner + (is_agent ? 6 : 0));
    api_write_time(&series->w, "at", row->at_usec);
    api_write_time(&series->w, "until", row->until_usec);
    jsonw_key(&series->w, "metrics");
    jsonw_object_begin(&series->w);
    (void)measured_read_row(row->data ? row->data : "", statistics_write_item, &series->w);
    jsonw_object_end(&series->w);
    jsonw_object_end(&series->w);
    return 0;
}

static int statistics_read_series(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct statistics_series *series = data;
    int r = 0;

    jsonw_object_begin(&series->w);
    jsonw_key(&series->w, "items");
    jsonw_array_begin(&series->w);
    for (size_t i = 0; r >= 0 && i < series->count; i++)
        r = series_read(tx, series->owners[i], series->from_usec, INT64_MAX, SERIES_ROWS_MAX,
                        statistics_write_row, series, err);
    jsonw_array_end(&series->w);
    jsonw_object_end(&series->w);
    return AQ_MIN(r, 0);
}

static void statistics_on_series_read(void *data, int r, const struct aq_error *err)
{
    struct statistics_series *series = data;
    AQ_CLEANUP(strbuf_donep) struct strbuf out = series->out;
    struct request *req = series->req;

    free(series);
    if (r < 0)
        request_fail(req, err);
    else
        request_reply_json(req, 200, &out);
}

/* For 'count' owners. */
static struct statistics_series *statistics_series_new(const struct api *api, struct request *req,
                                                       size_t count, int64_t hours)
{
    struct statistics_series *series = aq_alloc(sizeof(*series) + count * SERIES_OWNER_MAX);

    *series = (struct statistics_series){ .api = api,
                                          .req = req,
                                          .out = STRBUF_INIT,
                                          .from_usec = clock_realtime_usec()
                                                       - hours * 3600 * USEC_PER_SEC };
    series->w = jsonw_make(&series->out);
    series->owners = (void *)(series + 1);
    return series;
}

static void statistics_on_series_session(struct request *req, const struct session_row *found,
                                         void *data)
{
    const struct wanted_statistics *wanted = data;
    struct statistics_series *series;
    struct session_row row = *found;

    if (!statistics_choose_kernel(req, wanted, &row))
        return;
    series = statistics_series_new(wanted->api, req, row.kernel_count, wanted->hours);
    for (size_t i = 0; row.kernels && i < row.kernel_count; i++)
        (void)uuid_format(&row.kernels[i].kernel.id, series->owners[series->count++]);
    store_read(core_store(series->api->core), statistics_read_series, statistics_on_series_read,
               series);
}

static void statistics_on_session_series(struct request *req, void *data)
{
    struct series_params params = { .hours = SERIES_HOURS_MAX };
    struct wanted_statistics *wanted = arena_alloc(request_get_arena(req), sizeof(*wanted));
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0)
        *wanted = (struct wanted_statistics){ data, params.kernel, params.hours };
    if (err.code)
        request_fail(req, &err);
    else
        session_find(data, req, params.owner_access_key, statistics_on_series_session, wanted);
}

static void statistics_on_agent_series(struct request *req, void *data)
{
    struct series_params params = { .hours = SERIES_HOURS_MAX };
    struct aq_error err = { 0 };
    struct statistics_series *series;

    if (api_decode(req, &params, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    if (!statistics_check_agent(data, req))
        return;
    series = statistics_series_new(data, req, 1, params.hours);
    (void)snprintf(series->owners[series->count++], SERIES_OWNER_MAX, "agent:%s",
                   request_get_param(req, "id"));
    store_read(core_store(series->api->core), statistics_read_series, statistics_on_series_read,
               series);
}

/* ---- who uses most ---- */

#define TOP_DEFAULT 50
#define TOP_MAX 1000

struct top_params {
    bool all;
    int64_t limit;
};

static const struct field top_fields[] = {
    { "all", FIELD_BOOL, 0, offsetof(struct top_params, all),
      .doc = "everybody's; administrators" },
    { "limit", FIELD_INT, 0, offsetof(struct top_params, limit), 1, TOP_MAX,
      .doc = "sessions at most; default 50" },
    FIELD_END,
};

struct top_session {
    const struct session *session;
    double cpu; /* ms in a second */
};

/* Each metric that any kernel has, once. */
static void statistics_write_used(const struct core *core, const struct session *s, struct jsonw *w)
{
    jsonw_key(w, "used");
    jsonw_object_begin(w);
    for (size_t i = 0; i < s->kernel_count; i++) {
        const struct measured *m = core_kernel_measured(core, &s->kernels[i].id);

        for (size_t k = 0; m && k < m->count; k++) {
            const char *key = m->items[k].kind->key;
            struct metric_kind kind;
            struct metric sum;
            bool is_known = false;

            for (size_t before = 0; before < i && !is_known; before++) {
                const struct measured *other = core_kernel_measured(core, &s->kernels[before].id);

                is_known = other && measured_find(other, key);
            }
            if (is_known || !session_sum_metric(core, s, key, &sum, &kind))
                continue;
            jsonw_key(w, key);
            metric_write(&sum, &kind, w);
        }
    }
    jsonw_object_end(w);
}

/* What its kernels asked for together; null past the range of an amount. */
static void statistics_write_requested(const struct core *core, const struct session *s,
                                       struct jsonw *w)
{
    AQ_CLEANUP(slots_donep) struct slots sum = { .items = NULL };
    int r = 0;

    for (size_t i = 0; r == 0 && i < s->kernel_count; i++)
        r = slots_add(&sum, &s->kernels[i].requested);
    jsonw_key(w, "requested_slots");
    if (r == 0)
        slots_write_json(&sum, core_slot_types(core), w);
    else
        jsonw_null(w);
}

/* To its apps and ports, now. */
static int64_t statistics_count_connections(const struct core *core, const struct session *s)
{
    const struct session_use *use = core_session_use(core, &s->id);
    int64_t sum = 0;

    for (size_t i = 0; use && i < use->apps.count; i++)
        sum += use->apps.items[i].connections;
    return sum;
}

static void statistics_write_top_session(const struct core *core, const struct session *s,
                                         struct jsonw *w)
{
    const struct user *user = core_find_user(core, &s->user_id);

    jsonw_object_begin(w);
    api_write_uuid(w, "id", &s->id);
    jsonw_member_str(w, "name", s->name);
    jsonw_member_str(w, "user", user ? user->email : NULL);
    jsonw_member_str(w, "access_key", s->access_key);
    jsonw_key(w, "agents");
    jsonw_array_begin(w);
    for (size_t i = 0; i < s->kernel_count; i++)
        if (s->kernels[i].agent_id)
            jsonw_str(w, s->kernels[i].agent_id);
    jsonw_array_end(w);
    api_write_time(w, "running_since", s->running_usec);
    jsonw_member_int(w, "connections", statistics_count_connections(core, s));
    statistics_write_requested(core, s, w);
    statistics_write_used(core, s, w);
    jsonw_object_end(w);
}

static int statistics_compare_cpu(const void *left, const void *right)
{
    const struct top_session *a = left, *b = right;

    if (a->cpu > b->cpu || a->cpu < b->cpu)
        return a->cpu > b->cpu ? -1 : 1;
    return a->session->row < b->session->row ? -1 : a->session->row > b->session->row;
}

static bool statistics_is_shown(const struct principal *who, const struct session *s, bool all)
{
    if (s->status != SESSION_RUNNING)
        return false;
    if (!all)
        return strcmp(s->access_key, who->access_key) == 0;
    return principal_is_superadmin(who)
           || (s->domain && who->domain && strcmp(s->domain, who->domain) == 0);
}

static size_t statistics_find_top(const struct core *core, const struct principal *who, bool all,
                                  struct top_session *ret)
{
    struct metric_kind kind;
    struct metric sum;
    size_t count = 0;

    for (const struct session *s = core_next_session(core, NULL); s;
         s = core_next_session(core, s)) {
        if (!statistics_is_shown(who, s, all))
            continue;
        ret[count].session = s;
        ret[count++].cpu = session_sum_metric(core, s, "cpu_util", &sum, &kind) ? sum.value : 0;
    }
    if (count)
        qsort(ret, count, sizeof(*ret), statistics_compare_cpu);
    return count;
}

static void statistics_write_top_agents(const struct core *core, struct jsonw *w)
{
    const struct agent *agent;

    jsonw_key(w, "agents");
    jsonw_array_begin(w);
    for (size_t i = 0; (agent = core_get_agent(core, i)); i++) {
        jsonw_object_begin(w);
        jsonw_member_str(w, "id", agent->id);
        jsonw_member_str(w, "status", agent_status_name(agent->status));
        jsonw_key(w, "statistics");
        agent_measured_write(core_agent_measured(core, agent->id), w);
        jsonw_object_end(w);
    }
    jsonw_array_end(w);
}

static void statistics_reply_top(const struct api *api, struct request *req,
                                 const struct top_params *params, struct top_session *sessions)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf out = STRBUF_INIT;
    const struct principal *who = api_principal(req);
    struct jsonw w = jsonw_make(&out);
    size_t count = statistics_find_top(api->core, who, params->all, sessions);

    jsonw_object_begin(&w);
    api_write_time(&w, "at", clock_realtime_usec());
    if (principal_may(who->role, API_ADMIN))
        statistics_write_top_agents(api->core, &w);
    jsonw_member_int(&w, "running", (int64_t)count);
    jsonw_key(&w, "sessions");
    jsonw_array_begin(&w);
    for (size_t i = 0; i < count && (int64_t)i < params->limit; i++)
        statistics_write_top_session(api->core, sessions[i].session, &w);
    jsonw_array_end(&w);
    jsonw_object_end(&w);
    request_reply_json(req, 200, &out);
}

static void statistics_on_top(struct request *req, void *data)
{
    const struct api *api = data;
    struct top_params params = { .limit = TOP_DEFAULT };
    struct core_counts counts = core_get_counts(api->core);
    AQ_CLEANUP(aq_freep) struct top_session *sessions = aq_alloc_array(counts.running + 1,
                                                                       sizeof(*sessions));
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0 && params.all
        && !principal_may(api_principal(req)->role, API_ADMIN))
        (void)aq_fail_kind(&err, EPERM, "generic-forbidden",
                           "only administrators may see everybody's sessions");
    if (err.code)
        request_fail(req, &err);
    else
        statistics_reply_top(api, req, &params, sessions);
}

static const struct route statistics_routes[] = {
    { METHOD_GET, "/aliquot/v1/sessions/{name}/statistics", API_USER, statistics_on_session,
      session_statistics_fields, "What a session's kernels use, or used when they ended" },
    { METHOD_GET, "/aliquot/v1/sessions/{name}/statistics/series", API_USER,
      statistics_on_session_series, session_series_fields,
      "What a session's kernels used in the course of time" },
    { METHOD_GET, "/aliquot/v1/agents/{id}/statistics", API_ADMIN, statistics_on_agent, NULL,
      "What an agent and its devices use" },
    { METHOD_GET, "/aliquot/v1/agents/{id}/statistics/series", API_ADMIN,
      statistics_on_agent_series, agent_series_fields,
      "What an agent's node used in the course of time" },
    { METHOD_GET, "/aliquot/v1/top", API_USER, statistics_on_top, top_fields,
      "Agents and the sessions that use most" },
};
API_ROUTES_END(statistics);
