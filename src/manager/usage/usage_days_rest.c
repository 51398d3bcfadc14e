/* SPDX-License-Identifier: Apache-2.0 */
/* /fair-share/usage-buckets: what domains, projects and users held on each day (UTC), as
 * Backend.AI's administrators ask it from 26 on.
 */
#include <stdio.h>

#include "base/clock.h"
#include "manager/scheduling/scheduling.h"
#include "manager/usage/usage_feature.h"
#include "manager/usage/usage_time.h"
#include "store/usage_days.h"

#define DAY_USEC (INT64_C(86400) * USEC_PER_SEC)
#define DAYS_MAX 366

/* ---- rows ---- */

static void usage_days_write_slots(const struct api *api, const struct usage_day *day,
                                   const char *key, struct jsonw *w)
{
    fair_search_begin_slots(w, key);
    for (const struct usage_day_slot *slot = day->slots; slot; slot = slot->next)
        fair_search_write_amount(api, w, slot->name, slot->amount_sec);
    fair_search_end_slots(w);
}

/* What there was in a group on a day of the past is not kept. */
static void usage_days_write_nothing(struct jsonw *w, const char *key)
{
    fair_search_begin_slots(w, key);
    fair_search_end_slots(w);
}

static void usage_days_write_metadata(const struct api *api, const struct usage_day *day,
                                      struct jsonw *w)
{
    int64_t end_usec = day->day_usec + DAY_USEC;

    jsonw_key(w, "metadata");
    jsonw_object_begin(w);
    fair_search_write_date(w, "period_start", day->day_usec);
    fair_search_write_date(w, "period_end", end_usec);
    jsonw_member_int(w, "decay_unit_days", 1);
    api_write_time(w, "created_at", day->day_usec);
    api_write_time(w, "updated_at", AQ_MIN(end_usec, clock_realtime_usec()));
    usage_days_write_slots(api, day, "average_daily_usage", w);
    usage_days_write_nothing(w, "usage_capacity_ratio");
    jsonw_object_end(w);
}

static void usage_days_write(const struct api_list *list, const struct store_page *page, size_t i,
                             struct jsonw *w)
{
    const struct usage_day *day = (const struct usage_day *)page->rows + i;
    char project[UUID_TEXT_MAX], user[UUID_TEXT_MAX], text[320];
    enum core_fair_level level = ((const struct fair_search *)list)->level;
    struct uuid id;

    (void)snprintf(text, sizeof(text), "%lld/%s/%s/%s/%s", (long long)day->day_usec,
                   uuid_format(&day->project, project), uuid_format(&day->user, user),
                   day->resource_group, day->domain);
    id = uuid_of_text(text);
    jsonw_object_begin(w);
    api_write_uuid(w, "id", &id);
    jsonw_member_str(w, "resource_group", day->resource_group);
    jsonw_member_str(w, "domain_name", day->domain);
    if (level >= CORE_FAIR_PROJECT)
        api_write_uuid(w, "project_id", &day->project);
    if (level == CORE_FAIR_USER)
        api_write_uuid(w, "user_uuid", &day->user);
    usage_days_write_metadata(list->api, day, w);
    usage_days_write_slots(list->api, day, "resource_usage", w);
    usage_days_write_nothing(w, "capacity_snapshot");
    jsonw_object_end(w);
}

/* ---- requests ---- */

static const struct export_field usage_days_orders[] = {
    { "period_start", .field = "period_start" },
};

static const struct export_report usage_days_report = {
    .fields = usage_days_orders,
    .field_count = AQ_COUNT(usage_days_orders),
};

/* Both days are included; without them it is as many as may be, up to today. */
static int usage_days_read_period(struct fair_search *s, struct aq_error *err)
{
    struct store_query *query = &s->list.query;
    int64_t today = clock_realtime_usec() / DAY_USEC * DAY_USEC, next, begin;

    query->until_usec = today + DAY_USEC;
    if (s->before
        && usage_time_parse_day(s->before, "filter.period_start.before", &begin, &query->until_usec,
                                err)
               < 0)
        return -err->code;
    query->since_usec = AQ_MAX(query->until_usec - DAYS_MAX * DAY_USEC, 0);
    if (s->after
        && usage_time_parse_day(s->after, "filter.period_start.after", &query->since_usec, &next,
                                err)
               < 0)
        return -err->code;
    if (query->until_usec - query->since_usec > DAYS_MAX * DAY_USEC)
        return api_fail_param(err, "filter.period_start", "has more than %d days", DAYS_MAX);
    return 0;
}

static void usage_days_search(struct request *req, const struct api *api,
                              enum core_fair_level level)
{
    static int (*const lists[])(struct store_tx *, const struct store_query *, struct store_page **,
                                struct aq_error *) = { store_list_domain_days,
                                                       store_list_project_days,
                                                       store_list_user_days };
    struct fair_search *s = fair_search_new(api, req, level, &usage_days_report);
    struct aq_error err = { 0 };

    if (!s)
        return;
    if (usage_days_read_period(s, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    s->list.list = lists[level];
    s->list.write = usage_days_write;
    api_list_start(&s->list);
}

static void usage_days_on_domains(struct request *req, void *data)
{
    usage_days_search(req, data, CORE_FAIR_DOMAIN);
}

static void usage_days_on_projects(struct request *req, void *data)
{
    usage_days_search(req, data, CORE_FAIR_PROJECT);
}

static void usage_days_on_users(struct request *req, void *data)
{
    usage_days_search(req, data, CORE_FAIR_USER);
}

#define OF_GROUP "/fair-share/rg/{resource_group}/"
#define OF_DOMAIN OF_GROUP "domains/{domain}/"
#define OF_PROJECT OF_DOMAIN "projects/{project}/"

static const struct route usage_days_routes[] = {
    { METHOD_POST, "/fair-share/usage-buckets/domains/search", API_SUPERADMIN,
      usage_days_on_domains, fair_search_domain_days_fields, "What domains held on each day" },
    { METHOD_POST, "/fair-share/usage-buckets/projects/search", API_SUPERADMIN,
      usage_days_on_projects, fair_search_project_days_fields, "What projects held on each day" },
    { METHOD_POST, "/fair-share/usage-buckets/users/search", API_SUPERADMIN, usage_days_on_users,
      fair_search_user_days_fields, "What users held on each day in their projects" },
    { METHOD_POST, OF_GROUP "usage-buckets/domains/search", API_SUPERADMIN, usage_days_on_domains,
      fair_search_domain_days_fields, "What domains held of a resource group on each day" },
    { METHOD_POST, OF_DOMAIN "usage-buckets/projects/search", API_SUPERADMIN,
      usage_days_on_projects, fair_search_project_days_fields,
      "What projects of a domain held of a resource group on each day" },
    { METHOD_POST, OF_PROJECT "usage-buckets/users/search", API_SUPERADMIN, usage_days_on_users,
      fair_search_user_days_fields,
      "What users of a project held of a resource group on each day" },
};
API_ROUTES_END(usage_days);
