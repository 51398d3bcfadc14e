/* SPDX-License-Identifier: Apache-2.0 */
/* /resource/usage: what projects were given and used in a month or in some days, for accounts.
 *
 * Times are those for which kernels held their amounts, as far as these lie in the period; days
 * are days of UTC. Administrators of a domain see that domain's. The report is written while the
 * rows are read, on the store's thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "manager/usage/usage_feature.h"
#include "manager/usage/usage_sums.h"
#include "manager/usage/usage_time.h"
#include "manager/call/turns.h"
#include "store/kernel_usage.h"

#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)
#define DAYS_MAX 100
#define KERNELS_MAX 20000 /* of one report: some 20 MB */

/* Of a kernel, while it is written. */
enum usage_text {
    TEXT_SESSION,
    TEXT_ACCESS_KEY,
    TEXT_EMAIL,
    TEXT_AGENT,
    TEXT_IMAGE,
    TEXT_STATUS,
    TEXT_COUNT
};

struct usage_report {
    const struct api *api;
    struct request *req;
    struct turn turn;
    struct kernel_usage_query query;
    struct uuid projects[KERNEL_USAGE_PROJECTS_MAX], user_id;
    int64_t now_usec;
    size_t kernels;
    struct strbuf out;
    struct jsonw w;
    struct uuid project_id;    /* that is being written; nil = none */
    bool has_kernel;           /* one is being written, too */
    int64_t session_row, rank; /* of the kernel */
    struct uuid kernel_id;     /* nil = it was removed */
    char *project, *domain;
    struct usage_sums of_project, of_kernel;
    struct slots given;                       /* to the kernel, at last */
    int64_t held_usec, first_usec, last_usec; /* of the kernel */
    char *text[TEXT_COUNT];                   /* of the kernel */
    int64_t created_usec, terminated_usec, changed_usec;
};

/* ---- texts ---- */

/* As Python prints a timedelta, which is what clients expect. */
static void usage_write_duration(struct jsonw *w, const char *key, int64_t usec)
{
    long long sec = usec / USEC_PER_SEC, days = sec / 86400;
    char text[64], day[32] = "";

    if (days)
        (void)snprintf(day, sizeof(day), "%lld day%s, ", days, days == 1 ? "" : "s");
    (void)snprintf(text, sizeof(text), "%s%lld:%02lld:%02lld", day, sec % 86400 / 3600,
                   sec % 3600 / 60, sec % 60);
    jsonw_member_str(w, key, text);
}

/* "2026-11-24 10:57:25.123456+00:00", "None" for 0. */
static void usage_write_time(struct jsonw *w, const char *key, int64_t usec)
{
    char text[CLOCK_ISO_MAX] = "None";

    if (usec) {
        (void)clock_format_iso(usec, text);
        text[strcspn(text, "T")] = ' ';
    }
    jsonw_member_str(w, key, text);
}

static void usage_write_id(struct jsonw *w, const char *key, const struct uuid *id)
{
    if (uuid_is_nil(id))
        jsonw_member_null(w, key);
    else
        api_write_uuid(w, key, id);
}

/* ---- objects ---- */

static void usage_end_kernel(struct usage_report *report)
{
    struct jsonw *w = &report->w;

    if (!report->has_kernel)
        return;
    report->has_kernel = false;
    usage_sums_give(&report->of_kernel, &report->given);
    jsonw_object_begin(w);
    usage_write_id(w, "id", &report->kernel_id);
    usage_write_id(w, "container_id", &report->kernel_id);
    jsonw_member_str(w, "domain_name", report->domain);
    api_write_uuid(w, "group_id", &report->project_id);
    jsonw_member_str(w, "group_name", report->project);
    jsonw_member_str(w, "name", report->text[TEXT_SESSION]);
    jsonw_member_str(w, "access_key", report->text[TEXT_ACCESS_KEY]);
    jsonw_member_str(w, "email", report->text[TEXT_EMAIL]);
    jsonw_member_str(w, "agent", report->text[TEXT_AGENT]);
    usage_sums_write(&report->of_kernel, "", w);
    usage_write_duration(w, "used_time", report->held_usec);
    jsonw_member_int(w, "used_days",
                     (report->last_usec - 1) / DAY_USEC - report->first_usec / DAY_USEC + 1);
    jsonw_key(w, "nfs");
    jsonw_array_begin(w);
    jsonw_array_end(w);
    jsonw_member_str(w, "image_id", report->text[TEXT_IMAGE]);
    jsonw_member_str(w, "image_name", report->text[TEXT_IMAGE]);
    usage_write_time(w, "created_at", report->created_usec);
    usage_write_time(w, "terminated_at", report->terminated_usec);
    jsonw_member_str(w, "status", report->text[TEXT_STATUS]);
    usage_write_time(w, "status_changed", report->changed_usec);
    jsonw_object_end(w);
    usage_sums_add(&report->of_project, &report->of_kernel);
}

