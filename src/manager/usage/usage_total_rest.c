/* SPDX-License-Identifier: Apache-2.0 */
/* GET /aliquot/v1/usage: how many hours of processors, memory and accelerators were held in a
 * time, by domain, project, user or resource group.
 *
 * What lies in the time counts. The database sums, on a reader's thread, where the answer is
 * written, too. Users see themselves, administrators their domain.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "manager/usage/usage_feature.h"
#include "manager/usage/usage_time.h"
#include "manager/call/turns.h"
#include "store/usage_total.h"

#define HOUR_USEC (3600.0 * USEC_PER_SEC)
#define GIB 1073741824.0
#define DAYS_MAX 366

static const char *const usage_total_by[] = {
    [USAGE_BY_DOMAIN] = "domain",
    [USAGE_BY_PROJECT] = "project",
    [USAGE_BY_USER] = "user",
    [USAGE_BY_RESOURCE_GROUP] = "resource-group",
};

/* What is written: an item has several rows, one for each slot. */
struct usage_totals {
    const struct api *api;
    struct request *req;
    struct turn turn;
    struct usage_total_query query;
    struct uuid project_id, user_id;
    struct strbuf out, key, accelerators;
    struct jsonw w;
    size_t items;
    double cpu_hours, mem_gib_hours;
    int64_t sessions;
};

/* ---- writing ---- */

/* To a millionth. */
static int64_t usage_total_round(double hours)
{
    return (int64_t)(hours * (double)AMOUNT_ONE + 0.5);
}

static void usage_total_write_hours(struct jsonw *w, const char *key, double hours)
{
    jsonw_key(w, key);
    jsonw_double(w, (double)usage_total_round(hours) / (double)AMOUNT_ONE);
}

static void usage_total_end_item(struct usage_totals *t)
{
    if (!t->items)
        return;
    jsonw_member_int(&t->w, "sessions", t->sessions);
    usage_total_write_hours(&t->w, "cpu_hours", t->cpu_hours);
    usage_total_write_hours(&t->w, "mem_gib_hours", t->mem_gib_hours);
    jsonw_key(&t->w, "accelerator_hours");
    strbuf_adds(&t->accelerators, t->accelerators.len ? "}" : "{}");
    jsonw_raw(&t->w, t->accelerators.data, t->accelerators.len);
    jsonw_object_end(&t->w);
}

/* Names of what was purged and came to nothing are null. */
static void usage_total_begin_item(struct usage_totals *t, const struct usage_total *row)
{
    enum usage_by by = t->query.by;

    usage_total_end_item(t);
    t->items++;
    t->sessions = 0;
    t->cpu_hours = t->mem_gib_hours = 0;
    strbuf_clear(&t->accelerators);
    jsonw_object_begin(&t->w);
    if (by == USAGE_BY_RESOURCE_GROUP) {
        jsonw_member_str(&t->w, "resource_group", row->resource_group);
        return;
    }
    jsonw_member_str(&t->w, "domain", row->domain);
    if (by == USAGE_BY_PROJECT) {
        jsonw_member_str(&t->w, "project", row->project);
        api_write_uuid(&t->w, "project_id", &row->project_id);
    } else if (by == USAGE_BY_USER) {
        jsonw_member_str(&t->w, "user", row->user);
        api_write_uuid(&t->w, "user_id", &row->user_id);
    }
}

/* Bytes that differ from item to item. */
static void usage_total_write_key(const struct usage_total *row, struct strbuf *key)
{
    strbuf_clear(key);
    strbuf_add(key, row->project_id.bytes, sizeof(row->project_id.bytes));
    strbuf_add(key, row->user_id.bytes, sizeof(row->user_id.bytes));
    strbuf_addf(key, "%s/%s", row->domain ? row->domain : "",
                row->resource_group ? row->resource_group : "");
}

static void usage_total_add_accelerator(struct usage_totals *t, const char *slot, double hours)
{
    struct jsonw w = jsonw_make(&t->accelerators);
    char text[AMOUNT_TEXT_MAX];

    strbuf_addc(&t->accelerators, t->accelerators.len ? ',' : '{');
    jsonw_str(&w, slot);
    strbuf_addf(&t->accelerators, ":\"%s\"",
                slot_amount_format(usage_total_round(hours), SLOT_COUNT, text));
}

/* usage_total_fn */
static int usage_total_on_row(void *data, const struct usage_total *row)
{
    AQ_CLEANUP(strbuf_donep) struct strbuf key = STRBUF_INIT;
    struct usage_totals *t = data;
    double hours = row->held / HOUR_USEC;

    usage_total_write_key(row, &key);
    if (!t->items || key.len != t->key.len || memcmp(key.data, t->key.data, key.len) != 0) {
        usage_total_begin_item(t, row);
        strbuf_clear(&t->key);
        strbuf_add(&t->key, key.data, key.len);
    }
    t->sessions = AQ_MAX(t->sessions, row->sessions); /* all hold processors */
    if (strcmp(row->slot, "cpu") == 0)
        t->cpu_hours = hours / (double)AMOUNT_ONE;
    else if (strcmp(row->slot, "mem") == 0)
        t->mem_gib_hours = hours / GIB;
    else
        usage_total_add_accelerator(t, row->slot, hours / (double)AMOUNT_ONE);
    return 0;
}