/* Clients of 22.03 read g_... and c_infos, those of 26 project_... and total_usage. */
static void usage_end_project(struct usage_report *report)
{
    struct jsonw *w = &report->w;

    usage_end_kernel(report);
    if (uuid_is_nil(&report->project_id))
        return;
    jsonw_array_end(w);
    usage_sums_write(&report->of_project, "g_", w);
    api_write_uuid(w, "project_id", &report->project_id);
    jsonw_member_str(w, "project_name", report->project);
    jsonw_key(w, "total_usage");
    jsonw_object_begin(w);
    usage_sums_write(&report->of_project, "", w);
    jsonw_object_end(w);
    jsonw_object_end(w);
    memset(&report->project_id, 0, sizeof(report->project_id));
}

/* ---- reading ---- */

/* NULL stays NULL. */
static void usage_copy(char **to, const char *text)
{
    free(*to);
    *to = aq_strdup(text);
}

static void usage_begin_project(struct usage_report *report, const struct kernel_usage *row)
{
    struct jsonw *w = &report->w;

    usage_end_project(report);
    report->project_id = row->project_id;
    report->of_project = (struct usage_sums){ 0 };
    usage_copy(&report->project, row->project);
    usage_copy(&report->domain, row->domain);
    jsonw_object_begin(w);
    jsonw_member_str(w, "domain_name", report->domain);
    api_write_uuid(w, "g_id", &report->project_id);
    jsonw_member_str(w, "g_name", report->project);
    jsonw_key(w, "c_infos");
    jsonw_array_begin(w);
}

static int usage_begin_kernel(struct usage_report *report, const struct kernel_usage *row)
{
    const char *const texts[TEXT_COUNT] = { row->session, row->access_key, row->email,
                                            row->agent,   row->image,      row->status };

    usage_end_kernel(report);
    report->has_kernel = true;
    report->session_row = row->session_row;
    report->rank = row->rank;
    report->kernel_id = row->kernel_id;
    slots_done(&report->given);
    report->of_kernel = (struct usage_sums){ 0 };
    report->held_usec = 0;
    report->first_usec = INT64_MAX;
    report->last_usec = 0;
    report->created_usec = row->created_usec;
    report->terminated_usec = row->terminated_usec;
    report->changed_usec = row->changed_usec;
    for (size_t i = 0; i < AQ_COUNT(texts); i++)
        usage_copy(&report->text[i], texts[i]);
    usage_sums_use(&report->of_kernel, row->last_stat, row->spec);
    return ++report->kernels > KERNELS_MAX ? -E2BIG : 0;
}

/* One amount; those of a later start come after and take the place of the former. */
static void usage_add_amount(struct usage_report *report, const struct kernel_usage *row)
{
    int64_t until = row->until_usec ? row->until_usec : report->now_usec;
    int64_t from = AQ_MAX(row->from_usec, report->query.from_usec);
    int r;

    until = AQ_MAX(AQ_MIN(until, report->query.until_usec), from);
    if (strcmp(row->slot, "cpu") == 0) /* every kernel has some: it stands for the time */
        report->held_usec += until - from;
    report->first_usec = AQ_MIN(report->first_usec, from);
    report->last_usec = AQ_MAX(report->last_usec, AQ_MAX(until, from + 1));
    r = slots_set(&report->given, row->slot, row->amount);
    (void)r; /* a slot that nobody knows any more is not summed */
}

static int usage_on_row(void *data, const struct kernel_usage *row)
{
    struct usage_report *report = data;
    int r = 0;

    if (!row->slot)
        return 0;
    if (!uuid_equals(&row->project_id, &report->project_id))
        usage_begin_project(report, row);
    if (!report->has_kernel || row->session_row != report->session_row || row->rank != report->rank)
        r = usage_begin_kernel(report, row);
    if (r == 0)
        usage_add_amount(report, row);
    return r;
}

/* store_tx_fn */
static int usage_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct usage_report *report = data;
    int r;

    jsonw_array_begin(&report->w);
    r = store_read_kernel_usage(tx, &report->query, usage_on_row, report, err);
    if (r == -E2BIG)
        return aq_fail_kind(err, E2BIG, "generic-bad-request",
                            "there are more than %d containers: ask for fewer days, or for some "
                            "groups",
                            KERNELS_MAX);
    if (r < 0)
        return r;
    usage_end_project(report);
    jsonw_array_end(&report->w);
    return 0;
}

static void usage_finish(struct usage_report *report, int r, const struct aq_error *err)
{
    struct uuid user_id = api_principal(report->req)->user_id;
    struct turn_queue *turns = report->api->turns;
    struct strbuf out = report->out;

    free(report->project);
    free(report->domain);
    slots_done(&report->given);
    for (size_t i = 0; i < AQ_COUNT(report->text); i++)
        free(report->text[i]);
    if (r < 0)
        request_fail(report->req, err);
    else
        request_reply_json(report->req, 200, &out);
    strbuf_done(&out);
    turns_leave(turns, &user_id);
}

static void usage_on_read(void *data, int r, const struct aq_error *err)
{
    usage_finish(data, r, err);
}

static void usage_on_turn(struct turn *turn)
{
    struct usage_report *report = AQ_CONTAINER_OF(turn, struct usage_report, turn);
    struct aq_error err = { 0 };

    if (api_check_caller(report->api, report->req, &err) < 0)
        usage_finish(report, -err.code, &err);
    else
        store_read(core_store(report->api->core), usage_read, usage_on_read, report);
}

/* ---- requests ---- */

/* Ids of projects, each an element, or with commas between them. */
static int usage_read_projects(struct usage_report *report, const struct str_list *ids,
                               struct aq_error *err)
{
    for (size_t i = 0; i < ids->count; i++)
        for (const char *at = ids->items[i]; *at;) {
            size_t len = strcspn(at, ",");
            char text[UUID_TEXT_MAX] = "";

            if (report->query.project_count == KERNEL_USAGE_PROJECTS_MAX)
                return api_fail_param(err, "group_ids", "are more than %d",
                                      KERNEL_USAGE_PROJECTS_MAX);
            if (len < sizeof(text))
                memcpy(text, at, len);
            if (uuid_parse(text, &report->projects[report->query.project_count++]) < 0)
                return api_fail_param(err, "group_ids", "'%.64s' is no id of a project", at);
            at += len + (at[len] == ',');
        }
    return 0;
}

/* Whose containers: those of one user, and of a domain to its administrators. */
static int usage_read_owner(struct usage_report *report, const char *user, struct aq_error *err)
{
    const struct principal *who = api_principal(report->req);
    const struct user *found;

    if (!principal_is_superadmin(who))
        report->query.domain = who->domain ? who->domain : "";
    if (!user)
        return 0;
    report->query.user_id = &report->user_id;
    if (uuid_parse(user, &report->user_id) == 0) /* perhaps of one who was purged */
        return 0;
    if (!(found = core_find_user_by_email(report->api->core, user))
        || !principal_sees_domain(who, found->domain))
        return api_fail_param(err, "user", "there is no user '%.64s'", user);
    report->user_id = found->id;
    return 0;
}

static struct usage_report *usage_new(const struct api *api, struct request *req)
{
    struct usage_report *report = arena_alloc(request_get_arena(req), sizeof(*report));