/* store_tx_fn */
static int usage_total_read(struct store_tx *tx, void *data, struct aq_error *err)
{
    struct usage_totals *t = data;
    int r;

    jsonw_object_begin(&t->w);
    api_write_time(&t->w, "from", t->query.from_usec);
    api_write_time(&t->w, "until", t->query.until_usec);
    jsonw_key(&t->w, "items");
    jsonw_array_begin(&t->w);
    if ((r = store_read_usage_total(tx, &t->query, usage_total_on_row, t, err)) < 0)
        return r;
    usage_total_end_item(t);
    jsonw_array_end(&t->w);
    jsonw_member_int(&t->w, "total", (int64_t)t->items);
    jsonw_object_end(&t->w);
    return 0;
}

/* ---- running ---- */

/* store_done_fn */
static void usage_total_on_read(void *data, int r, const struct aq_error *err)
{
    struct usage_totals *t = data;
    struct uuid user_id = api_principal(t->req)->user_id;
    struct turn_queue *turns = t->api->turns;
    struct strbuf out = t->out;

    strbuf_done(&t->key);
    strbuf_done(&t->accelerators);
    if (r < 0)
        request_fail(t->req, err);
    else
        request_reply_json(t->req, 200, &out);
    strbuf_done(&out);
    turns_leave(turns, &user_id);
}

static void usage_total_on_turn(struct turn *turn)
{
    struct usage_totals *t = AQ_CONTAINER_OF(turn, struct usage_totals, turn);
    struct aq_error err = { 0 };

    if (api_check_caller(t->api, t->req, &err) < 0)
        usage_total_on_read(t, -err.code, &err);
    else
        store_read(core_store(t->api->core), usage_total_read, usage_total_on_read, t);
}

/* ---- the request ---- */

struct usage_total_params {
    const char *month, *since, *until, *by, *domain, *project, *user, *resource_group;
};

static const struct field usage_total_fields[] = {
    { "month", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, month), 6, 7,
      .doc = "2026-11, of UTC; default: the current one" },
    { "since", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, since), 1, 64,
      .doc = "a day of UTC, a time, or how long ago; in place of a month" },
    { "until", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, until), 1, 64,
      .doc = "the last day, or a time; default: now" },
    { "by", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, by), 1, 16,
      .doc = "domain, project (default), user or resource-group" },
    { "domain", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, domain), 1, 64 },
    { "project", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, project), 1, 64,
      .doc = "id, or a name in the domain" },
    { "user", FIELD_STR, FIELD_NULLABLE, offsetof(struct usage_total_params, user), 1, 256,
      .doc = "e-mail address or id" },
    { "resource_group", FIELD_STR, FIELD_NULLABLE,
      offsetof(struct usage_total_params, resource_group), 1, 64 },
    FIELD_END,
};

/* A day, or as 'since' of other lists; 'is_end': the end of the day. */
static int usage_total_read_time(const char *text, const char *field, bool is_end, int64_t *ret,
                                 struct aq_error *err)
{
    struct aq_error ignored = { 0 };
    int64_t next, ago = 0;

    if (usage_time_parse_day(text, field, ret, &next, &ignored) == 0) {
        *ret = is_end ? next : *ret;
        return 0;
    }
    if (clock_parse_since(text, ret, &ago) < 0)
        return api_fail_param(err, field,
                              "'%.64s' is no day, such as 2026-11-24, no time and not how long ago",
                              text);
    if (ago)
        *ret = clock_realtime_usec() - ago;
    return 0;
}

static int usage_total_read_month(const char *text, struct usage_total_query *query,
                                  struct aq_error *err)
{
    char now[CLOCK_ISO_MAX];

    clock_format_iso(clock_realtime_usec(), now);
    now[7] = '\0';
    return usage_time_parse_month(text ? text : now, "month", &query->from_usec, &query->until_usec,
                                  err);
}

static int usage_total_read_period(const struct usage_total_params *given,
                                   struct usage_total_query *query, struct aq_error *err)
{
    int64_t now = clock_realtime_usec();
    int r = 0;