    report->api = api;
    report->req = req;
    report->now_usec = clock_realtime_usec();
    report->query.project_ids = report->projects;
    report->turn.fn = usage_on_turn;
    return report;
}

static void usage_start(struct usage_report *report, struct aq_error *err)
{
    strbuf_init(&report->out);
    report->w = jsonw_make(&report->out);
    if (err->code
        || turns_enter(report->api->turns, request_get_loop(report->req),
                       &api_principal(report->req)->user_id, &report->turn, err)
               < 0)
        request_fail(report->req, err);
}

#define USAGE_USER_FIELD(type)                                                   \
    {                                                                            \
        "user|user_id", FIELD_STR, FIELD_NULLABLE, offsetof(type, user), 1, 256, \
            .doc = "e-mail address or id of a user; default: everybody"          \
    }

struct month_params {
    const char *month, *user;
    struct str_list groups;
};

static const struct field month_fields[] = {
    { "month", FIELD_STR, FIELD_REQUIRED, offsetof(struct month_params, month), 6, 7,
      .doc = "yyyymm, of UTC" },
    { "group_ids|project_ids", FIELD_STR_LIST, FIELD_NULLABLE,
      offsetof(struct month_params, groups), 0, KERNEL_USAGE_PROJECTS_MAX,
      .doc = "ids of projects; default: all" },
    USAGE_USER_FIELD(struct month_params),
    FIELD_END,
};

static void usage_on_month(struct request *req, void *data)
{
    struct usage_report *report = usage_new(data, req);
    struct month_params params = { .month = NULL };
    struct aq_error err = { 0 };

    if (api_decode(req, &params, NULL, &err) == 0
        && usage_time_parse_month(params.month, "month", &report->query.from_usec,
                                  &report->query.until_usec, &err)
               == 0
        && usage_read_projects(report, &params.groups, &err) == 0)
        (void)usage_read_owner(report, params.user, &err);
    usage_start(report, &err);
}

struct period_params {
    const char *start, *end, *user;
    struct str_list groups;
};

static const struct field period_fields[] = {
    { "start_date", FIELD_STR, FIELD_REQUIRED, offsetof(struct period_params, start), 8, 10,
      .doc = "yyyymmdd, of UTC" },
    { "end_date", FIELD_STR, FIELD_REQUIRED, offsetof(struct period_params, end), 8, 10,
      .doc = "the last day" },
    { "group_id|project_id", FIELD_STR_LIST, FIELD_NULLABLE, offsetof(struct period_params, groups),
      0, 1, .doc = "id of a project; default: all" },
    USAGE_USER_FIELD(struct period_params),
    FIELD_END,
};

static void usage_on_period(struct request *req, void *data)
{
    struct usage_report *report = usage_new(data, req);
    struct period_params params = { .start = NULL };
    struct aq_error err = { 0 };
    struct kernel_usage_query *query;
    int64_t begins;

    query = &report->query;
    if (api_decode(req, &params, NULL, &err) == 0
        && usage_time_parse_day(params.start, "start_date", &query->from_usec, &begins, &err) == 0
        && usage_time_parse_day(params.end, "end_date", &begins, &query->until_usec, &err) == 0
        && usage_read_projects(report, &params.groups, &err) == 0
        && usage_read_owner(report, params.user, &err) == 0) {
        if (query->until_usec <= query->from_usec)
            api_fail_param(&err, "end_date", "must not be before start_date");
        else if (query->until_usec - query->from_usec > DAYS_MAX * DAY_USEC)
            api_fail_param(&err, "end_date", "ask for %d days at most", DAYS_MAX);
    }
    usage_start(report, &err);
}

static const struct route usage_routes[] = {
    { METHOD_GET, "/resource/usage/month", API_ADMIN, usage_on_month, month_fields,
      "What projects were given and used in a month, container by container" },
    { METHOD_GET, "/resource/usage/period", API_ADMIN, usage_on_period, period_fields,
      "What projects were given and used from one day to another, container by container" },
};
API_ROUTES_END(usage);