    if (given->month && (given->since || given->until))
        return api_fail_param(err, "month", "and since or until exclude each other");
    if (given->until && !given->since)
        return api_fail_param(err, "since", "is required with until");
    query->until_usec = now;
    if (given->since) {
        r = usage_total_read_time(given->since, "since", false, &query->from_usec, err);
        if (r == 0 && given->until)
            r = usage_total_read_time(given->until, "until", true, &query->until_usec, err);
    } else {
        r = usage_total_read_month(given->month, query, err);
    }
    if (r < 0)
        return r;
    if (query->until_usec <= query->from_usec)
        return api_fail_param(err, given->until ? "until" : "since",
                              given->until ? "is not after since" : "is yet to come");
    if (query->until_usec - query->from_usec > DAYS_MAX * 24 * (int64_t)HOUR_USEC)
        return api_fail_param(err, "since", "ask for %d days at most", DAYS_MAX);
    query->until_usec = AQ_MAX(AQ_MIN(query->until_usec, now), query->from_usec);
    return 0;
}

/* A caller who is no superadmin sees one domain. */
static int usage_total_read_domain(struct usage_totals *t, const char *given, struct aq_error *err)
{
    const struct principal *who = api_principal(t->req);

    t->query.domain = given;
    if (principal_is_superadmin(who))
        return 0;
    if (given && (!who->domain || strcmp(given, who->domain) != 0))
        return api_fail_param(err, "domain", "you see your own domain only");
    t->query.domain = who->domain ? who->domain : "";
    return 0;
}

/* Ids are taken as they are, also of what was purged: whose the rows may be is limited anyway. */
static int usage_total_read_project(struct usage_totals *t, const struct usage_total_params *given,
                                    struct aq_error *err)
{
    const struct principal *who = api_principal(t->req);
    const char *domain = given->domain ? given->domain : who->domain ? who->domain : "default";
    const struct project *project;

    if (!given->project)
        return 0;
    t->query.project_id = &t->project_id;
    if (uuid_parse(given->project, &t->project_id) == 0)
        return 0;
    project = core_find_project_named(t->api->core, domain, given->project);
    if (!project)
        return api_fail_param(err, "project", "there is no project '%.64s' in domain %.64s",
                              given->project, domain);
    t->project_id = project->id;
    return 0;
}

/* A user sees what was theirs. */
static int usage_total_read_user(struct usage_totals *t, const char *given, struct aq_error *err)
{
    const struct principal *who = api_principal(t->req);
    const struct user *user;

    if (given && uuid_parse(given, &t->user_id) < 0) {
        user = core_find_user_by_email(t->api->core, given);
        if (!user
            || (!principal_sees_domain(who, user->domain)
                && !uuid_equals(&user->id, &who->user_id)))
            return api_fail_param(err, "user", "there is no user '%.64s' for you", given);
        t->user_id = user->id;
    }
    if (!principal_may(who->role, API_ADMIN)) {
        if (given && !uuid_equals(&t->user_id, &who->user_id))
            return api_fail_param(err, "user", "there is no user '%.64s' for you", given);
        t->user_id = who->user_id;
        given = "";
    }
    t->query.user_id = given ? &t->user_id : NULL;
    return 0;
}

static int usage_total_read_by(const char *text, enum usage_by *ret, struct aq_error *err)
{
    *ret = USAGE_BY_PROJECT;
    for (size_t i = 0; text && i < AQ_COUNT(usage_total_by); i++)
        if (strcmp(text, usage_total_by[i]) == 0) {
            *ret = (enum usage_by)i;
            return 0;
        }
    return text ? api_fail_param(err, "by", "is domain, project, user or resource-group") : 0;
}

static void usage_total_on_request(struct request *req, void *data)
{
    struct usage_totals *t = arena_alloc(request_get_arena(req), sizeof(*t));
    struct usage_total_params given = { 0 };
    const struct api *api = data;
    struct aq_error err = { 0 };

    if (api_decode(req, &given, NULL, &err) < 0) {
        request_fail(req, &err);
        return;
    }
    t->api = api;
    t->req = req;
    t->turn.fn = usage_total_on_turn;
    strbuf_init(&t->out);
    strbuf_init(&t->key);
    strbuf_init(&t->accelerators);
    t->w = jsonw_make(&t->out);
    t->query.resource_group = given.resource_group;
    if (usage_total_read_by(given.by, &t->query.by, &err) < 0
        || usage_total_read_period(&given, &t->query, &err) < 0
        || usage_total_read_domain(t, given.domain, &err) < 0
        || usage_total_read_project(t, &given, &err) < 0
        || usage_total_read_user(t, given.user, &err) < 0
        || turns_enter(api->turns, request_get_loop(req), &api_principal(req)->user_id, &t->turn,
                       &err)
               < 0)
        request_fail(req, &err);
}

static const struct route usage_total_routes[] = {
    { METHOD_GET, "/aliquot/v1/usage", API_USER, usage_total_on_request, usage_total_fields,
      "How many hours of processors, memory and accelerators were held, and by whom" },
};
API_ROUTES_END(usage_total);
